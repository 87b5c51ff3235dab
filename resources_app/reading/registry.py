"""List every URI pattern, one per row.

Reading, writing, watching, discovery, completion, the docs and docs/mcp-list.csv derive from it.
"""

from collections.abc import Callable
from functools import partial

from resources_app.addresses.targets import (
    Target,
    Variables,
    archived_file_only_read,
    archived_only_read,
    comment_target,
    field_target,
    item_target,
    only_read,
    path_target,
)
from resources_app.addresses.uris import Uri
from resources_app.errors import InvalidUri
from resources_app.models import Epic, Task
from resources_app.querying.queries import parameters_for
from resources_app.reading import (
    collections,
    comments,
    files,
    intelligencebank,
    items,
    system,
    variables,
)
from resources_app.reading.patterns import Entry, PatternSection, Registry, Rule, Watch
from resources_app.reading.result import Reading, ReadRequest
from resources_app.reading.variables import Variable

_JSON, _MARKDOWN, _ANY = "application/json", "text/markdown", "*/*"
_PAGE = ("limit", "cursor")
_TASK_QUERY = tuple(parameters_for(Task))
_EPIC_QUERY = tuple(parameters_for(Epic))
_INDEX = variables.INDEX

_WHOLE = Watch(Rule.ITEM, part="", names_one_thing=True)
_FILE = Watch(Rule.ITEM, part="file", names_one_thing=True)
_METADATA = Watch(Rule.ITEM, part="metadata", names_one_thing=True)
_HISTORY = Watch(Rule.ITEM, names_one_thing=True)
_FIELD = Watch(Rule.FIELD, part="{field}", names_one_thing=True)
_FIELD_HISTORY = Watch(Rule.FIELD, names_one_thing=True)
_COMMENTS = Watch(Rule.ITEM_COMMENTS)
_PATH = Watch(Rule.PATH, part="")
_FILE_PART = Watch(Rule.FILE_PART, part="")


def _item_at(collection: str) -> Callable[[Uri, Variables], Target]:
    return lambda _uri, values: item_target(collection, values["id"])


def _field_at(collection: str) -> Callable[[Uri, Variables], Target]:
    return lambda _uri, values: field_target(
        collection, values["id"], values["field"], values.get("index")
    )


def _comment_at(_uri: Uri, values: Variables) -> Target:
    return comment_target(values["number"])


# fmt: off
def _item_entries(collection: str, item: str, id: Variable, field: Variable, section: PatternSection) -> list[Entry]:
    base, whole, part = f"mcp://backlog/{collection}/{{id}}", _item_at(collection), _field_at(collection)
    entry = partial(Entry, fills=(id,), refusal=only_read)
    field_entry = partial(Entry, fills=(id, field), refusal=only_read)
    return [
        entry(base, item, f"One {item} with all its fields", collection, _JSON, items.read_item, versioned=True, target=whole, watch=_WHOLE, listed=section),
        entry(f"{base}/file", f"{item}_file", "Markdown with frontmatter", collection, _MARKDOWN, items.read_file, versioned=True, watch=_FILE),
        entry(f"{base}/metadata", f"{item}_metadata", "The frontmatter alone", collection, _JSON, items.read_metadata, versioned=True, watch=_METADATA),
        entry(f"{base}/schema", f"{item}_schema", "Its fields: address, type, what may be written and how", collection, _JSON, items.read_schema),
        entry(f"{base}/comments", f"{item}_comments", "What was said about it, oldest first", collection, _JSON, comments.read_item_comments, _PAGE, watch=_COMMENTS),
        entry(f"{base}/versions", f"{item}_versions", "Its history, newest first", collection, _JSON, collections.read_item_versions, _PAGE, watch=_HISTORY),
        field_entry(f"{base}/{{field}}", f"{item}_field", "One field by its name", collection, _ANY, items.read_field, versioned=True, target=part, watch=_FIELD),
        field_entry(f"{base}/{{field}}/{{index}}", f"{item}_element", "One element of a field that is a list, counted from 0", collection, _ANY, items.read_field, versioned=True, fills=(id, field, _INDEX), target=part, watch=_FIELD),
        field_entry(f"{base}/{{field}}/versions", f"{item}_field_versions", "The history of one field, newest first", collection, _JSON, collections.read_field_versions, _PAGE, watch=_FIELD_HISTORY),
    ]


def _archived_entries() -> list[Entry]:
    base, id, field = "mcp://backlog/archive/{id}", variables.ARCHIVED_ID, variables.TASK_FIELD
    entry = partial(Entry, category="archive", fills=(id,), refusal=archived_only_read)
    field_entry = partial(Entry, category="archive", fills=(id, field), refusal=archived_only_read)
    return [
        Entry("mcp://backlog/archive", "archive", "Archived tasks; type=epic for epics", "archive", _JSON, collections.read_archive, (*_TASK_QUERY, "type"), refusal=archived_only_read, watch=Watch(Rule.ARCHIVE)),
        entry(base, "archived_item", "One archived task or epic, read-only", mime_type=_JSON, reader=items.read_item, versioned=True, watch=_WHOLE),
        entry(f"{base}/file", "archived_file", "Markdown with frontmatter", mime_type=_MARKDOWN, reader=items.read_file, versioned=True, watch=_FILE),
        entry(f"{base}/metadata", "archived_metadata", "The frontmatter alone", mime_type=_JSON, reader=items.read_metadata, versioned=True, watch=_METADATA),
        entry(f"{base}/schema", "archived_schema", "Its fields: address and type; nothing can be written", mime_type=_JSON, reader=items.read_schema),
        entry(f"{base}/comments", "archived_comments", "What was said about it, oldest first", mime_type=_JSON, reader=comments.read_item_comments, parameters=_PAGE, watch=_COMMENTS),
        entry(f"{base}/tasks", "archived_epic_tasks", "The tasks of an archived epic", mime_type=_JSON, reader=collections.read_epic_tasks, parameters=_TASK_QUERY, fills=(variables.ARCHIVED_EPIC_ID,), watch=Watch(Rule.EPIC_TASKS)),
        entry(f"{base}/versions", "archived_versions", "Its history, newest first", mime_type=_JSON, reader=collections.read_item_versions, parameters=_PAGE, watch=_HISTORY),
        field_entry(f"{base}/{{field}}", "archived_field", "One field of an archived item", mime_type=_ANY, reader=items.read_field, versioned=True, watch=_FIELD),
        field_entry(f"{base}/{{field}}/{{index}}", "archived_element", "One element of a list of an archived item", mime_type=_ANY, reader=items.read_field, versioned=True, fills=(id, field, _INDEX), watch=_FIELD),
        field_entry(f"{base}/{{field}}/versions", "archived_field_versions", "The history of one field, newest first", mime_type=_JSON, reader=collections.read_field_versions, parameters=_PAGE, watch=_FIELD_HISTORY),
    ]


def _file_entries(area: str, file: str, top: str, one: str) -> list[Entry]:
    """Return the addresses of files.

    A file or folder that is itself called `versions` or `schema` is read, written and watched at
    its path like any other: a path is a file or a folder, so it has no history beside it.
    """
    base = f"mcp://backlog/{area}"
    entry = partial(Entry, category="resources", fills=(variables.PATHS[area],), target=path_target, versioned=True, parameters=_PAGE)
    return [
        Entry(base, area, top, "resources", _JSON, files.read_path, _PAGE, watch=_PATH),
        entry(f"{base}/{{path}}", file, one, mime_type=_ANY, reader=files.read_path, watch=_PATH, listed=PatternSection.FILES),
        entry(f"{base}/{{path}}/versions", f"{file}_versions", "The history of a file, newest first; what is itself called versions is read instead", mime_type=_ANY, reader=files.read_versions, watch=_FILE_PART),
        entry(f"{base}/{{path}}/schema", f"{file}_schema", "What may be written to a file and how; what is itself called schema is read instead", mime_type=_ANY, reader=files.read_schema, watch=_FILE_PART),
    ]


def _archived_file_entries(area: str, file: str) -> list[Entry]:
    base = f"mcp://backlog/archive/{area}"
    entry = partial(Entry, category="archive", fills=(variables.ARCHIVED_PATHS[area],), refusal=archived_file_only_read, versioned=True, parameters=_PAGE)
    return [
        Entry(base, f"archived_{area}", f"Archived {area}, by path", "archive", _JSON, files.read_archive, _PAGE, refusal=archived_file_only_read, watch=Watch(Rule.ARCHIVED_FILES)),
        entry(f"{base}/{{path}}", f"archived_{file}", f"One archived {file}, read-only", mime_type=_ANY, reader=files.read_path, watch=_PATH),
        entry(f"{base}/{{path}}/versions", f"archived_{file}_versions", "The history of an archived file, newest first", mime_type=_ANY, reader=files.read_versions, watch=_FILE_PART),
        entry(f"{base}/{{path}}/schema", f"archived_{file}_schema", "Its fields; nothing can be written", mime_type=_ANY, reader=files.read_schema, watch=_FILE_PART),
    ]


def _mirror_entry(pattern: str, name: str, description: str, reader: Callable[[ReadRequest], Reading], rule: Rule, id: Variable, parameters: tuple[str, ...] = (), *, names_one_thing: bool = True, listed: PatternSection | None = None) -> Entry:
    return Entry(f"ib://{{clientid}}/{pattern}", name, description, "intelligencebank", _JSON, reader, parameters, fills=(variables.CLIENT_ID, id), watch=Watch(rule, names_one_thing=names_one_thing), listed=listed)


REGISTRY = Registry([
    Entry("mcp://backlog/tasks", "tasks", "Tasks, filtered, sorted, paged or counted", "tasks", _JSON, collections.read_tasks, _TASK_QUERY, watch=Watch(Rule.TASKS)),
    *_item_entries("tasks", "task", variables.TASK_ID, variables.TASK_FIELD, PatternSection.TASKS),
    Entry("mcp://backlog/epics", "epics", "Epics, filtered, sorted, paged or counted", "epics", _JSON, collections.read_epics, _EPIC_QUERY, watch=Watch(Rule.EPICS)),
    *_item_entries("epics", "epic", variables.EPIC_ID, variables.EPIC_FIELD, PatternSection.EPICS),
    Entry("mcp://backlog/epics/{id}/tasks", "epic_tasks", "The tasks of an epic", "epics", _JSON, collections.read_epic_tasks, _TASK_QUERY, fills=(variables.EPIC_ID,), refusal=only_read, watch=Watch(Rule.EPIC_TASKS)),
    Entry("mcp://backlog/comments", "comments", "Comments, oldest first; item=TASK-0001 for one item", "comments", _JSON, comments.read_comments, ("item", *_PAGE), watch=Watch(Rule.COMMENTS)),
    Entry("mcp://backlog/comments/{number}", "comment", "One comment", "comments", _JSON, comments.read_comment, fills=(variables.COMMENT_NUMBER,), target=_comment_at, watch=Watch(Rule.COMMENT, part="body", names_one_thing=True)),
    *_archived_entries(),
    *_archived_file_entries("resources", "resource"),
    *_archived_file_entries("artifacts", "artifact"),
    *_file_entries("resources", "resource", "The top of the file tree", "A file by its path, or what lies in a folder"),
    *_file_entries("artifacts", "artifact", "The top of the tree of artifacts", "An artifact by its path, or what lies in a folder"),
    Entry("file:///{path}", "local_file", "A file of this machine inside a configured root, or what lies in a folder", "resources", _ANY, files.read_local_file, _PAGE, fills=(variables.LOCAL_PATH,)),
    _mirror_entry("folders/{id}", "ib_folder", "A folder of IntelligenceBank and its subfolders; id root: where yours begin", intelligencebank.read_folder, Rule.IB_FOLDER, variables.IB_FOLDER_ID, _PAGE, listed=PatternSection.IB_FOLDERS),
    _mirror_entry("folders/{id}/resources", "ib_folder_resources", "The resources in a folder of IntelligenceBank", intelligencebank.read_folder_resources, Rule.IB_FOLDER_RESOURCES, variables.IB_FOLDER_ID, _PAGE, names_one_thing=False),
    _mirror_entry("resources/{id}", "ib_resource", "One resource of IntelligenceBank: its facts, not its file", intelligencebank.read_resource, Rule.IB_RESOURCE, variables.IB_RESOURCE_ID),
    _mirror_entry("resource/{id}", "ib_resource_alias", "The same, as IntelligenceBank's own connector writes it", intelligencebank.read_resource, Rule.IB_RESOURCE, variables.IB_RESOURCE_ID),
    Entry("mcp://backlog/changes", "changes", "The change feed after a cursor, oldest first", "changes", _JSON, collections.read_changes, ("since", "limit"), watch=Watch(Rule.FEED)),
    Entry("metadata://templates", "templates", "Templates for new tasks", "metadata", _JSON, system.read_templates),
    Entry("metadata://templates/{template}", "template", "One template: the fields of a new task", "metadata", _JSON, system.read_template, fills=(variables.TEMPLATE,)),
    Entry("workflow://workflows", "workflows", "Background runs, newest first", "workflow", _JSON, system.read_workflows),
    Entry("workflow://workflows/{id}/status", "workflow_status", "State and progress of one run", "workflow", _JSON, system.read_workflow, fills=(variables.RUN_ID,)),
    Entry("auth://status", "auth_status", "Who you are and what you may do", "auth", _JSON, system.read_auth_status, is_public=True),
    Entry("admin://users", "users", "People, their groups and last login", "admin", _JSON, system.read_users, requires_admin=True),
    Entry("admin://roles", "roles", "Roles, what they may do, how many have them", "admin", _JSON, system.read_roles, requires_admin=True),
    Entry("admin://config/oauth", "oauth_config", "How agents get in: scopes, clients, lifetimes", "admin", _JSON, system.read_oauth_config, requires_admin=True),
    Entry("admin://config/sync", "sync_config", "What is mirrored and how often", "admin", _JSON, system.read_sync_config, requires_admin=True),
])
# fmt: on


def target_of(uri: Uri) -> Target:
    """Return the target of a write, or the object whose versions are listed.

    Read-only URIs (collections, schemas, histories …) are rejected.
    """
    found = REGISTRY.match(uri)
    if found is None:
        raise _not_writable(uri)
    entry, values = found
    if uri.fragment:
        raise InvalidUri(
            "A write addresses a thing or a field, not a place in it.",
            suggestion="Leave out the fragment (# and what follows).",
            uri=str(uri),
            fragment=uri.fragment[:200],
            patterns=REGISTRY.writable_patterns(),
        )
    if uri.query or uri.version:
        raise only_read(uri)
    if entry.target is None:
        raise entry.refusal(uri) if entry.refusal else _not_writable(uri)
    return entry.target(uri, values)


def _not_writable(uri: Uri) -> InvalidUri:
    return InvalidUri(
        "Nothing at this address can be written, and it has no versions.",
        uri=str(uri),
        patterns=REGISTRY.writable_patterns(),
    )
