"""Serve the overview pages: desk, activity, insights and background work."""

import json
import re

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone

from backlog_site.viewer import charts
from backlog_site.viewer.queries import activity, desk, insights, schedule
from backlog_site.viewer.queries.people import team
from backlog_site.viewer.shell import actor_of, is_fragment, page, person_of, show, whole_number
from resources_app.errors import ValidationFailed
from resources_app.interchange.manual_runs import start
from resources_app.reading.by_address import read

PUT_OFF = "put_off"
MOST_PUT_OFF = 50
_REF = re.compile(r"[A-Z]{3,4}-\d{4,12}")
SOURCES = {"": "All authors", "people": "People", "agents": "Agents"}
KINDS = {
    "": "Everything",
    "task": "Tasks",
    "epic": "Epics",
    "comment": "Comments",
    "resource": "Resources",
    "ib": "IntelligenceBank",
}


@page()
def my_desk(request: HttpRequest) -> HttpResponse:
    user = person_of(request)
    by_agents = activity.deeds(user, source="agents", limit=12).rows
    matters = desk.matters(user, _put_off(request))
    context = {
        "nav": "desk",
        "matters": matters,
        "next_up": desk.next_up(user),
        "by_agents": by_agents,
    }
    return show(request, "viewer/desk.html", context)


@page("POST")
def put_off(request: HttpRequest) -> HttpResponse:
    """Hide an item from this browser's desk until tomorrow."""
    today = timezone.localdate()
    response = redirect("viewer:desk")
    refs = [*_put_off(request), request.POST.get("ref", "")]
    kept = " ".join([today.isoformat(), *filter(_REF.fullmatch, refs[-MOST_PUT_OFF:])])
    response.set_cookie(
        PUT_OFF, kept, max_age=24 * 3600, httponly=True, samesite="Lax", secure=request.is_secure()
    )
    return response


def _put_off(request: HttpRequest) -> list[str]:
    day, *refs = request.COOKIES.get(PUT_OFF, "").split() or [""]
    return refs if day == timezone.localdate().isoformat() else []


@page()
def happened(request: HttpRequest) -> HttpResponse:
    before, source, author, kind = (
        request.GET.get(name, "") for name in ("before", "source", "author", "type")
    )
    found = activity.deeds(
        request.user, before=whole_number(before), source=source, author=author, kind=kind
    )
    context = {
        "nav": "activity",
        "days": activity.by_day(found.rows),
        "older": found.older,
        "as_journal": request.GET.get("view") == "journal",
        "sources": SOURCES,
        "source": source,
        "kinds": KINDS,
        "kind": kind,
        "is_filtered": bool(source or author or kind),
        "author": author,
        "people": team(),
    }
    return show(
        request, "viewer/_days.html" if is_fragment(request) else "viewer/activity.html", context
    )


@page()
def flow(request: HttpRequest) -> HttpResponse:
    length = request.GET.get("days", "60")
    if length not in {str(known) for known in insights.RANGES}:
        raise ValidationFailed(
            "days must be 30, 60 or 90.", field="days", value=length, allowed_values=insights.RANGES
        )
    found = insights.flow(request.user, int(length))
    standing = [
        (name, name.replace("_", " ").capitalize(), values)
        for name, values in found.standing.items()
    ]
    context = {
        "nav": "insights",
        "flow": found,
        "ranges": insights.RANGES,
        "length": int(length),
        "standing": charts.stacked(found.days, standing, f"Cumulative flow, last {length} days"),
        "burn_up": charts.lines(
            found.days,
            [("scope", "Scope", found.scope), ("done", "Done", found.done)],
            f"Burn-up, last {length} days",
        ),
        "throughput": charts.columns(
            found.days,
            found.finished,
            found.finished_by_agents,
            f"Tasks completed per day, last {length} days",
        ),
    }
    return show(request, "viewer/insights.html", context)


@page("GET", "HEAD", "POST")
def jobs(request: HttpRequest) -> HttpResponse:
    actor = actor_of(request)
    if request.method == "POST":
        start(actor, request.POST.get("kind", ""), request.POST.get("again", ""))
    rows = read(actor, "workflow://workflows").contents["results"][:50]
    shown = [{**job, "progress_text": _progress(job["progress"])} for job in rows]
    context = {"nav": "sync", "jobs": shown, "may_run": actor.is_admin}
    if is_fragment(request):
        return show(request, "viewer/_jobs.html", context)
    return show(request, "viewer/jobs.html", {**context, "planned": schedule.planned(actor.user)})


def _progress(progress: dict[str, object]) -> str:
    if not progress:
        return ""
    if progress.get("total"):
        return " · ".join(
            filter(
                None,
                (f"{progress.get('done')} of {progress['total']}", str(progress.get("note", ""))),
            )
        )
    return str(progress.get("note") or progress.get("done") or json.dumps(progress))
