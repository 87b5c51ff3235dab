"""Implement the stages of a run, one page per step: folders, resources, recent ones, ids.

Each sets the next stage.
"""

import math
from collections.abc import Callable, Sequence
from datetime import datetime

from django.db.models import QuerySet

from resources_app.intelligencebank import client as api
from resources_app.intelligencebank import mapping
from resources_app.intelligencebank.client import ResultPage
from resources_app.intelligencebank.failures import NothingCame, Unreachable
from resources_app.intelligencebank.mapping import FolderFacts, ResourceFacts
from resources_app.intelligencebank.sync import completeness, runs, sweeping, tree
from resources_app.intelligencebank.sync.crawl import Crawl, Place
from resources_app.intelligencebank.sync.pages import Mirror
from resources_app.models import IBFolder, IBResource
from resources_app.models.ib import IBSyncRun

Kind = IBSyncRun.Kind
OVERLAP = 0.1
IMPLICIT_ROOT = "Resources"


def following(page: ResultPage) -> int | None:
    """Return the offset of the next page, stepped back by a tenth because deletions shift the
    remaining rows up.
    """
    end = page.offset + len(page.rows)
    if not page.rows or end >= page.count:
        return None
    return max(page.offset + 1, end - _overlap(page))


def _overlap(page: ResultPage) -> int:
    return max(1, math.ceil(len(page.rows) * OVERLAP))


def start(crawl: Crawl) -> None:
    session = crawl.reopen()
    if crawl.connection.was_main_admin and not session.is_main_admin:
        raise sweeping.Tripped(
            "The account that mirrors is no longer a main admin: it may not see everything."
        )
    with crawl.step({"stage": "folders", "parent": "", "offset": 0}):
        sweeping.remember_rank(crawl.connection, session.is_main_admin)


def folders(crawl: Crawl) -> None:
    place = crawl.place
    page = crawl.fetch(api.folders_in(place["parent"], place["offset"]))
    offset = following(page)
    with crawl.step(place | {"offset": offset}) as mirror:
        facts = mirror.keep_folders(page.rows)
        mirror.counts["folders"] += len(facts)
        _pass_leaves(mirror, facts)
        _plant_root(mirror, place["parent"], facts)
        if offset is None:
            _leave_folder(crawl, mirror, place)


def _pass_leaves(mirror: Mirror, facts: Sequence[FolderFacts]) -> None:
    """Mark leaf folders as visited, so that the search for the next folder does not scan them
    repeatedly.
    """
    leaves = [one.ib_id for one in facts if not one.folders_count]
    rows = IBFolder.objects.filter(connection=mirror.connection, ib_id__in=leaves)
    rows.update(children_generation=mirror.generation)


def _leave_folder(crawl: Crawl, mirror: Mirror, place: Place) -> None:
    """Go to the next folder with subfolders that this run has not visited. Each is visited once."""
    mine = IBFolder.objects.filter(connection=crawl.connection, generation=crawl.run.generation)
    mine.filter(ib_id=place["parent"]).update(children_generation=crawl.run.generation)
    to_visit = mine.filter(children_generation__lt=crawl.run.generation, folders_count__gt=0)
    if found := _first_after(to_visit, place.get("after", 0)) or _first_after(to_visit, 0):
        after, parent = found
        mirror.next_place = place | {"parent": parent, "offset": 0, "after": after}
        return
    mirror.quarantine("folder", tree.settle(crawl.connection).problems())
    mirror.next_place = _after_folders(crawl)


def _first_after(to_visit: QuerySet[IBFolder], pk: int) -> tuple[int, str] | None:
    """Continue after the last match: starting at the first row would scan all visited folders
    again.
    """
    return to_visit.filter(pk__gt=pk).order_by("pk").values_list("pk", "ib_id").first()


def _after_folders(crawl: Crawl) -> Place:
    match crawl.run.kind:
        case Kind.FULL:
            return {"stage": "resources", "offset": 0, "pass": 1, "tail": [], "gaps": 0}
        case Kind.RECONCILE:
            return {"stage": "ids", "after": 0, "only_missing": False}
    return {"stage": "done", "newest": crawl.place.get("newest")}


def _plant_root(mirror: Mirror, parent: str, facts: Sequence[FolderFacts]) -> None:
    """Create the root for tenants that list only its children and name the root by id."""
    if parent:
        return
    named = {one.parent_ib_id for one in facts} - {"", *(one.ib_id for one in facts)}
    for ib_id in named:
        row = {
            "_id": ib_id,
            "parent": mapping.NO_PARENT,
            "name": IMPLICIT_ROOT,
            "folders_count": len(facts),
        }
        mirror.keep_folders([row])
        IBFolder.objects.filter(connection=mirror.connection, ib_id=ib_id).update(
            children_generation=mirror.generation, resources_count=_direct_resources(mirror, ib_id)
        )


def _direct_resources(mirror: Mirror, ib_id: str) -> int:
    """Count the resources of an unlisted root, for which no count is announced."""
    return IBResource.objects.filter(connection=mirror.connection, folder_ib_id=ib_id).count()


def resources(crawl: Crawl) -> None:
    place = crawl.place
    page = _page_or_end(crawl, place)
    offset = following(page)
    crawl.look_ahead(None if offset is None else api.all_resources(offset))
    ids = [mapping.id_of(row) for row in page.rows]
    has_gap = bool(place["tail"]) and not set(place["tail"]) & set(ids)
    passed = place | {
        "offset": offset,
        "tail": ids[-_overlap(page) :],
        "gaps": place["gaps"] + has_gap,
    }
    passed |= {"count": page.count} | ({"stage": "gate"} if offset is None else {})
    with crawl.step(passed) as mirror:
        mirror.keep_resources(page.rows)


def _page_or_end(crawl: Crawl, place: Place) -> ResultPage:
    """Fetch a page.

    A wrong count leads beyond the end of the list; the gate decides whether the run is complete.
    """
    try:
        return crawl.fetch(api.all_resources(place["offset"]))
    except NothingCame:
        if not place["offset"]:
            raise
        return ResultPage([], place["offset"], place["count"])


def gate(crawl: Crawl) -> None:
    """Check completeness: nothing skipped, as many rows as announced, and every folder's count
    matches.
    """
    place = crawl.place
    differing = completeness.differing_folders(crawl.run)
    enough = completeness.seen(crawl.run) >= place["count"]
    if enough and not differing and not place["gaps"]:
        _next(crawl, {"stage": "ids", "after": 0, "only_missing": True})
    elif place["gaps"] and place["pass"] < completeness.MAX_PASSES:
        _again(crawl)
    elif place["gaps"]:
        raise completeness.Incomplete("Rows moved faster than they could be read.")
    elif differing and completeness.is_cheaper(differing, place["count"]):
        _next(
            crawl,
            {"stage": "in_folder", "queue": [pk for pk, _ in differing], "offset": 0, "tries": 0},
        )
    elif place["pass"] < completeness.MAX_PASSES:
        _again(crawl)
    elif differing:
        _next(
            crawl,
            {"stage": "in_folder", "queue": [pk for pk, _ in differing], "offset": 0, "tries": 0},
        )
    else:
        raise completeness.Incomplete("Fewer rows came than were announced.")


def _again(crawl: Crawl) -> None:
    again = {
        "stage": "resources",
        "offset": 0,
        "pass": crawl.place["pass"] + 1,
        "tail": [],
        "gaps": 0,
    }
    with crawl.step(again) as mirror:
        mirror.counts["extra_passes"] += 1


def _next(crawl: Crawl, place: Place) -> None:
    with crawl.step(place):
        pass


def in_folder(crawl: Crawl) -> None:
    """Read the folders whose counts differ, one by one."""
    place = crawl.place
    if not place["queue"]:
        return recount(crawl)
    folder = IBFolder.objects.filter(pk=place["queue"][0]).first()
    if folder is None:
        return _next(crawl, place | {"queue": place["queue"][1:], "offset": 0, "tries": 0})
    page = crawl.fetch(api.resources_in(folder.ib_id, place["offset"]))
    offset = following(page)
    with crawl.step(place | {"offset": offset}) as mirror:
        if place["offset"] == 0:
            completeness.unsee(crawl.run, folder)
        mirror.keep_resources(page.rows)
        if offset is None:
            mirror.next_place = _after_folder(crawl, folder, page.count)
    return None


def _after_folder(crawl: Crawl, folder: IBFolder, count: int) -> Place:
    place = crawl.place
    if completeness.seen_in(crawl.run, folder) == count:
        IBFolder.objects.filter(pk=folder.pk).update(resources_count=count)
    elif place["tries"] < completeness.MAX_PASSES:
        return place | {"offset": 0, "tries": place["tries"] + 1}
    else:
        raise completeness.Incomplete("A folder gave fewer rows than it announced.")
    return place | {"queue": place["queue"][1:], "offset": 0, "tries": 0}


def recount(crawl: Crawl) -> None:
    count = crawl.fetch(api.all_resources(limit=1)).count
    if completeness.seen(crawl.run) < count:
        raise completeness.Incomplete("Fewer rows came than were announced.")
    _next(crawl, {"stage": "ids", "after": 0, "only_missing": True})


def ids(crawl: Crawl) -> None:
    """Fetch a hundred rows by id: all rows, or those a full run did not see and is about to
    hide.
    """
    place = crawl.place
    rows = sweeping.rows_to_ask(crawl.run, only_missing=place["only_missing"])
    chunk = list(
        rows.filter(pk__gt=place["after"]).order_by("pk").values_list("pk", "ib_id")[: api.PAGE]
    )
    if not chunk:
        return _next(crawl, {"stage": "sweep"})
    rows_found = _fetch_by_id(crawl, {ib_id for _, ib_id in chunk})
    with crawl.step(place | {"after": chunk[-1][0]}) as mirror:
        mirror.keep_resources(rows_found)
    return None


def _fetch_by_id(crawl: Crawl, ids: set[str]) -> list[object]:
    """Fetch all existing rows by id.

    A response with fewer rows than its count must not be taken to mean that the rest is gone.
    """
    found: dict[str, object] = {}
    offset: int | None = 0
    while offset is not None:
        page = crawl.fetch(api.resources_by_id(sorted(ids), offset))
        found |= {mapping.id_of(row): row for row in page.rows if mapping.id_of(row) in ids}
        offset = following(page)
    if len(found) < min(page.count, len(ids)):
        raise Unreachable("IntelligenceBank gave fewer rows than it announced.")
    return list(found.values())


def sweep(crawl: Crawl) -> None:
    """Hide missing rows, after a last check of the account's rights.

    No other stage hides anything.
    """
    completeness.refuse_malformed(crawl.run)
    session = crawl.reopen()
    if crawl.connection.was_main_admin and not session.is_main_admin:
        raise sweeping.Tripped(
            "The account that mirrors is no longer a main admin: it may not see everything."
        )
    with crawl.step({"stage": "done"}) as mirror:
        sweeping.mark_missing(crawl.run, mirror)
        tree.settle(crawl.connection)
        runs.complete(crawl.run, completeness.newest(crawl.run))


def recent(crawl: Crawl) -> None:
    """Read from the newest row back to before the last run. Deletions cannot be found this way."""
    place, run = crawl.place, crawl.run
    page = crawl.fetch(api.recent_resources(place.get("offset", 0)))
    offset = following(page)
    times = [at for row in page.rows if (at := _touched(row))]
    newest = max([*times, *_known_newest(place)], default=None)
    watermark = crawl.connection.watermark
    if watermark and times and min(times) < watermark - runs.lookback(crawl.connection):
        offset = None
    else:
        crawl.look_ahead(None if offset is None else api.recent_resources(offset))
    clamped = min(newest, run.started_at).isoformat() if newest else None
    with crawl.step(place | {"offset": offset, "newest": clamped}) as mirror:
        facts = mirror.keep_resources(page.rows)
        if offset is None:
            mirror.next_place = _after_recent(crawl, facts, clamped)


def _after_recent(crawl: Crawl, facts: Sequence[ResourceFacts], newest: str | None) -> Place:
    """Crawl the folders again if a resource is in an unknown folder."""
    grown = IBResource.objects.filter(
        connection=crawl.connection, generation=crawl.run.generation, folder=None
    )
    if grown.exists():
        return {"stage": "folders", "parent": "", "offset": 0, "newest": newest}
    return {"stage": "done", "newest": newest}


def done(crawl: Crawl) -> None:
    """End a run that hides nothing."""
    completeness.refuse_malformed(crawl.run)
    newest = crawl.place.get("newest")
    with crawl.step(crawl.place):
        runs.complete(crawl.run, datetime.fromisoformat(newest) if newest else None)


def _touched(row: object) -> datetime | None:
    return mapping.moment(row.get("lastUpdateTime")) if isinstance(row, dict) else None


def _known_newest(place: Place) -> list[datetime]:
    return [datetime.fromisoformat(place["newest"])] if place.get("newest") else []


STAGES: dict[str, Callable[[Crawl], None]] = {
    "start": start,
    "folders": folders,
    "resources": resources,
    "gate": gate,
    "in_folder": in_folder,
    "ids": ids,
    "sweep": sweep,
    "recent": recent,
    "done": done,
}
