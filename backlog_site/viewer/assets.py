"""Serve IntelligenceBank: the tree, a folder's thumbnails, account linking, and the picker that
attaches assets to a task.
"""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import urlencode

from backlog_site.viewer.queries.items import collection_of
from backlog_site.viewer.shell import actor_of, is_fragment, page, show, whole_number
from resources_app.addresses.uris import build
from resources_app.errors import ValidationFailed
from resources_app.identity.roles import Actor, Person
from resources_app.intelligencebank import browsing, linking
from resources_app.reading.by_address import read
from resources_app.writing import batches
from search_app.search import search_unified

ROOT = "root"
GRID = 60
MOST_ATTACHED = 50
SORTS = {"": "By name", "changed": "Last changed"}


@page()
def home(request: HttpRequest) -> HttpResponse:
    connections = browsing.list_connections(request.user)
    if not connections:
        return show(request, "viewer/assets_none.html", {"nav": "ib"})
    return redirect("viewer:ib_folder", connections[0]["client_id"], ROOT)


@page()
def folder(request: HttpRequest, client_id: str, folder_id: str) -> HttpResponse:
    context = _folder(request, client_id, folder_id)
    if is_fragment(request):
        return show(request, "viewer/_assets.html", context)
    tree = browsing.folder_tree(request.user, client_id)
    opened = {crumb["id"] for crumb in context["folder"]["breadcrumbs"]} | {folder_id}
    context |= {
        "nav": "ib",
        "branches": _branches(tree["folders"], opened),
        "connections": browsing.list_connections(request.user),
        "link": linking.status(request.user, client_id),
    }
    return show(request, "viewer/assets.html", context)


@page("POST")
def link(request: HttpRequest, client_id: str) -> HttpResponse:
    """Begin a sign-in at IntelligenceBank, or check whether it is finished."""
    finished = bool(request.POST.get("finished"))
    status = (
        linking.check(request.user, client_id)
        if finished
        else linking.begin(request.user, client_id)
    )
    if status["state"] == "linked":
        return redirect("viewer:ib_folder", client_id, ROOT)
    context = {"nav": "ib", "link": status, "client_id": client_id, "finished": finished}
    return show(request, "viewer/assets_link.html", context)


@page()
def picker(request: HttpRequest, ref: str) -> HttpResponse:
    """Show a folder in a dialog over the task. The query carries assets chosen in other folders."""
    connections = browsing.list_connections(request.user)
    client_id = request.GET.get("client") or (connections[0]["client_id"] if connections else "")
    chosen = request.GET.getlist("uri")[:MOST_ATTACHED]
    context: dict[str, Any] = {"ref": ref, "chosen": chosen}
    if client_id:
        context |= _folder(request, client_id, request.GET.get("folder", ROOT))
        here = {asset["uri"] for asset in context["assets"]["results"]}
        context |= {"shown_uris": here, "elsewhere": len(set(chosen) - here)}
    return show(request, "viewer/_picker.html", context)


@page("POST")
def attach(request: HttpRequest, ref: str) -> HttpResponse:
    """Add several assets as references of a task, in one batch."""
    actor, chosen = actor_of(request), list(dict.fromkeys(request.POST.getlist("uri")))
    if not chosen or len(chosen) > MOST_ATTACHED:
        raise ValidationFailed(f"Choose 1 to {MOST_ATTACHED} assets.", field="uri")
    target = build(collection_of(ref), ref, "references")
    entries = [{"url": uri, "title": _name_of(actor, uri)[:500]} for uri in chosen]
    operations = [
        {"uri": target, "operation": {"type": "array_append", "value": entry}} for entry in entries
    ]
    batches.write_batch(actor, operations)
    return redirect("viewer:item", ref)


def _name_of(actor: Actor, uri: str) -> str:
    asset = read(actor, uri).contents
    name = asset.get("name") if isinstance(asset, dict) else None
    if not isinstance(name, str):
        raise ValidationFailed("Only assets can be attached.", field="uri", value=uri)
    return name


def _folder(request: HttpRequest, client_id: str, folder_id: str) -> dict[str, Any]:
    words, sort = request.GET.get("search", "").strip(), request.GET.get("sort", "")
    as_list = request.GET.get("view") == "list"
    kept = {"view": "list" if as_list else "", "sort": sort if sort in SORTS else ""}
    folder = browsing.read_folder(request.user, client_id, folder_id, limit=200)
    assets = _assets(request, client_id, folder_id, words, sort)
    return {
        "client_id": client_id,
        "folder": folder,
        "assets": assets,
        "is_bare": not (words or assets["results"] or folder["subfolders"]),
        "words": words,
        "sort": sort,
        "sorts": SORTS,
        "as_list": as_list,
        # The layout and sort order carry over from folder to folder; the search does not.
        "kept": urlencode({name: value for name, value in kept.items() if value}),
    }


def _assets(
    request: HttpRequest, client_id: str, folder_id: str, words: str, sort: str
) -> dict[str, Any]:
    user, cursor = request.user, request.GET.get("cursor", "")
    if words:
        return _found(user, client_id, folder_id, words, cursor)
    if sort == "changed":
        offset = whole_number(cursor) or 0
        return browsing.latest_resources(user, client_id, folder_id, limit=GRID, offset=offset)
    return browsing.read_folder_resources(user, client_id, folder_id, limit=GRID, cursor=cursor)


def _found(user: Person, client_id: str, folder_id: str, words: str, cursor: str) -> dict[str, Any]:
    """Search in the folder itself, or from the top in the whole library.

    Sorts by time, which returns only matches of the words: in a small folder every asset is a near
    semantic match.
    """
    within = f"ib://{client_id}" if folder_id == ROOT else f"ib://{client_id}/folders/{folder_id}"
    hits = search_unified(
        user,
        words,
        types=["ib_resource"],
        parent_id=within,
        sort="recent",
        limit=GRID,
        cursor=cursor or None,
    )
    return {
        **hits,
        "results": browsing.named_resources(
            user, client_id, [hit["id"] for hit in hits["results"]]
        ),
    }


def _branches(folders: list[dict[str, Any]], opened: set[str]) -> list[dict[str, Any]]:
    """Build a tree from the flat list, parents first.

    Children of an invisible folder move to the top.
    """
    branches = {
        one["id"]: {**one, "branches": [], "is_open": one["id"] in opened} for one in folders
    }
    top: list[dict[str, Any]] = []
    for one in branches.values():
        parent = branches.get(one["parent_id"])
        (parent["branches"] if parent else top).append(one)
    return top
