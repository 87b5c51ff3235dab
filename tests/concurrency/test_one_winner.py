"""Test fifty processes that edit one description under ETags: one winner per ETag, and with retries
all fifty edits.
"""

from collections import Counter
from typing import Any

from resources_app.addresses.uris import parse
from resources_app.errors import Conflict
from resources_app.models import Task
from resources_app.reading.registry import target_of
from resources_app.writing import write_path
from resources_app.writing.session import current_etag
from tests.concurrency.crew import line_up, send, together
from tests.factories import make_task, system, task_uri

WRITERS = 50


def edit_until_it_is_in(writer: int) -> dict[str, Any]:
    """Edit from the same ETag. A loser continues from the ETag in the conflict."""
    actor, task = system(), Task.objects.get()
    uri = task_uri(task, "description")
    etag = current_etag(task, target_of(parse(uri)))
    lost: list[str] = []
    line_up()
    while True:
        try:
            answer = write_path.write(
                actor, uri, {"type": "append", "content": f"edit {writer}\n"}, etag
            )
        except Conflict as conflict:
            lost.append(etag)
            etag = conflict.details["current_etag"]
        else:
            return {"won": etag, "lost": lost, "version": answer["version"]}


def edit_together() -> dict[str, Any]:
    system()
    make_task()
    outcomes = together(edit_until_it_is_in, range(WRITERS))
    return {"outcomes": outcomes, "lines": Task.objects.get().description.splitlines()}


def test_one_winner_for_each_etag_and_all_fifty_edits(variables: dict[str, str]) -> None:
    found = send(variables, edit_together)
    outcomes = found["outcomes"]
    winners = Counter(outcome["won"] for outcome in outcomes)
    assert len(winners) == WRITERS
    assert set(winners.values()) == {1}
    assert sorted(outcome["version"] for outcome in outcomes) == list(range(2, WRITERS + 2))
    assert sorted(found["lines"]) == sorted(f"edit {writer}" for writer in range(WRITERS))
    losers = [outcome for outcome in outcomes if outcome["lost"]]
    assert len(losers) == WRITERS - 1, (
        "all started from one ETag, so all but one must have lost once"
    )
