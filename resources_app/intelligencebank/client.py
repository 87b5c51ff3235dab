"""Call the IntelligenceBank API: addresses, logins, lists, single rows and files.

Does not touch our database.
"""

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol
from urllib.parse import quote

from resources_app.intelligencebank.failures import (
    AuthRequired,
    NothingCame,
    Refused,
    SessionExpired,
    Unreachable,
)
from resources_app.intelligencebank.mapping import clean_text
from resources_app.intelligencebank.retrying import Patience, retry_after
from resources_app.intelligencebank.transport import RawResponse, Transport

PAGE = 100
MAX_LOGIN_HOURS = 120
DEFAULT_LOGIN_HOURS = 1
EXPIRED = frozenset(
    {
        "Invalid request",
        "Invalid response",
        "No valid session. Authentication is required",
        "error.authentication.required",
    }
)
_OVERLOADED = re.compile(r"limit|too many|throttl|busy|try again", re.IGNORECASE)
_CLIENT_ID = re.compile(r"[A-Za-z0-9]{2,64}")
_ID = re.compile(r"[0-9a-f]{32}")
# Sent in headers and URLs, which are ASCII.
_SID = re.compile(r"[\w.~+/=-]{8,512}", re.ASCII)
_TOKEN = re.compile(r"[\w.~-]{8,512}", re.ASCII)
_UUID = re.compile(r"[\x21-\x7e]{1,64}")
_MAX_COUNT = 2**53

Row = dict[str, Any]


@dataclass(frozen=True)
class Session:
    """Hold the result of a login. The sid is excluded from its repr."""

    sid: str = field(repr=False)
    client_id: str
    api_url: str
    user_uuid: str
    expires_at: datetime
    is_main_admin: bool = False
    person: str = ""


@dataclass(frozen=True)
class ResultPage:
    rows: list[Any]
    offset: int
    count: int


@dataclass(frozen=True)
class Listing:
    """Describe one page of a table, as `table.limit(a,b).order(field)` plus search parameters."""

    table: str
    offset: int = 0
    limit: int = PAGE
    order: str = ""
    search: tuple[tuple[str, Any], ...] = ()

    @property
    def expression(self) -> str:
        order = f".order({self.order})" if self.order else ""
        return f"{self.table}.limit({self.offset},{self.limit}){order}"


def folders_in(parent: str, offset: int = 0) -> Listing:
    """List the subfolders of a folder. An empty parent is the root level."""
    return Listing("folder", offset, order="createTime", search=(("parent", parent),))


def resources_in(folder: str, offset: int = 0) -> Listing:
    return Listing("resource", offset, order="createTime", search=(("ib_folder_s", folder),))


def all_resources(offset: int = 0, limit: int = PAGE) -> Listing:
    return Listing("resource", offset, limit, order="createTime")


def recent_resources(offset: int = 0) -> Listing:
    return Listing("resource", offset, order="lastUpdateTime:-1")


def resources_by_id(ids: Sequence[str], offset: int = 0) -> Listing:
    """List up to a page of ids in one call. This is the only known way to fetch single rows."""
    search = (("keywords", " ".join(ids)), ("content", ["ib_uuid"]), ("isSearching", True))
    return Listing("resource", offset, search=search)


class Pace(Protocol):
    """Wait before a call that carries a session, per session owner. Raises BudgetSpent."""

    def __call__(self, user_uuid: str) -> None: ...


def unpaced(user_uuid: str) -> None:
    """Do not wait. Used for calls before the user is known."""


class IBClient:
    def __init__(
        self,
        platform_url: str,
        transport: Transport,
        *,
        pace: Pace = unpaced,
        patience: Patience | None = None,
    ) -> None:
        self.platform_url = platform_url.rstrip("/")
        self.transport = transport
        self.pace = pace
        self.patience = patience or Patience()

    def close(self) -> None:
        self.transport.close()

    # Logins

    def address(self) -> str:
        """Return the address of this platform's older API. Each login names the newer one."""
        found = self._ask("GET", f"{self.platform_url}/v1/auth/app/getYapiAddress").get("content")
        return self._checked(found)

    def login(self, email: str, password: str, product_key: str = "") -> Session:
        """Log in with a single attempt: repeating a wrong password may lock the account."""
        url = f"{self.address()}/webapp/1.0/login"
        form = {"p70": email, "p80": password, "p90": self.platform_url.partition("://")[2]}
        form |= {"p60": product_key} if product_key else {}
        answer = self.transport.exchange("POST", url, data=form)
        if answer.status in {401, 403}:
            raise AuthRequired("IntelligenceBank refused the e-mail address or the password.")
        _raise_for_status(answer)
        return self._session(_json(answer))

    def start_browser_login(self) -> tuple[str, str]:
        """Return a token to poll with, and the URL the user opens."""
        token = self._ask("POST", f"{self.platform_url}/v1/auth/app/token").get("content")
        if not isinstance(token, str) or not _TOKEN.fullmatch(token):
            raise Unreachable("IntelligenceBank gave no login token.")
        return token, self.sign_in_url(token)

    def sign_in_url(self, token: str) -> str:
        return f"{self.platform_url}/auth/?login=0&token={quote(token)}"

    def poll_browser_login(self, token: str) -> Session | None:
        """Return the session, or None while the user has not finished."""
        url = f"{self.platform_url}/v1/auth/app/info"
        answer = self.transport.exchange("GET", url, params={"token": token})
        if answer.status == 404:
            return None
        _raise_for_status(answer)
        content = _object(_json(answer).get("content"))
        given, login = _object(content.get("session")), _object(content.get("info"))
        return self._session(login | {"sid": given.get("sid"), "useruuid": given.get("userUuid")})

    def _session(self, login: Row) -> Session:
        if "message" in login and "sid" not in login:
            if (
                _OVERLOADED.search(str(login["message"]))
                or "server error" in str(login["message"]).lower()
            ):
                raise Unreachable("IntelligenceBank could not log in at the moment.")
            raise AuthRequired("IntelligenceBank refused the e-mail address or the password.")
        sid, client_id, uuid = (
            str(login.get(name) or "") for name in ("sid", "clientid", "useruuid")
        )
        if not (_SID.fullmatch(sid) and _CLIENT_ID.fullmatch(client_id) and _UUID.fullmatch(uuid)):
            raise Unreachable("The login answer of IntelligenceBank is incomplete.")
        return Session(
            sid=sid,
            client_id=client_id,
            api_url=self._checked(login.get("apiV3url")),
            user_uuid=uuid,
            expires_at=datetime.now(UTC) + timedelta(hours=_hours(login.get("logintimeoutperiod"))),
            is_main_admin=str(login.get("isResourceMainAdmin")).lower() in {"1", "true"},
            person=clean_text(f"{login.get('firstname') or ''} {login.get('lastname') or ''}", 200),
        )

    # Rows and files

    def fetch(self, session: Session, listing: Listing) -> ResultPage:
        return self.patience.persist(lambda: self._fetch(session, listing))

    def _fetch(self, session: Session, listing: Listing) -> ResultPage:
        self.pace(session.user_uuid)
        body = {
            "method": "GET",
            "version": "3.0.0",
            "client": session.client_id,
            "table": listing.expression,
            "query_params": {"verbose": True, "searchParams": dict(listing.search)},
        }
        answer = self.transport.exchange(
            "POST", f"{session.api_url}/api/json", json=body, headers={"sid": session.sid}
        )
        return _page(_rows(answer), listing)

    def fetch_by_url(self, session: Session, listing: Listing) -> ResultPage:
        """Fetch by GET, the documented form."""

        def call() -> ResultPage:
            self.pace(session.user_uuid)
            url = f"{session.api_url}/api/3.0.0/{quote(session.client_id)}/{listing.expression}"
            params = {f"searchParams[{name}]": value for name, value in listing.search} | {
                "verbose": "true"
            }
            answer = self.transport.exchange(
                "GET", url, params=params, headers={"sid": session.sid}
            )
            return _page(_rows(answer), listing)

        return self.patience.persist(call)

    def open_file(self, session: Session, resource_id: str, action: str = "download") -> Any:
        """Return a context manager with the response; the caller reads as much as it needs."""
        if not _ID.fullmatch(resource_id):
            raise Refused("This is not the id of a resource.", 404)
        self.pace(session.user_uuid)
        url = f"{session.api_url}/api/3.0.0/{quote(session.client_id)}/resource/{resource_id}"
        return self.transport.stream(
            "GET", url, params={"action": action}, headers={"sid": session.sid}, total=600
        )

    def open_public(self, url: str) -> RawResponse:
        """Fetch a thumbnail without sending a session."""
        return self.patience.persist(lambda: self.transport.exchange("GET", url))

    def _ask(self, method: str, url: str) -> Row:
        def call() -> Row:
            answer = self.transport.exchange(method, url)
            _raise_for_status(answer)
            return _json(answer)

        return self.patience.persist(call)

    def _checked(self, url: Any) -> str:
        if not isinstance(url, str):
            raise Unreachable("IntelligenceBank named no API address.")
        return self.transport.hosts.check(url)


def renewing(
    call: Callable[[Session], ResultPage], session: Session, renew: Callable[[Session], Session]
) -> tuple[ResultPage, Session]:
    """Log in once more if the session has expired. A second rejection raises AuthRequired."""
    try:
        return call(session), session
    except SessionExpired:
        session = renew(session)
    try:
        return call(session), session
    except SessionExpired:
        raise AuthRequired("IntelligenceBank refuses a session that was just opened.") from None


def _rows(answer: RawResponse) -> Row:
    if answer.status == 401:
        raise SessionExpired("The session has expired.")
    _raise_for_status(answer)
    body = _json(answer)
    if error := body.get("error"):
        if error in EXPIRED:
            raise SessionExpired("The session has expired.")
        if _OVERLOADED.search(str(error)):
            raise Unreachable("IntelligenceBank rate limit reached.", retry_after(answer.headers))
        raise Refused("IntelligenceBank refused the call.")
    return body


def _page(body: Row, listing: Listing) -> ResultPage:
    response = body.get("response")
    rows = response.get("rows") if isinstance(response, dict) else None
    count = response.get("count") if isinstance(response, dict) else None
    if isinstance(count, str) and count.isascii() and count.isdigit():
        count = int(count[:18])
    if (
        not isinstance(rows, list)
        or not isinstance(count, int)
        or isinstance(count, bool)
        or not 0 <= count < _MAX_COUNT
    ):
        raise Unreachable("The answer of IntelligenceBank has another shape than expected.")
    if not rows and count > listing.offset:
        raise NothingCame("IntelligenceBank announced rows and gave none.")
    return ResultPage(rows[: listing.limit], listing.offset, count)


def _raise_for_status(answer: RawResponse) -> None:
    if answer.status == 200:
        return
    if answer.status == 429:
        raise Unreachable("IntelligenceBank rate limit reached (429).", retry_after(answer.headers))
    if answer.status >= 500:
        raise Unreachable(
            f"IntelligenceBank answered {answer.status}.", retry_after(answer.headers)
        )
    raise Refused(f"IntelligenceBank answered {answer.status}.", answer.status)


def _json(answer: RawResponse) -> Row:
    try:
        return _object(json.loads(answer.body))
    except (ValueError, RecursionError):
        raise Unreachable("IntelligenceBank answered with something that is not JSON.") from None


def _object(value: Any) -> Row:
    if not isinstance(value, dict):
        raise Unreachable("The answer of IntelligenceBank has another shape than expected.")
    return value


def _hours(given: Any) -> float:
    """Return the login period, which is in hours although some clients assume otherwise."""
    try:
        hours = float(given)
    except (TypeError, ValueError, OverflowError):
        return DEFAULT_LOGIN_HOURS
    return DEFAULT_LOGIN_HOURS if math.isnan(hours) else min(max(hours, 0.01), MAX_LOGIN_HOURS)
