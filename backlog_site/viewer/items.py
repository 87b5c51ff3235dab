"""Show a task or epic as a page or pane, and handle its edits.

An edit carries the ETag its author saw.
"""

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.utils.safestring import SafeString

from backlog_site.viewer import charts
from backlog_site.viewer.field_inputs import inputs, single_values, typed_value
from backlog_site.viewer.markdown import render as markdown
from backlog_site.viewer.queries import boards, insights, items
from backlog_site.viewer.queries.people import team
from backlog_site.viewer.shell import actor_of, is_fragment, page, show, wants_json, whole_number
from resources_app.addresses.uris import build
from resources_app.errors import Conflict, ValidationFailed
from resources_app.fields.declarations import parse_ref, writable_fields
from resources_app.interchange import convert_links
from resources_app.vocabulary import Kind, Priority, Status
from resources_app.writing import batches, checklists, write_path
from search_app.mentions import mentioned_in

BURN_UP_DAYS = 60
MIN_DAYS = 3
# The fields saved by the editor and the conflict form.
EDITED = tuple(field.name for field in single_values(Kind.TASK))
LISTS = tuple(
    field.name
    for field in writable_fields(Kind.TASK)
    if field.shape == "array" and field.type != "groups"
)


@page()
def item(request: HttpRequest, ref: str) -> HttpResponse:
    return _item(request, ref)


def _item(request: HttpRequest, ref: str, **extra: Any) -> HttpResponse:
    template = "viewer/_item.html" if is_fragment(request) else "viewer/item.html"
    return show(request, template, {**item_context(request, ref), **extra})


def item_context(request: HttpRequest, ref: str) -> dict[str, Any]:
    found = items.item_page(actor_of(request), ref)
    return {
        "nav": "epics" if found.item["type"] == "epic" else "board",
        "page": found,
        "item": found.item,
        "inputs": inputs(found.item["type"], found.item, found.etags),
        "html": markdown(found.item["description"], may_tick=found.may_write),
        "has_local_links": "file://" in found.item["description"],
        # A larger epic would need its whole history; insights read that for all tasks at once.
        "burn_up": _burn_up(request, ref) if 0 < len(found.tasks) < items.MOST else "",
        **_offered(request),
    }


def _burn_up(request: HttpRequest, ref: str) -> SafeString | str:
    """Draw the burn-up chart, or return "" where its lines would be points."""
    flow = insights.flow(request.user, BURN_UP_DAYS, epic=parse_ref(ref, "EPIC"))
    if flow.known_days < MIN_DAYS:
        return ""
    first = next(at for at, number in enumerate(flow.scope) if number)
    series = [("scope", "Scope", flow.scope[first:]), ("done", "Done", flow.done[first:])]
    return charts.lines(
        flow.days[first:], series, f"Burn-up of {ref}: {flow.done[-1]} of {flow.scope[-1]} done"
    )


def _offered(request: HttpRequest) -> dict[str, Any]:
    return {
        "statuses": Status.labels,
        "priorities": Priority.labels,
        "people": team(),
        "epics": boards.choices(request.user).epics,
    }


@page()
def hover(request: HttpRequest, ref: str) -> HttpResponse:
    line, whole, epic = items.known_by(actor_of(request), ref)
    return show(request, "viewer/_hover.html", {"line": line, "item": whole, "epic": epic})


@page()
def links(request: HttpRequest, ref: str) -> HttpResponse:
    """Show backlinks. Loaded after the rest, because it is a search."""
    return show(request, "viewer/_links.html", {"mentions": mentioned_in(request.user, ref)})


@page()
def history(request: HttpRequest, ref: str) -> HttpResponse:
    before = whole_number(request.GET.get("before", ""))
    found = items.history_page(actor_of(request), ref, before or 10**9)
    return show(request, "viewer/_history.html", {"history": found, "item": {"id": ref}})


@page("GET", "HEAD", "POST")
def edit(request: HttpRequest, ref: str) -> HttpResponse:
    """Edit title and description in one form, also without JavaScript.

    POST saves every field it carries.
    """
    if request.method == "POST":
        return _save(request, ref)
    found = items.item_page(actor_of(request), ref)
    template = "viewer/_edit.html" if is_fragment(request) else "viewer/edit.html"
    context = {
        "nav": "board",
        "page": found,
        "item": found.item,
        "description": found.item["description"],
        "inputs": inputs(found.item["type"], found.item, found.etags),
    }
    return show(request, template, context)


def _save(request: HttpRequest, ref: str) -> HttpResponse:
    """Save in one batch, so that a conflict in one field saves none.

    The conflict form returns a choice in `take`.
    """
    actor = actor_of(request)
    edits = items.changed(actor, ref, _edits(request))
    if request.POST.get("take") == "theirs":
        edits = [one for one in edits if f"{one.name}_mine" not in request.POST]
    operations = [
        {
            "uri": build(items.collection_of(ref), ref, one.name),
            "operation": {"type": "set", "value": one.value},
            "etag": one.etag or None,
        }
        for one in edits
    ]
    try:
        answer = batches.write_batch(actor, operations) if operations else {"results": []}
    except Conflict:
        if wants_json(request):
            raise
        return _clash(request, ref, edits)
    return JsonResponse(answer) if wants_json(request) else _done(request, ref)


def _edits(request: HttpRequest) -> list[items.FieldEdit]:
    """Return the edits. With `take=mine` the author's own text counts, not the merge beside it."""
    taken = "_mine" if request.POST.get("take") == "mine" else ""
    found = []
    for name in EDITED:
        value = request.POST.get(name + taken, request.POST.get(name))
        if value is not None:
            found.append(
                items.FieldEdit(
                    name, typed_value(name, _unix(value)), request.POST.get(f"{name}_etag", "")
                )
            )
    return found


def _unix(text: str) -> str:
    """Convert CRLF, which browsers send, to LF."""
    return text.replace("\r\n", "\n")


@page("POST")
def set_field(request: HttpRequest, ref: str) -> HttpResponse:
    name, value = request.POST.get("field", ""), _unix(request.POST.get("value", ""))
    etag = request.POST.get("etag") or None
    uri = build(items.collection_of(ref), ref, name)
    try:
        answer = write_path.write(
            actor_of(request), uri, {"type": "set", "value": typed_value(name, value)}, etag
        )
    except Conflict:
        if wants_json(request):
            raise
        return _clash(request, ref, [items.FieldEdit(name, value, etag or "")])
    return JsonResponse(answer) if wants_json(request) else _done(request, ref)


def _clash(request: HttpRequest, ref: str, edits: list[items.FieldEdit]) -> HttpResponse:
    found = items.clashes(actor_of(request), ref, edits)
    stale = [one for one in found if one.is_stale]
    context = {
        "nav": "board",
        "ref": ref,
        "clashes": found,
        "stale": stale,
        "writers": sorted({name for one in stale for name in one.writers}),
        "has_text": any(one.is_text for one in stale),
    }
    template = "viewer/_clash.html" if is_fragment(request) else "viewer/clash.html"
    response = show(request, template, context, status=409)
    response["HX-Retarget"], response["HX-Reswap"] = "#dialog .dialog-body", "innerHTML"
    return response


def _done(request: HttpRequest, ref: str) -> HttpResponse:
    return _item(request, ref) if is_fragment(request) else redirect("viewer:item", ref)


@page("POST")
def edit_list(request: HttpRequest, ref: str) -> HttpResponse:
    """Add or remove one entry of a list."""
    name, value, index = (request.POST.get(part, "") for part in ("field", "value", "index"))
    if name not in LISTS:
        raise ValidationFailed(
            f"{name!r} is not a list.", field="field", allowed_values=list(LISTS)
        )
    entry: Any = (
        {"url": value, "title": request.POST.get("title", "")}
        if name == "references"
        else value.strip()
    )
    appended = {"type": "array_append", "value": entry}
    number = whole_number(index)
    operation = appended if number is None else {"type": "array_remove", "index": number}
    etag = request.POST.get("etag") if index else None
    write_path.write(
        actor_of(request), build(items.collection_of(ref), ref, name), operation, etag or None
    )
    return _done(request, ref)


@page("POST")
def tick(request: HttpRequest, ref: str) -> HttpResponse:
    line, label = whole_number(request.POST.get("line", "")), request.POST.get("label", "")
    checked = request.POST.get("checked") == "true"
    uri = build(items.collection_of(ref), ref)
    checklists.tick(actor_of(request), uri, -1 if line is None else line, label, checked=checked)
    return _done(request, ref)


@page("POST")
def comment(request: HttpRequest, ref: str) -> HttpResponse:
    body = _unix(request.POST.get("body", ""))
    write_path.add_comment(actor_of(request), build(items.collection_of(ref), ref), body)
    return _done(request, ref)


@page("POST")
def reword(request: HttpRequest, ref: str, number: int) -> HttpResponse:
    """Edit or delete a comment."""
    actor, uri, etag = (
        actor_of(request),
        build("comments", str(number)),
        request.POST.get("etag") or None,
    )
    if request.POST.get("remove"):
        write_path.archive(actor, uri, etag)
    else:
        body = _unix(request.POST.get("body", ""))
        write_path.write(actor, uri, {"type": "set", "value": body}, etag)
    return _done(request, ref)


@page("POST")
def restore(request: HttpRequest, ref: str) -> HttpResponse:
    version = request.POST.get("version", "")
    operation = {"type": "restore", "version": whole_number(version) or version}
    write_path.write(actor_of(request), build(items.collection_of(ref), ref), operation)
    return _done(request, ref)


@page("POST")
def archive(request: HttpRequest, ref: str) -> HttpResponse:
    uri = build(items.collection_of(ref), ref)
    change = write_path.unarchive if request.POST.get("back") else write_path.archive
    change(actor_of(request), uri)
    return _done(request, ref)


@page("POST")
def convert(request: HttpRequest, ref: str) -> HttpResponse:
    """Convert links to local files into portable addresses, where they exist."""
    converted = convert_links.convert_description(
        actor_of(request), build(items.collection_of(ref), ref)
    )
    return (
        _item(request, ref, converted=converted)
        if is_fragment(request)
        else redirect("viewer:item", ref)
    )


@page("GET", "HEAD", "POST")
def create(request: HttpRequest) -> HttpResponse:
    if request.method != "POST":
        return _create_form(request)
    labels = [label.strip() for label in request.POST.get("labels", "").split(",") if label.strip()]
    kind = Kind.EPIC if request.POST.get("kind") == "epic" else Kind.TASK
    given = {
        field.name: typed_value(field.name, _unix(request.POST[field.name]))
        for field in single_values(kind)
        if request.POST.get(field.name)
    }
    made = write_path.create_item(actor_of(request), kind, {**given, "labels": labels})
    return (
        JsonResponse({"ref": made.ref})
        if wants_json(request)
        else redirect("viewer:item", made.ref)
    )


def _create_form(request: HttpRequest) -> HttpResponse:
    template = "viewer/_create.html" if is_fragment(request) else "viewer/create.html"
    preset = {name: request.GET.get(name, "") for name in ("kind", "status", "epic_id")}
    return show(
        request,
        template,
        {"nav": "board", "values": preset, "inputs": inputs(Kind.TASK), **_offered(request)},
    )


@page()
def epics(request: HttpRequest) -> HttpResponse:
    return show(request, "viewer/epics.html", {"nav": "epics", "epics": items.epics(request.user)})
