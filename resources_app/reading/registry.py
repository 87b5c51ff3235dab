"""List every URI pattern, one per row.

Reading, discovery, completion, the docs and docs/mcp-list.csv derive from it.
"""

from resources_app.models import Epic, Task
from resources_app.querying.queries import parameters_for
from resources_app.reading import collections, comments, files, intelligencebank, items, system
from resources_app.reading.patterns import Entry, Registry

_JSON, _MARKDOWN, _ANY = "application/json", "text/markdown", "*/*"
_PAGE = ("limit", "cursor")
_TASK_QUERY = tuple(parameters_for(Task))
_EPIC_QUERY = tuple(parameters_for(Epic))


# fmt: off
def _item_entries(collection: str, item: str) -> list[Entry]:
    base = f"mcp://backlog/{collection}/{{id}}"
    return [
        Entry(base, item, f"One {item} with all its fields", collection, _JSON, items.read_item, versioned=True),
        Entry(f"{base}/file", f"{item}_file", "Markdown with frontmatter", collection, _MARKDOWN, items.read_file, versioned=True),
        Entry(f"{base}/metadata", f"{item}_metadata", "The frontmatter alone", collection, _JSON, items.read_metadata, versioned=True),
        Entry(f"{base}/schema", f"{item}_schema", "Its fields: address, type, what may be written and how", collection, _JSON, items.read_schema),
        Entry(f"{base}/comments", f"{item}_comments", "What was said about it, oldest first", collection, _JSON, comments.read_item_comments, _PAGE),
        Entry(f"{base}/versions", f"{item}_versions", "Its history, newest first", collection, _JSON, collections.read_item_versions, _PAGE),
        Entry(f"{base}/{{field}}", f"{item}_field", "One field by its name", collection, _ANY, items.read_field, versioned=True),
        Entry(f"{base}/{{field}}/{{index}}", f"{item}_element", "One element of a field that is a list, counted from 0", collection, _ANY, items.read_field, versioned=True),
        Entry(f"{base}/{{field}}/versions", f"{item}_field_versions", "The history of one field, newest first", collection, _JSON, collections.read_field_versions, _PAGE),
    ]


REGISTRY = Registry([
    Entry("mcp://backlog/tasks", "tasks", "Tasks, filtered, sorted, paged or counted", "tasks", _JSON, collections.read_tasks, _TASK_QUERY),
    *_item_entries("tasks", "task"),
    Entry("mcp://backlog/epics", "epics", "Epics, filtered, sorted, paged or counted", "epics", _JSON, collections.read_epics, _EPIC_QUERY),
    *_item_entries("epics", "epic"),
    Entry("mcp://backlog/epics/{id}/tasks", "epic_tasks", "The tasks of an epic", "epics", _JSON, collections.read_epic_tasks, _TASK_QUERY),
    Entry("mcp://backlog/comments", "comments", "Comments, oldest first; item=TASK-0001 for one item", "comments", _JSON, comments.read_comments, ("item", *_PAGE)),
    Entry("mcp://backlog/comments/{number}", "comment", "One comment", "comments", _JSON, comments.read_comment),
    Entry("mcp://backlog/archive", "archive", "Archived tasks; type=epic for epics", "archive", _JSON, collections.read_archive, (*_TASK_QUERY, "type")),
    Entry("mcp://backlog/archive/{id}", "archived_item", "One archived task or epic, read-only", "archive", _JSON, items.read_item, versioned=True),
    Entry("mcp://backlog/archive/{id}/file", "archived_file", "Markdown with frontmatter", "archive", _MARKDOWN, items.read_file, versioned=True),
    Entry("mcp://backlog/archive/{id}/metadata", "archived_metadata", "The frontmatter alone", "archive", _JSON, items.read_metadata, versioned=True),
    Entry("mcp://backlog/archive/{id}/schema", "archived_schema", "Its fields: address and type; nothing can be written", "archive", _JSON, items.read_schema),
    Entry("mcp://backlog/archive/{id}/comments", "archived_comments", "What was said about it, oldest first", "archive", _JSON, comments.read_item_comments, _PAGE),
    Entry("mcp://backlog/archive/{id}/tasks", "archived_epic_tasks", "The tasks of an archived epic", "archive", _JSON, collections.read_epic_tasks, _TASK_QUERY),
    Entry("mcp://backlog/archive/{id}/versions", "archived_versions", "Its history, newest first", "archive", _JSON, collections.read_item_versions, _PAGE),
    Entry("mcp://backlog/archive/{id}/{field}", "archived_field", "One field of an archived item", "archive", _ANY, items.read_field, versioned=True),
    Entry("mcp://backlog/archive/{id}/{field}/{index}", "archived_element", "One element of a list of an archived item", "archive", _ANY, items.read_field, versioned=True),
    Entry("mcp://backlog/archive/{id}/{field}/versions", "archived_field_versions", "The history of one field, newest first", "archive", _JSON, collections.read_field_versions, _PAGE),
    Entry("mcp://backlog/resources", "resources", "The top of the file tree", "resources", _JSON, files.read_path, _PAGE),
    Entry("mcp://backlog/resources/{path}", "resource", "A file by its path, or what lies in a folder", "resources", _ANY, files.read_path, _PAGE, versioned=True),
    Entry("mcp://backlog/artifacts", "artifacts", "The top of the tree of artifacts", "resources", _JSON, files.read_path, _PAGE),
    Entry("mcp://backlog/artifacts/{path}", "artifact", "An artifact by its path, or what lies in a folder", "resources", _ANY, files.read_path, _PAGE, versioned=True),
    Entry("file:///{path}", "local_file", "A file of this machine inside a configured root, or what lies in a folder", "resources", _ANY, files.read_local_file, _PAGE),
    Entry("ib://{clientid}/folders/{id}", "ib_folder", "A folder of IntelligenceBank and its subfolders; id root: where yours begin", "intelligencebank", _JSON, intelligencebank.read_folder, _PAGE),
    Entry("ib://{clientid}/folders/{id}/resources", "ib_folder_resources", "The resources in a folder of IntelligenceBank", "intelligencebank", _JSON, intelligencebank.read_folder_resources, _PAGE),
    Entry("ib://{clientid}/resources/{id}", "ib_resource", "One resource of IntelligenceBank: its facts, not its file", "intelligencebank", _JSON, intelligencebank.read_resource),
    Entry("ib://{clientid}/resource/{id}", "ib_resource_alias", "The same, as IntelligenceBank's own connector writes it", "intelligencebank", _JSON, intelligencebank.read_resource),
    Entry("mcp://backlog/changes", "changes", "The change feed after a cursor, oldest first", "changes", _JSON, collections.read_changes, ("since", "limit")),
    Entry("metadata://templates", "templates", "Templates for new tasks", "metadata", _JSON, system.read_templates),
    Entry("metadata://templates/{template}", "template", "One template: the fields of a new task", "metadata", _JSON, system.read_template),
    Entry("workflow://workflows", "workflows", "Background runs, newest first", "workflow", _JSON, system.read_workflows),
    Entry("workflow://workflows/{id}/status", "workflow_status", "State and progress of one run", "workflow", _JSON, system.read_workflow),
    Entry("auth://status", "auth_status", "Who you are and what you may do", "auth", _JSON, system.read_auth_status, is_public=True),
    Entry("admin://users", "users", "People, their groups and last login", "admin", _JSON, system.read_users, requires_admin=True),
    Entry("admin://roles", "roles", "Roles, what they may do, how many have them", "admin", _JSON, system.read_roles, requires_admin=True),
    Entry("admin://config/oauth", "oauth_config", "How agents get in: scopes, clients, lifetimes", "admin", _JSON, system.read_oauth_config, requires_admin=True),
    Entry("admin://config/sync", "sync_config", "What is mirrored and how often", "admin", _JSON, system.read_sync_config, requires_admin=True),
])
# fmt: on
