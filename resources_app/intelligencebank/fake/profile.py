"""Switch between possible behaviours of IntelligenceBank that are undocumented, and inject network
faults.
"""

import random
import re
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args, get_type_hints

# What IntelligenceBank says of a session that has ended.
AUTH_ERRORS = (
    "Invalid request",
    "Invalid response",
    "No valid session. Authentication is required",
    "error.authentication.required",
)
TOUCHES = ("move", "tag", "permission", "folder_move")


@dataclass(frozen=True)
class Profile:
    """Hold the switches. The defaults are the most likely behaviours."""

    expired: Literal["401", "200"] = "401"
    expired_text: str = AUTH_ERRORS[0]
    login_failure: Literal["200", "401"] = "200"
    overload: Literal["429", "503", "200"] = "429"
    retry_after: Literal["", "seconds", "hours", "date", "nonsense"] = ""
    page_cap: int = 100
    deleted: Literal["absent", "status"] = "absent"
    count: Literal["visible", "total", "stale"] = "visible"
    ties: Literal["stable", "shuffled"] = "stable"
    # Events that change a resource's lastUpdateTime, beside a change of its fields. folder_move
    # refers to the parent folder.
    touching: frozenset[str] = frozenset({"move", "tag", "permission"})
    session: Literal["absolute", "sliding"] = "absolute"
    sessions: Literal["many", "single"] = "many"
    root_listing: Literal["root", "children"] = "root"
    # Time ranges in wrapped_conditions. No known client uses them.
    ranges: Literal["refused", "ignored", "honoured"] = "refused"
    calls_per_minute: int = 0


def switched(profile: Profile, name: str, value: str) -> Profile:
    """Set a switch by name and word, as typed by a user.

    Raises ValueError with the valid choices.
    """
    kinds = get_type_hints(Profile)
    if name not in kinds:
        raise ValueError(f"{name!r} is no switch; there are {', '.join(kinds)}.")
    words = TOUCHES if name == "touching" else get_args(kinds[name])
    given = value.split("+") if name == "touching" and value else [value]
    if words and not {*given} - {""} <= {*words}:
        raise ValueError(f"{name} is one of {', '.join(map(repr, words))}.")
    read: Any = {int: int, frozenset[str]: lambda _: frozenset(given) - {""}}.get(kinds[name], str)
    return replace(profile, **{name: read(value)})


# Kinds of failure. A plain number is an HTTP status.
FAULTS = (
    *("400", "401", "403", "404", "409", "429", "500", "503"),
    *("html", "slow_headers", "slow_body", "truncated", "bad_json", "null_response", "rows_object"),
    *(
        "reset",
        "reset_body",
        "redirect",
        "gzip_bomb",
        "gzip_twice",
        "empty_rows",
        "duplicates",
        "bad_rows",
    ),
)
STAGES = (
    "address",
    "login",
    "folders",
    "resources",
    "in_folder",
    "recent",
    "by_id",
    "search",
    "file",
)


@dataclass
class Fault:
    """Inject a fault into calls of one stage: `times` calls from the n-th on, with a
    probability.
    """

    kind: str
    stage: str = ""
    path: str = ""
    nth: int = 1
    times: int = 1
    probability: float = 1.0
    seen: int = field(default=0, init=False)

    def strikes(self, stage: str, path: str, chance: random.Random) -> bool:
        if (self.stage and self.stage != stage) or (self.path and not re.search(self.path, path)):
            return False
        self.seen += 1
        return self.nth <= self.seen < self.nth + self.times and chance.random() < self.probability
