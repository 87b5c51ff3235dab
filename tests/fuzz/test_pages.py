"""Test the viewer's pages with random parameters and forms: shown, redirected or rejected, never a
500.
"""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from tests.fuzz import cases
from tests.fuzz.drawing import Draw
from tests.fuzz.test_in_bulk import PART, SEED
from tests.security.matrix import TABLE, fill
from tests.security.routes import EXAMPLES
from tests.viewer.browsing import signed_in

TOTAL = max(PART, cases.CASES // 10)
# They would only sign out, or start the workers' jobs.
READS = TABLE["pages"]["reads"]
WRITES = {
    **TABLE["pages"]["writes"],
    **dict.fromkeys(set(TABLE["pages"]["others"]) - {"/logout/", "/sync/"}),
}
NAMES = [
    *(
        "before",
        "source",
        "author",
        "view",
        "days",
        "group",
        "status",
        "filter",
        "cursor",
        "q",
        "uri",
        "version",
        "page",
    ),
    *(
        "field",
        "value",
        "index",
        "line",
        "label",
        "checked",
        "etag",
        "ids",
        "batch",
        "token",
        "client",
        "session",
        "name",
    ),
    *(
        "scope",
        "title",
        "description",
        "url",
        "epic_id",
        "body",
        "text",
        "theme",
        "after",
        "limit",
        "sort",
        "from",
        "kind",
    ),
]


def address(draw: Draw, route: str) -> str:
    for variable, example in EXAMPLES.items():
        route = route.replace(
            f"<{variable}>", f"resources/{example}" if variable == "path" else example
        )
    bent = draw.bent(route[1:], "/") if draw.chance(0.05) else route
    # No browser can send an unpaired surrogate.
    return bent.encode(errors="replace").decode()


def ask(draw: Draw, browser: Any) -> Any:
    given = {draw.pick(NAMES): draw.form_value() for _ in range(draw.pick([1, 1, 2, 3]))}
    headers = {"HX-Request": "true"} if draw.chance(0.3) else {}
    if draw.chance(0.5):
        return browser.get(address(draw, draw.pick(READS)), given, headers=headers)
    route = draw.pick(list(WRITES))
    return browser.post(address(draw, route), {**(WRITES[route] or {}), **given}, headers=headers)


@pytest.mark.parametrize("seed", [SEED])
def test_any_page_is_shown_led_on_or_refused(alice: User, seed: str) -> None:
    fill()
    browser = signed_in(alice)
    for part in range(TOTAL // PART):
        draw = Draw(f"{seed}:{part}")
        with transaction.atomic():
            for number in range(PART):
                try:
                    answer = cases.in_time(lambda draw=draw: ask(draw, browser))
                except Exception as error:
                    error.add_note(f"FUZZ_SEED={seed}, part {part}, case {number}")
                    raise
                assert answer.status_code < 500
            transaction.set_rollback(True)
