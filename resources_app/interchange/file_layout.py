"""Preserve the layout of an imported file: frontmatter formatting, line endings and blank lines.

An export reproduces unchanged values as they were written: order, quoting, number formats,
precision of times. Changed values are written in our format.
"""

from typing import Any

from resources_app.errors import ValidationFailed
from resources_app.files import frontmatter
from resources_app.history.documents import document_of
from resources_app.interchange.item_files import (
    ItemFile,
    Layout,
    layout_of,
    read_item_file,
    unix_lines,
)
from resources_app.interchange.tree import item_path
from resources_app.models import Epic, Task
from resources_app.reading.markdown import (
    BOOKKEEPING,
    Facts,
    frontmatter_of,
    item_frontmatter,
    read_body,
    write_body,
)

# Key in the import's bookkeeping.
LAYOUT = "layout"
# Other programs need these to read the file.
_IDENTITY = ("id", "title", "status")
# Alternative keys for one field.
_ALSO = {"epic_id": "parent_id", "parent_id": "epic_id"}
_NO_ENTRY = ("#", "-", " ", "\t", "]", "}", "\n")


def item_text(item: Task | Epic) -> str:
    """Return the text of the item's file. It always parses to the same values as our own format."""
    document, path = (
        document_of(item),
        item_path(item.KIND, item.ref, archived=item.archived_at is not None),
    )
    layout: Layout = item.extra.get(BOOKKEEPING, {}).get(LAYOUT, {})
    facts, description = item_frontmatter(item, document), document["description"]
    plain = frontmatter.render(facts, write_body(description))
    return _in_layout(path, plain, facts, description, layout) if layout else plain


def needed_layout(file: ItemFile) -> Layout:
    """Return the layout of the file, or nothing if the file is in our own format."""
    times = file.times
    if not {"created_at", "updated_at"} <= times.keys():
        return file.layout
    archived = times["archived_at"].isoformat() if "archived_at" in times else None
    document = file.values | {"archived_at": archived, "extra": file.kept}
    facts = frontmatter_of(file.kind, file.ref, document, times["created_at"], times["updated_at"])
    head, body = frontmatter.render(facts, ""), write_body(document["description"])
    return {} if layout_of(head, head, body) == file.layout else file.layout


def _in_layout(path: str, plain: str, facts: Facts, description: str, layout: Layout) -> str:
    aim = _statements(path, plain)
    head, body = layout["head"], _body(description, layout)
    now = _statements(path, head + body)
    changed = {name for name in now | aim if now.get(name, ...) != aim.get(name, ...)}
    if changed or not _has_identity(head):
        head = _with_entries(head, changed, facts)
    text = head + body
    written = _with_line_ends(text, layout)
    return written if _statements(path, text) == aim and unix_lines(written) == text else plain


def _statements(path: str, text: str) -> dict[str, Any]:
    """Return everything the file states, by name."""
    try:
        item = read_item_file(path, text)
    except ValidationFailed:
        return {}
    return {"id": item.ref, "archived": item.archived} | _field_statements(item)


def _field_statements(item: ItemFile) -> dict[str, Any]:
    names = {*item.values, *item.kept, *item.times}
    return {
        name: (item.values.get(name), item.times.get(name), item.kept.get(name)) for name in names
    }


def _with_entries(head: str, changed: set[str], facts: Facts) -> str:
    """Return the head with the changed entries rewritten in place; new ones come last."""
    opening, *entries, closing = _split(head)
    present = {_key_of(entry) for entry in entries}
    missing = [name for name in _IDENTITY if name not in present]
    written = [opening, *(frontmatter.render_entry(name, facts[name]) for name in missing)]
    pending = {
        name: frontmatter.render_entry(name, facts[name])
        for name in facts
        if name in changed - {*missing}
    }
    for entry in entries:
        name = _key_of(entry)
        if name in changed or _ALSO.get(name) in changed:
            written += [pending.pop(one) for one in (name, _ALSO.get(name, "")) if one in pending]
        else:
            written.append(entry)
    return "".join([*written, *pending.values(), closing])


def _has_identity(head: str) -> bool:
    return {_key_of(entry) for entry in _split(head)}.issuperset(_IDENTITY)


def _split(head: str) -> list[str]:
    """Split into the opening fence, each top-level entry with its lines, and the closing fence."""
    first, *lines = (f"{line}\n" for line in head.removesuffix("\n").split("\n"))
    last = lines.pop().removesuffix("\n") + head[len(head.removesuffix("\n")) :]
    parts = [first]
    for line in lines:
        if line.startswith(_NO_ENTRY):
            parts[-1] += line
        else:
            parts.append(line)
    return [*parts, last]


def _key_of(entry: str) -> str:
    return entry.partition(":")[0].strip().strip("'\"")


def _body(description: str, layout: Layout) -> str:
    body = layout.get("before", "") + description + layout.get("after", "")
    return body if read_body(body) == description else write_body(description)


def _with_line_ends(text: str, layout: Layout) -> str:
    ended = text.replace("\n", "\r\n") if layout.get("crlf") else text
    return f"\ufeff{ended}" if layout.get("bom") else ended
