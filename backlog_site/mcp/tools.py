"""Define the tools agents see.

Each calls the same function as its REST counterpart; an agent reads only these words.
"""

from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context
from pydantic import Field

from backlog_site.mcp.context import current_actor
from backlog_site.mcp.field_arguments import FILTERED, WRITTEN, Status, field_arguments
from backlog_site.mcp.toolset import Null, Toolset, documented, from_json, tool
from backlog_site.serving.database_threads import in_loop
from resources_app.addresses.uris import build
from resources_app.errors import ValidationFailed
from resources_app.reading import get_resource as discovery
from resources_app.reading import read_many
from resources_app.reading.by_address import read
from resources_app.reading.read_many import MAX_TOKENS
from resources_app.reading.registry import REGISTRY
from resources_app.reading.serializers import created_json, item_line, line_query
from resources_app.writing import batches, write_path
from search_app.context import DEFAULT_TOKENS, build_context
from search_app.search import search_unified

Answer = dict[str, Any]
Words = list[str] | None
Kind = Literal["task", "epic", "resource", "ib_folder", "ib_resource"]
SETTABLE = tuple(WRITTEN)
Operation = Annotated[Answer, Field(description='{"type": …} and its arguments')]


class BacklogTools(Toolset):
    @tool("Search everything", read_only_hint=True, open_world_hint=False)
    def backlog_search(
        self,
        query: str,
        types: Annotated[list[Kind] | None, Field(description="all when not given")] = None,
        status: list[Status] | None = None,
        parent_id: Annotated[str | None, Field(description="epic id or folder path")] = None,
        assignee: str | None = None,
        label: Words = None,
        sort: Literal["relevant", "recent"] = "relevant",
        limit: int = 20,
        cursor: str | None = None,
        include_content: bool = False,
        include_scores: bool = False,
        explain: bool = False,
        max_tokens: int = MAX_TOKENS,
    ) -> Answer:
        """Find tasks, epics, files and IntelligenceBank assets by words, names in code, ids or
        parts of words, best first, with snippets. To filter by exact fields or to count use
        backlog_list.
        """
        return search_unified(
            current_actor().user,
            query,
            types=types,
            status=status,
            parent_id=parent_id,
            assignee=assignee,
            label=label,
            sort=sort,
            limit=limit,
            cursor=cursor,
            include_content=include_content,
            include_scores=include_scores,
            explain=explain,
            max_tokens=max_tokens,
        )

    @tool("Gather context", read_only_hint=True, open_world_hint=False)
    def backlog_context(
        self,
        id: str | None = None,
        query: str | None = None,
        max_tokens: int = DEFAULT_TOKENS,
        depth: int = 1,
    ) -> Answer:
        """Before work: a task, epic or file (id or URI, or the best hit of a query) with parent,
        children, siblings, dependencies, references both ways, comments, related things and recent
        changes, within max_tokens; left_out names what did not fit.
        """
        return build_context(
            current_actor().user, id=id, query=query, max_tokens=max_tokens, depth=depth
        )

    @tool("List tasks or epics", read_only_hint=True, open_world_hint=False)
    @field_arguments(FILTERED, assignee="username; '' for nobody")
    def backlog_list(
        self,
        type: Literal["task", "epic"] = "task",
        status: Status | list[Status] | None = None,
        *,
        ready: Annotated[
            bool | None, Field(description="open, and nothing it depends on is unfinished")
        ] = None,
        filter: Annotated[
            str | None, Field(description='e.g. created_at>2026-01-01,title~"auth"')
        ] = None,
        search: Annotated[str | None, Field(description="only those with all these words")] = None,
        sort: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        limit: int | None = None,
        offset: int | None = None,
        cursor: str | None = None,
        aggregate: Literal["count"] | None = None,
        group_by: Annotated[
            str | None, Field(description="count by status, priority, assignee, label or epic_id")
        ] = None,
        **fields: Any,
    ) -> Answer:
        """Filter, sort, page or count by exact fields.

        To find by words or meaning use backlog_search.
        """
        given = {
            **fields,
            "ready": None if ready is None else str(ready).lower(),
            "filter": filter,
            "search": search,
            "sort": sort,
            "order": order,
            "limit": limit,
            "offset": offset,
            "cursor": cursor,
            "group_by": group_by,
            "aggregate": aggregate or ("count" if group_by else None),
        }
        statuses = [status] if isinstance(status, str) else status or []
        pairs = [("status", word) for word in statuses] + [
            (k, str(v)) for k, v in _given(given).items()
        ]
        pairs += [] if given["aggregate"] else [line_query(type)]
        page: Answer = read(current_actor(), build(f"{type}s", query=pairs)).contents
        return (
            page | {"results": [item_line(item) for item in page["results"]]}
            if "next_cursor" in page
            else page
        )

    @tool("Read things", read_only_hint=True, open_world_hint=False)
    def backlog_get(
        self,
        id: Annotated[
            str | list[str],
            Field(description="ids and URIs, mixed: TASK-0001, mcp://backlog/…, file:///…"),
        ],
        max_tokens: int = read_many.DEFAULT_TOKENS,
        cursor: str | None = None,
    ) -> Answer:
        """Read tasks, epics, single fields, files or folders, with ETags.

        A next_cursor means there is more.
        """
        found = read_many.read_many(current_actor(), _names(id), max_tokens, cursor)
        errors = [result["error"] for result in found["results"] if "error" in result]
        return {"error": errors[0], **found} if len(errors) == len(found["results"]) else found

    @tool(
        "Create a task or epic",
        destructive_hint=False,
        idempotent_hint=False,
        open_world_hint=False,
    )
    @field_arguments(WRITTEN, references="[{url, title}]")
    def backlog_create(
        self,
        title: str,
        type: Literal["task", "epic"] = "task",
        *,
        idempotency_key: Annotated[
            str | None, Field(description="a repeat with the same key creates nothing new")
        ] = None,
        **fields: Any,
    ) -> Answer:
        """Create; answers the new item with id and ETag. The description is markdown."""
        actor, given = current_actor(), _given({"title": title, **fields})
        body = {"create": type, "values": given}
        return batches.once(
            actor,
            idempotency_key,
            body,
            lambda: created_json(write_path.create_item(actor, type, given)),
        )

    @tool(
        "Update fields",
        null_clears=SETTABLE,
        destructive_hint=True,
        idempotent_hint=True,
        open_world_hint=False,
    )
    @field_arguments(WRITTEN, description="whole text; to change a part use write_resource")
    def backlog_update(
        self,
        id: str,
        etag: Annotated[
            str | None, Field(description="refuse if it changed since you read it")
        ] = None,
        **fields: Any,
    ) -> Answer:
        """Set whole fields of a task or epic; null, '' or [] clears one.

        Answers the new ETag and what changed.
        """
        given = {
            name: None if value is Null.SENT else value for name, value in _given(fields).items()
        }
        if not given:
            raise ValidationFailed(
                "Name at least one field to set.", field="title", allowed_values=list(SETTABLE)
            )
        return write_path.write(
            current_actor(), read_many.uri_for(id), {"type": "merge", "value": given}, etag
        )

    @tool("Archive or delete", destructive_hint=True, idempotent_hint=True, open_world_hint=False)
    def backlog_delete(
        self,
        id: Annotated[str, Field(description="id or URI of a task, epic, comment or file")],
        permanent: Annotated[bool, Field(description="for good; admins only")] = False,
        etag: str | None = None,
    ) -> Answer:
        """Archive a thing: it leaves the lists and becomes read-only."""
        uri = read_many.uri_for(id)
        remove = write_path.delete_permanently if permanent else write_path.archive
        remove(current_actor(), uri, etag)
        return {"uri": uri, "deleted": permanent, "archived": not permanent}

    @tool("Edit a part", destructive_hint=True, idempotent_hint=False, open_world_hint=False)
    def write_resource(
        self, uri: str, operation: Operation, etag: str | None = None, dry_run: bool = False
    ) -> Answer:
        """Change a part of a thing without sending the rest.

        Text (…/tasks/TASK-0001/description, files): str_replace old_str new_str [replace_all],
        insert line content, append|prepend content, delete content, set value. Lists (…/evidence):
        array_append|array_prepend value, array_insert index value, array_remove index|value. Whole
        item: merge value, set field value, delete_field field. Any: restore version. Answers ETag
        and diff.
        """
        return write_path.write(current_actor(), uri, operation, etag, dry_run=dry_run)

    @tool("Edit many parts", destructive_hint=True, idempotent_hint=False, open_world_hint=False)
    def write_resource_batch(
        self,
        operations: Annotated[
            list[Answer],
            Field(description="up to 500 of {uri, operation, etag?}, see write_resource"),
        ],
        atomic: Annotated[bool, Field(description="all or nothing; else each for itself")] = True,
        idempotency_key: str | None = None,
        dry_run: bool = False,
        ctx: Context | None = None,
    ) -> Answer:
        """Many edits in one call and one transaction; later ones see earlier ones."""
        return batches.write_batch(
            current_actor(),
            opened(operations),
            atomic=atomic,
            idempotency_key=idempotency_key,
            dry_run=dry_run,
            progress=(lambda done, total: in_loop(ctx.report_progress(done, total)))
            if ctx
            else None,
        )

    @tool("Read any address", read_only_hint=True, open_world_hint=False)
    @documented(categories=", ".join(dict.fromkeys(entry.category for entry in REGISTRY)))
    def get_resource(self, uri: str | None = None) -> Answer:
        """The same as resources/read, for clients that only call tools.

        Without a URI: every address there is, grouped: {categories}. Errors name suggested_actions.
        """
        return discovery.get_resource(current_actor(), uri)


def opened(operations: list[Answer]) -> list[Answer]:
    """Parse operations that were sent as JSON text inside an entry."""
    return [
        {name: from_json(value) if name == "operation" else value for name, value in entry.items()}
        for entry in operations
    ]


def _names(id: str | list[str]) -> list[str]:
    """Return the names.

    A list sent as JSON text is a string to the schema; no id or URI begins like one.
    """
    parsed = from_json(id)
    is_list = isinstance(parsed, list) and all(isinstance(name, str) for name in parsed)
    return parsed if is_list else [str(id)]


def _given(values: Answer) -> Answer:
    return {name: value for name, value in values.items() if value is not None}
