"""Test addresses: those of the contract are parsed and written back; everything else is rejected,
never guessed.
"""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from resources_app.addresses.uris import (
    MAX_LENGTH,
    MAX_PARAMETERS,
    MAX_SEGMENTS,
    SCHEMES,
    Uri,
    build,
    build_path,
    parse,
)
from resources_app.errors import InvalidUri

CONTRACT = [
    "mcp://backlog/tasks",
    "mcp://backlog/tasks?status=open&status=in_progress",
    "mcp://backlog/tasks?filter=created_at%3E2026-01-01",
    "mcp://backlog/tasks/TASK-0039",
    "mcp://backlog/tasks/TASK-0039/description",
    "mcp://backlog/tasks/TASK-0039/evidence/0",
    "mcp://backlog/tasks/TASK-0039/file",
    "mcp://backlog/tasks/TASK-0039/description/versions",
    "mcp://backlog/epics/EPIC-0002/tasks",
    "mcp://backlog/archive/TASK-0001/description",
    "mcp://backlog/resources/adr/0001.md",
    "mcp://backlog/changes?since=12.34",
    "mcp://backlog/context/TASK-0001?max_tokens=4000",
    "ib://AbC12/folders/root",
    "ib://AbC12/search?q=logo",
    "auth://status",
    "admin://config/oauth",
    "metadata://templates/bug",
    "workflow://workflows/7/status",
    "file:///srv/docs/a.md",
]


@pytest.mark.parametrize("uri", CONTRACT)
def test_every_address_of_the_contract_is_written_as_it_was_read(uri: str) -> None:
    assert str(parse(uri)) == uri


def test_the_parts_of_an_address_are_told_apart() -> None:
    assert parse("mcp://backlog/tasks/TASK-0039/evidence/0?a=1&a=2&b=") == Uri(
        "mcp",
        "backlog",
        ("tasks", "TASK-0039", "evidence", "0"),
        (("a", "1"), ("a", "2"), ("b", "")),
    )


def test_case_is_kept() -> None:
    parsed = parse("ib://AbC12/folders/RoOt")
    assert (parsed.authority, parsed.path) == ("AbC12", "folders/RoOt")


@pytest.mark.parametrize(
    "uri", ["mcp://backlog/tasks/TASK-0001@v3", "mcp://backlog/tasks/TASK-0001?version=3"]
)
def test_a_version_is_named_at_the_end_or_in_the_query(uri: str) -> None:
    parsed = parse(uri)
    assert parsed == Uri("mcp", "backlog", ("tasks", "TASK-0001"), (), 3)
    assert str(parsed) == "mcp://backlog/tasks/TASK-0001?version=3"
    assert str(parsed.without_version()) == "mcp://backlog/tasks/TASK-0001"


def test_the_other_parameters_stay_beside_a_version() -> None:
    parsed = parse("mcp://backlog/tasks/TASK-0001?a=1&version=12&b=2")
    assert (parsed.query, parsed.version) == ((("a", "1"), ("b", "2")), 12)


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("mcp://backlog/resources/notes@v2.md", "resources/notes@v2.md"),
        ("mcp://backlog/resources/x@v2/y.md", "resources/x@v2/y.md"),
        ("mcp://backlog/resources/a@v0", "resources/a@v0"),
        ("mcp://backlog/resources/a@v03", "resources/a@v03"),
        ("mcp://backlog/resources/a@V3", "resources/a@V3"),
        ("mcp://backlog/resources/@v3", "resources/@v3"),
        ("mcp://backlog/resources/a%40v3", "resources/a@v3"),
        ("file:///srv/a@v3", "srv/a@v3"),
    ],
)
def test_a_name_that_only_looks_like_a_version_is_a_name(uri: str, path: str) -> None:
    parsed = parse(uri)
    assert (parsed.path, parsed.version) == (path, None)
    assert parse(str(parsed)) == parsed


NAMES = [
    "plain",
    "a b",
    "100%",
    "a?b",
    "a#b",
    "a&b=c",
    "x@v2",
    "@v2",
    "%2e%2e",
    "%2F",
    "naïve",
    "日本語",
    "👍🏽",
    "...",
]


@pytest.mark.parametrize("segment", [*NAMES, "e\u0301"])
def test_any_name_can_be_built_into_an_address_and_read_back(segment: str) -> None:
    parsed = parse(build("resources", segment, "end"))
    assert parsed.segments == ("resources", segment, "end")
    assert parse(build_path(f"resources/{segment}")).path == f"resources/{segment}"


def test_escapes_are_decoded_once() -> None:
    assert parse("mcp://backlog/resources/%2520").path == "resources/%20"
    assert parse("mcp://backlog/resources/%252e%252e/a").segments == ("resources", "%2e%2e", "a")


def test_letters_beyond_ascii_may_come_escaped_or_not() -> None:
    assert parse("mcp://backlog/resources/na%C3%AFve.md") == parse(
        "mcp://backlog/resources/naïve.md"
    )


@pytest.mark.parametrize(
    "uri",
    [
        "mcp://backlog/resources/../secret",
        "mcp://backlog/resources/..",
        "mcp://backlog/./tasks",
        "mcp://backlog/resources/%2e%2e/secret",
        "mcp://backlog/resources/%2E./secret",
        "mcp://backlog/resources/a%2Fb",
        "mcp://backlog/resources/..%2f..%2fetc",
        "mcp://backlog/resources/a%5Cb",
        "mcp://backlog/resources/a\\b",
        "file:///srv/../etc/passwd",
        "file:///srv/%2e%2e/etc/passwd",
    ],
)
def test_traversal_is_refused(uri: str) -> None:
    with pytest.raises(InvalidUri):
        parse(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "tasks/TASK-0001",
        "mcp:/backlog/tasks",
        "mcp:backlog",
        "//backlog/tasks",
        " mcp://backlog/tasks",
        "MCP://backlog/tasks",
        "Mcp://backlog/tasks",
        "http://backlog/tasks",
        "javascript://backlog/tasks",
        "mcp://",
        "mcp:///tasks",
        "mcp://user@backlog/tasks",
        "mcp://user:pass@backlog/tasks",
        "mcp://backlog:80/tasks",
        "mcp://back%6Cog/tasks",
        "mcp://bäcklog/tasks",
        "mcp://.backlog/tasks",
        "mcp://[::1]/tasks",
        "mcp://backlog/tasks#\\x00",
        "file:///a.md?version=1",
        "mcp://backlog/tasks/",
        "mcp://backlog//tasks",
        "mcp://backlog/tasks//TASK-0001",
        "mcp://backlog/tasks/%",
        "mcp://backlog/tasks/%4",
        "mcp://backlog/tasks/%zz",
        "mcp://backlog/tasks/%ff",
        "mcp://backlog/tasks/%00",
        "mcp://backlog/tasks/a\x00b",
        "mcp://backlog/tasks/a%0Ab",
        "mcp://backlog/tasks/a\nb",
        "mcp://backlog/tasks/%7f",
        "mcp://backlog/tasks/\ud800",
        "mcp://backlog/tasks?search=\ud800",
        "mcp://backlog/tasks?search=%ED%A0%80",
        "mcp://backlog/tasks?search=%00",
        "mcp://backlog/tasks?search=%ff",
        "mcp://backlog/tasks?a%0Ab=1",
        "mcp://backlog/tasks/TASK-0001?version=0",
        "mcp://backlog/tasks/TASK-0001?version=03",
        "mcp://backlog/tasks/TASK-0001?version=-1",
        "mcp://backlog/tasks/TASK-0001?version=１",
        "mcp://backlog/tasks/TASK-0001?version=",
        "mcp://backlog/tasks/TASK-0001?version=1.0",
        "mcp://backlog/tasks/TASK-0001?version=9999999999",
        "mcp://backlog/tasks/TASK-0001?version=1&version=1",
        "mcp://backlog/tasks/TASK-0001@v3?version=3",
        "file://host/srv/a.md",
        "file:///srv/a.md?version=1",
        "file:///srv//a.md",
    ],
)
def test_what_is_no_address_is_refused_with_the_forms_there_are(uri: str) -> None:
    with pytest.raises(InvalidUri) as caught:
        parse(uri)
    patterns = caught.value.details["patterns"]
    assert {pattern.partition(":")[0] for pattern in patterns} == set(SCHEMES)


@pytest.mark.parametrize("uri", [None, 3, b"mcp://backlog/tasks", ["mcp://backlog/tasks"], {}])
def test_what_is_no_text_is_no_address(uri: object) -> None:
    with pytest.raises(InvalidUri):
        parse(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "mcp://backlog/" + "a" * MAX_LENGTH,
        "mcp://backlog/" + "é" * (MAX_LENGTH // 2),
        "mcp://backlog/tasks?search=" + "é" * (MAX_LENGTH // 2),
        "mcp://backlog/" + "/".join("a" * (MAX_SEGMENTS + 1)),
        "mcp://backlog/tasks?" + "&".join(["a=1"] * (MAX_PARAMETERS + 1)),
        "file:///" + "é" * (MAX_LENGTH // 2),
    ],
)
def test_an_over_long_address_is_refused(uri: str) -> None:
    with pytest.raises(InvalidUri):
        parse(uri)


def test_the_longest_addresses_are_accepted() -> None:
    assert parse("mcp://backlog/" + "a" * (MAX_LENGTH - 14)).segments
    assert len(parse("mcp://backlog/" + "/".join("a" * MAX_SEGMENTS)).segments) == MAX_SEGMENTS
    assert (
        len(parse("mcp://backlog/tasks?" + "&".join(["a=1"] * MAX_PARAMETERS)).query)
        == MAX_PARAMETERS
    )


PIECES = st.sampled_from(
    (
        *(f"{scheme}://" for scheme in SCHEMES),
        *("backlog", "localhost", "tasks", "TASK-0001", "version", "version=3", "@v2", "@", "v3"),
        *(
            "/",
            "//",
            "..",
            ".",
            "?",
            "=",
            "&",
            "#",
            ":",
            " ",
            "+",
            ";",
            "[",
            "\\",
            "\n",
            "\x00",
            "\ud800",
        ),
        *("%2e", "%2F", "%25", "%00", "%", "%ff", "é", "👍", "%F0%9F%91%8D"),
    )
)
RANDOM_URIS = st.text(max_size=60) | st.lists(PIECES, max_size=12).map("".join)
LIKELY_URIS = st.lists(PIECES, max_size=8).map(lambda pieces: "mcp://backlog/" + "".join(pieces))


@settings(max_examples=2_000)
@given(RANDOM_URIS | LIKELY_URIS)
@example("mcp://backlog/a@v2@v3")
@example("mcp://backlog/a%40v2?version=3")
@example("mcp://backlog/?version=2")
@example("mcp://backlog/a?+=%2B+%26")
def test_any_text_is_an_address_that_reads_back_or_an_invalid_one(uri: str) -> None:
    try:
        parsed = parse(uri)
    except InvalidUri:
        return
    assert parse(str(parsed)) == parsed
    assert not {"", ".", ".."} & set(parsed.segments)
    assert not any(set(segment) & set("/\\\x00\n") for segment in parsed.segments)
    assert str(parsed).isascii()
    assert len(str(parsed)) <= MAX_LENGTH


@pytest.mark.parametrize(
    "uri", ["mcp://backlog/resources/a.md", "file:///srv/a.md", "mcp://backlog/tasks?limit=1"]
)
def test_a_fragment_is_kept_apart_from_the_address(uri: str) -> None:
    parsed = parse(f"{uri}#L10-L20")
    assert parsed == parse(uri)
    assert (parsed.fragment, str(parsed)) == ("L10-L20", uri)
