"""Answer logins, sessions, lists and files for the fake.

Independent of sockets; one lock, one clock, one log.
"""

import hashlib
import random
import re
import threading
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial
from typing import Any

from resources_app.intelligencebank.fake import searching, signing_in
from resources_app.intelligencebank.fake.profile import Fault, Profile
from resources_app.intelligencebank.fake.thumbnails import picture
from resources_app.intelligencebank.fake.world import (
    ROOT_ID,
    ZEROS,
    Folder,
    Person,
    Tenant,
    number_of,
)

_EXPRESSION = re.compile(r"(?P<table>folder|resource)(?P<rest>(\.\w+\([^)]*\))*)")
_CALL = re.compile(r"\.(\w+)\(([^)]*)\)")
_RESOURCE_SALT = 0x4E50


@dataclass(frozen=True)
class Reply:
    status: int = 200
    body: Any = None
    raw: bytes = b""
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Logged:
    at: float
    stage: str
    status: int
    session: str


@dataclass
class SessionOf:
    tenant: Tenant
    person: Person
    until: datetime


@dataclass(frozen=True)
class Query:
    table: str
    offset: int
    limit: int
    order: str
    search: dict[str, Any]

    @property
    def stage(self) -> str:
        if self.table == "folder":
            return "folders"
        if searching.is_by_id(self.search):
            return "by_id"
        if searching.has_filter(self.search):
            return "search"
        if self.search.get("ib_folder_s"):
            return "in_folder"
        return "recent" if self.order.startswith("lastUpdateTime") else "resources"


def _html(page: str) -> Reply:
    return Reply(raw=page.encode(), content_type="text/html; charset=utf-8")


class FakeIB:
    """Simulate the service.

    `between` is called after each list, so that a test can change data between two pages.
    """

    def __init__(
        self, profile: Profile | None = None, seed: int = 1, session_hours: float = 8
    ) -> None:
        self.profile = profile or Profile()
        self.chance = random.Random(seed)  # noqa: S311  # a fake must be repeatable
        self.session_hours = session_hours
        self.tenants: dict[str, Tenant] = {}
        self.sessions: dict[str, SessionOf] = {}
        self.pending: dict[str, SessionOf | None] = {}
        self.faults: list[Fault] = []
        self.log: list[Logged] = []
        self.secrets: set[str] = set()
        self.between: Callable[[Query], None] = lambda query: None
        self.sessions_changed: Callable[[], None] = lambda: None
        self.ahead = timedelta()
        self.open_now = self.open_most = 0
        self.lock = threading.RLock()
        self.urls: dict[str, str] = {}
        self._orders: dict[tuple[str, str], tuple[int, list[int]]] = {}
        self._recent_calls: dict[str, deque[float]] = {}

    # For tests

    def tenant(self, client_id: str) -> Tenant:
        if client_id not in self.tenants:
            self.tenants[client_id] = Tenant(
                client_id, touches=lambda change: change in self.profile.touching
            )
            self.tenants[client_id].add_folder("Resources")
        return self.tenants[client_id]

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def expire_sessions(self) -> None:
        with self.lock:
            self.sessions.clear()

    def calls(self, *stages: str) -> int:
        return sum(not stages or entry.stage in stages for entry in self.log)

    def most_calls_within(self, seconds: float) -> int:
        """Return the most calls with a session in any window of this length."""
        times = sorted(entry.at for entry in self.log if entry.session)
        return max(
            (bisect_left(times, at + seconds) - index for index, at in enumerate(times)), default=0
        )

    def finish_browser_login(self, token: str, client_id: str, email: str) -> None:
        """Complete a browser login, as if the user had signed in."""
        tenant = self.tenants[client_id]
        with self.lock:
            self.pending[token] = self._session(tenant, tenant.people[email])
            self.sessions_changed()

    # Logins

    def yapi_address(self) -> Reply:
        return Reply(body={"content": self.urls["v2"]})

    def login(self, form: dict[str, str]) -> Reply:
        for tenant in self.tenants.values():
            person = tenant.people.get(form.get("p70", ""))
            if (
                person
                and person.password == form.get("p80")
                and form.get("p90") == self.host_of(tenant)
            ):
                return Reply(body=self.login_body(self._open(tenant, person)))
        failed = 401 if self.profile.login_failure == "401" else 200
        return Reply(failed, {"message": "Invalid user or password"})

    def host_of(self, tenant: Tenant) -> str:
        return self.urls["platform"].partition("://")[2]

    def login_body(self, sid: str) -> dict[str, Any]:
        session = self.sessions[sid]
        return {
            "sid": sid,
            "clientid": session.tenant.client_id,
            "clientuuid": hashlib.md5(
                session.tenant.client_id.encode(), usedforsecurity=False
            ).hexdigest(),
            "apiV3url": self.urls["v3"],
            "apikey": "apikey",
            "useruuid": session.person.uuid,
            "logintimeoutperiod": str(self.session_hours),
            "rowsOnPage": "100",
            "isResourceMainAdmin": "1" if session.person.is_main_admin else "0",
            "firstname": session.person.email.partition("@")[0].capitalize(),
            "lastname": "",
        }

    def new_token(self) -> Reply:
        with self.lock:
            token = f"tok-{self.chance.getrandbits(96):024x}"
            while token in self.pending:
                token = f"tok-{self.chance.getrandbits(96):024x}"
            self.pending[token] = None
            self.secrets.add(token)
            self.sessions_changed()
        return Reply(body={"SID": "", "content": token})

    def sign_in_page(self, token: str, form: dict[str, str]) -> Reply:
        """Serve the sign-in page for a token. The fake needs no password."""
        tenant = self.tenants.get(form.get("client", ""))
        if token not in self.pending:
            return _html(signing_in.sign_in_is_over())
        if tenant is None or form.get("email") not in tenant.people:
            return _html(signing_in.choice_of_people(self.tenants))
        self.finish_browser_login(token, tenant.client_id, form["email"])
        return _html(signing_in.signed_in(form["email"]))

    def token_status(self, token: str) -> Reply:
        session = self.pending.get(token)
        if session is None:
            return Reply(404, {"error": "Not found"})
        sid = self._open(session.tenant, session.person)
        login = self.login_body(sid)
        given = {"sid": sid, "userUuid": session.person.uuid, "loginTime": time.time()}
        return Reply(body={"SID": sid, "content": {"session": given, "info": login}})

    def _open(self, tenant: Tenant, person: Person) -> str:
        with self.lock:
            sid = f"sid{self.chance.getrandbits(120):030x}"
            while sid in self.sessions:  # a persisted one, issued before a restart
                sid = f"sid{self.chance.getrandbits(120):030x}"
            if self.profile.sessions == "single":
                others = [known for known, one in self.sessions.items() if one.person is person]
                for known in others:
                    del self.sessions[known]
            self.sessions[sid] = self._session(tenant, person)
            self.secrets |= {sid, person.password}
            self.sessions_changed()
        return sid

    def _session(self, tenant: Tenant, person: Person) -> SessionOf:
        return SessionOf(tenant, person, self.now() + timedelta(hours=self.session_hours))

    def session_of(self, sid: str, client_id: str) -> SessionOf | None:
        with self.lock:
            session = self.sessions.get(sid)
            if (
                session is None
                or session.until < self.now()
                or session.tenant.client_id != client_id
            ):
                return None
            if self.profile.session == "sliding":
                self.sessions[sid] = replace(
                    session, until=self.now() + timedelta(hours=self.session_hours)
                )
            return session

    def expired(self) -> Reply:
        if self.profile.expired == "401":
            return Reply(401, {"error": "Unauthorized"})
        return Reply(200, {"error": self.profile.expired_text})

    def overload(self, sid: str) -> Reply | None:
        if not self.profile.calls_per_minute:
            return None
        with self.lock:
            recent = self._recent_calls.setdefault(sid, deque())
            now = time.monotonic()
            while recent and recent[0] < now - 60:
                recent.popleft()
            if len(recent) < self.profile.calls_per_minute:
                recent.append(now)
                return None
        return self.too_many()

    def too_many(self) -> Reply:
        date = format_datetime(datetime.now(UTC) + timedelta(seconds=1))
        said = {"seconds": "1", "hours": "86400", "date": date, "nonsense": "soon"}.get(
            self.profile.retry_after
        )
        headers = {"Retry-After": said} if said else {}
        if self.profile.overload == "200":
            return Reply(200, {"error": "Too many requests"}, headers=headers)
        return Reply(int(self.profile.overload), {"error": "Too many requests"}, headers=headers)

    # Lists

    def parse(self, expression: str, search: dict[str, Any]) -> Query | None:
        match = _EXPRESSION.fullmatch(expression)
        if match is None:
            return None
        calls = dict(_CALL.findall(match["rest"]))
        numbers = [int(part) for part in calls.get("limit", "100").split(",")]
        offset, limit = numbers if len(numbers) == 2 else (0, numbers[0])
        return Query(
            match["table"],
            offset,
            min(limit, self.profile.page_cap),
            calls.get("order", ""),
            search,
        )

    def rows(self, sid: str, session: SessionOf, query: Query) -> Reply:
        with self.lock:
            try:
                rows, count = self._listed(sid, session, query)
            except searching.BadCondition as problem:
                return Reply(400, {"error": f"Bad condition: {problem}"})
            self.between(query)
        return Reply(body={"response": {"rows": rows, "offset": query.offset, "count": count}})

    def _listed(
        self, sid: str, session: SessionOf, query: Query
    ) -> tuple[list[dict[str, Any]], int]:
        tenant, person, cdn = session.tenant, session.person, self.urls["cdn"]
        if query.table == "folder":
            folders = self._folders(tenant, person, str(query.search.get("parent") or ""))
            shown = folders[query.offset : query.offset + query.limit]
            return [tenant.folder_row(folder, person, cdn) for folder in shown], len(folders)
        numbers = self._numbers(tenant, person, query)
        row_of = partial(tenant.resource_row, person=person, sid=sid, cdn=cdn)
        if query.stage == "search":
            found = [(row, self._matched(row, query)) for row in map(row_of, numbers)]
            meant = [row | {"matched": fields} for row, fields in found if fields is not None]
            return meant[query.offset : query.offset + query.limit], len(meant)
        rows = [row_of(number) for number in numbers[query.offset : query.offset + query.limit]]
        if query.stage == "by_id":
            rows = [row | {"matched": {"ib_uuid": row["_id"]}} for row in rows]
        return rows, self._count(tenant, query, len(numbers))

    def _matched(self, row: dict[str, Any], query: Query) -> dict[str, str] | None:
        return searching.matched(row, query.search, self.profile)

    def _folders(self, tenant: Tenant, person: Person, parent: str) -> list[Folder]:
        below = tenant.children()
        if parent == "" and self.profile.root_listing == "children":
            parent = ROOT_ID
        found = below.get(parent or ZEROS, [])
        return [folder for folder in found if tenant.level(person, folder.id)]

    def _numbers(self, tenant: Tenant, person: Person, query: Query) -> list[int]:
        if query.stage == "by_id":
            found = self._with_ids(tenant, str(query.search.get("keywords") or ""))
        elif folder := query.search.get("ib_folder_s"):
            found = tenant.in_folder.get(str(folder), [])
        else:
            found = self._ordered(tenant, query.order)
        if person.is_main_admin:
            return found
        levels = {
            folder: tenant.level(person, folder)
            for folder in {tenant.home[number] for number in found}
        }
        return [number for number in found if levels[tenant.home[number]]]

    def _with_ids(self, tenant: Tenant, keywords: str) -> list[int]:
        numbers = [number_of(_RESOURCE_SALT, word) for word in keywords.split()]
        gone = tenant.deleted if self.profile.deleted == "absent" else {}
        return [number for number in numbers if number in tenant.home and number not in gone]

    def _ordered(self, tenant: Tenant, order: str) -> list[int]:
        recent = order.startswith("lastUpdateTime")
        numbers = tenant.live
        if self.profile.deleted == "status":
            numbers = sorted([*numbers, *tenant.deleted])
        if self.profile.ties == "shuffled":
            noise = {number: self.chance.random() for number in numbers}
            key = tenant.touched if recent else tenant.created
            return sorted(numbers, key=lambda number: (key(number), noise[number]), reverse=recent)
        if not recent:
            return numbers
        known = self._orders.get((tenant.client_id, order))
        if known is None or known[0] != tenant.version:
            newest = sorted(
                numbers, key=lambda number: (tenant.touched(number), number), reverse=True
            )
            known = self._orders[tenant.client_id, order] = (tenant.version, newest)
        return known[1]

    def _count(self, tenant: Tenant, query: Query, visible: int) -> int:
        if query.search or self.profile.count == "visible":
            return visible
        return len(tenant.live) if self.profile.count == "total" else max(tenant.announced, visible)

    # Files

    def file(self, session: SessionOf, identity: str, action: str) -> Reply:
        number = number_of(_RESOURCE_SALT, identity)
        tenant = session.tenant
        if number not in tenant.home or number in tenant.deleted:
            return Reply(404, {"error": "Not found"})
        level = tenant.level(session.person, tenant.home[number])
        if not level or (action == "download" and level == "preview"):
            return Reply(403, {"error": "No permission"})
        headers = {"Content-Disposition": f'attachment; filename="{number}.png"'}
        return Reply(raw=picture(identity), content_type="image/png", headers=headers)
