"""Parse and render markdown with YAML frontmatter. Pure.

Hand-edited files are read as far as possible; YAML bombs are rejected.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import yaml

MAX_BYTES = 64 * 1024
MAX_DEPTH = 20
# Each of these characters can begin a value, and values are what reading YAML costs: 0.4 CPU
# seconds for so many.
MARKS = "\n,:[{"
MAX_MARKS = 6_000
# Longer than any line, so that nothing is folded.
_WIDTH = 2**31

_OPENING = re.compile("\ufeff?---[ \t]*\r?\n")
_CLOSING = re.compile("^---[ \t]*(?:\r?\n|\\Z)", re.MULTILINE)
_ENTRY = re.compile(r"([A-Za-z_][\w .-]*+)[ \t]*+:(?:[ \t]+|$)")
_PLAIN_VALUE = re.compile(r"([ \t]*(?:- +)*+(?:[\w.-]+[ \t]*:[ \t]+)?)([^\s'\"\[{|>].*)")
_CONTINUES = re.compile(r"[\s#\]}-]|$")
# PyYAML implements YAML 1.1, which treats these as line breaks or drops them; escapes are safe.
_NEEDS_ESCAPES = re.compile("[\r\x85\u2028\u2029\ufeff]")
_UNSAFE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True)
class Parsed:
    """Hold a parsed text.

    `head` is the block as written, fences included: head + body equals the text.
    """

    frontmatter: dict[str, Any]
    body: str
    problems: list[str] = field(default_factory=list)
    head: str = ""


def parse(text: str) -> Parsed:
    """Parse a text without ever failing.

    `problems` lists what cannot be read. A block that yields nothing at all stays in the body.
    """
    opening = _OPENING.match(text)
    closing = _CLOSING.search(text, opening.end()) if opening else None
    if opening is None or closing is None:
        return Parsed({}, text)
    block = text[opening.end() : closing.start()]
    if (size := len(block.encode("utf-8", "surrogatepass"))) > MAX_BYTES:
        return Parsed(
            {}, text, [f"The frontmatter must be at most {MAX_BYTES} bytes (got {size})."]
        )
    if (marks := sum(map(block.count, MARKS))) > MAX_MARKS:
        problem = (
            f"The frontmatter must have at most {MAX_MARKS} line ends, commas, colons and brackets"
            f" (got {marks})."
        )
        return Parsed({}, text, [problem])
    found, problems = _read(block)
    if not found and problems:
        return Parsed({}, text, problems)
    return Parsed(found, text[closing.end() :], problems, text[: closing.end()])


def render(frontmatter: dict[str, Any], body: str) -> str:
    """Render frontmatter and body; the inverse of parse.

    Strings that YAML readers take for other types are quoted.
    """
    if frontmatter:
        return f"---\n{_dump(frontmatter)}---\n{body}"
    return f"---\n---\n{body}" if _looks_fenced(body) else body


def render_entry(name: str, value: Any) -> str:
    """Render one frontmatter entry, as render does."""
    return _dump({name: value})


def rejoin(text: str, frontmatter: dict[str, Any], body: str) -> str:
    """Return `text` with another frontmatter or body.

    Comments, order and quoting survive if the frontmatter is unchanged.
    """
    parsed = parse(text)
    return (
        parsed.head + body
        if parsed.head and parsed.frontmatter == frontmatter
        else render(frontmatter, body)
    )


def _looks_fenced(body: str) -> bool:
    return bool(_OPENING.match(body))


# Reading


class _Refused(yaml.YAMLError):
    pass


class _Loader(yaml.SafeLoader):
    """Load YAML in pure Python: the C loader crashes on deep nesting and ignores the overrides
    below.

    A plain word becomes a number, true, false or null only if it is written exactly as render
    writes it. Everything else stays a string (dates, 0755, 1.10, yes, 12:30).
    """

    yaml_implicit_resolvers: dict[str, Any] = {}
    yaml_constructors: ClassVar[dict[str | None, Any]] = {}

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self.depth = 0
        self.repeated: list[str] = []

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]  # untyped in types-pyyaml
        if (
            isinstance(event, yaml.AliasEvent)
            or getattr(event, "anchor", None)
            or getattr(event, "tag", None)
        ):
            raise _Refused("anchors, aliases and tags are not read")
        if self.depth >= MAX_DEPTH:
            raise _Refused(f"it is nested more than {MAX_DEPTH} deep")
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_text_mapping(self, node: Any) -> Iterator[dict[str, Any]]:
        mapping: dict[str, Any] = {}
        yield mapping
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _Refused("a key is not a plain word")
            if key.value in mapping:
                self.repeated.append(key.value)
            mapping[key.value] = self.construct_object(value, deep=True)

    def construct_list(self, node: Any) -> list[Any]:
        return [self.construct_object(entry, deep=True) for entry in node.value]

    def construct_word(self, node: Any) -> Any:
        return _value_of(node.value) if node.style is None else node.value


_Loader.add_constructor("tag:yaml.org,2002:str", _Loader.construct_word)
_Loader.add_constructor("tag:yaml.org,2002:seq", _Loader.construct_list)
_Loader.add_constructor("tag:yaml.org,2002:map", _Loader.construct_text_mapping)

_WORDS: dict[str, Any] = {"": None, "~": None, "null": None, "true": True, "false": False}
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})", re.ASCII)
_FLOAT = re.compile(r"-?[0-9]+\.[0-9]+(?:e[+-][0-9]+)?", re.ASCII)


def _value_of(word: str) -> Any:
    if word in _WORDS:
        return _WORDS[word]
    if _INTEGER.fullmatch(word) and word != "-0":
        return int(word)
    if len(word) < 30 and _FLOAT.fullmatch(word) and _write_float(float(word)) == word:
        return float(word)
    return word


def _load(block: str) -> tuple[Any, list[str]]:
    """Return the value and the duplicate keys.

    Raises YAMLError, also for input that would exhaust the stack.
    """
    loader = _Loader(block)
    try:
        value = loader.get_single_data()
    except RecursionError:
        raise _Refused("it is nested too deep") from None
    except ValueError as error:
        raise _Refused(str(error)) from error
    finally:
        loader.dispose()
    return value, loader.repeated


def _read(block: str) -> tuple[dict[str, Any], list[str]]:
    try:
        value, repeated = _load(block)
    except yaml.YAMLError as error:
        return _read_leniently(block, _reason(error))
    if value is None:
        return {}, []
    if not isinstance(value, dict):
        return {}, ["The frontmatter is not made of 'key: value' lines."]
    problems = [f"{key!r} is there more than once; the last one counts." for key in repeated]
    return _without_unsafe(value, problems), problems


def _read_leniently(block: str, reason: str) -> tuple[dict[str, Any], list[str]]:
    """Read entry by entry, so that a broken line affects only itself."""
    found: dict[str, Any] = {}
    problems: list[str] = []
    for number, key, lines in _entries(block):
        if key is None:
            problems.append(
                f"Line {number} of the frontmatter was not read: {lines[0].strip()[:80]!r}."
            )
            continue
        found[key], trouble = _entry_value(key, lines)
        if trouble:
            problems.append(
                f"Line {number} of the frontmatter ({key}) was read as plain text: {trouble}."
            )
    return _without_unsafe(found, problems), problems or [
        f"The frontmatter is not valid YAML: {reason}."
    ]


def _entries(block: str) -> Iterator[tuple[int, str | None, list[str]]]:
    """Yield each `key: …` at the left margin with its lines, or (line, None, [text]) for a line
    without a key.
    """
    key: str | None = None
    start, lines = 0, list[str]()
    for number, line in enumerate(block.replace("\r\n", "\n").removesuffix("\n").split("\n"), 2):
        match = _ENTRY.match(line)
        if (
            match is None
            and _CONTINUES.match(line)
            and (key is not None or not line.strip() or line.startswith("#"))
        ):
            lines.append(line)
            continue
        if key is not None:
            yield start, key, lines
        key, start, lines = (
            match[1].rstrip() if match else None,
            number,
            [line[match.end() :] if match else line],
        )
        if match is None:
            yield number, None, lines
    if key is not None:
        yield start, key, lines


def _entry_value(key: str, lines: list[str]) -> tuple[Any, str]:
    """Parse as YAML, else with plain values quoted (an unquoted colon in a title), else return the
    text as is.
    """
    trouble = ""
    for first, rest in (
        (lines[0], lines[1:]),
        (_quoted(f"- {lines[0]}")[2:], [_quoted(line) for line in lines[1:]]),
    ):
        try:
            value, _ = _load("\n".join([f"key: {first}", *rest]))
        except yaml.YAMLError as error:
            trouble = trouble or _reason(error)
            continue
        if isinstance(value, dict) and list(value) == ["key"]:
            return value["key"], trouble
    return "\n".join(lines).strip(), trouble or "it is not valid YAML"


def _quoted(line: str) -> str:
    """Quote a plain value.

    Trailing blanks are cut first because matching them in the expression is quadratic.
    """
    match = _PLAIN_VALUE.fullmatch(line.rstrip(" \t"))
    if match is None or not match[1].strip():
        return line
    return match[1] + "'" + match[2].replace("'", "''") + "'"


def _reason(error: yaml.YAMLError) -> str:
    problem = getattr(error, "problem", None) or getattr(error, "reason", None)
    return str(problem or error).partition("\n")[0][:200]


def _without_unsafe(value: Any, problems: list[str]) -> Any:
    """Replace NUL and lone surrogates, which YAML escapes can express but databases and JSON
    readers reject.
    """
    if isinstance(value, str):
        if _UNSAFE.search(value):
            problems.append("NUL or unpaired surrogates were replaced.")
        return _UNSAFE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_unsafe(entry, problems) for entry in value]
    if isinstance(value, dict):
        return {
            _without_unsafe(key, problems): _without_unsafe(entry, problems)
            for key, entry in value.items()
        }
    return value


# Writing


class _Dumper(yaml.SafeDumper):
    """Indent lists and write multi-line texts as blocks, like backlog-mcp."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, value: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = '"' if _NEEDS_ESCAPES.search(value) else "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


def _represent_float(dumper: yaml.SafeDumper, value: float) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:float", _write_float(value))


def _write_float(value: float) -> str:
    written = repr(value)
    return written.replace("e", ".0e") if "." not in written and "e" in written else written


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(float, _represent_float)
# YAML 1.2 numbers that PyYAML, which implements 1.1, would leave unquoted: 1e5, 0o17.
_Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(?:[0-9.]+[eE][-+]?[0-9]+|0o[0-7]+|[0-9]+)"),
    list("-+0123456789."),
)


def _dump(frontmatter: dict[str, Any]) -> str:
    text: str = yaml.dump(
        frontmatter,
        Dumper=_Dumper,
        allow_unicode=True,
        sort_keys=False,
        default_flow_style=False,
        width=_WIDTH,
    )
    return text
