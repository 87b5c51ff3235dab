"""`make mutants`: plants one bug after the other in a copy of the code, and each suite must catch its own.

A suite that stays green with a bug in what it guards is worth nothing.
"""

import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "var", "__pycache__", "node_modules", ".mypy_cache", ".ruff_cache")


@dataclass(frozen=True)
class Mutant:
    name: str
    file: str
    code: str
    bug: str
    suite: str
    # What else must go before the bug shows, where one check stands behind another: file, code, bug.
    also: tuple[tuple[str, str, str], ...] = ()

    @property
    def edits(self) -> tuple[tuple[str, str, str], ...]:
        return (self.file, self.code, self.bug), *self.also


MUTANTS = [
    Mutant(
        "scopes are ignored",
        "resources_app/access.py",
        'return self.scope != "read" and may_write(self.user)',
        "return may_write(self.user)",
        "tests/security/test_addresses.py::test_every_tool_serves_whom_it_is_meant_for",
    ),
    Mutant(
        "restricted things are shown",
        "resources_app/querysets.py",
        "return self.filter(Q(restricted=False) | Exists(mine))",
        "return self.all()",
        "tests/security/test_addresses.py::test_what_is_not_yours_cannot_be_told_from_what_is_not_there",
    ),
    Mutant(
        "a route asks nobody who they are",
        "backlog_site/api/search.py",
        '@api_view(["GET"])\n',
        '@api_view(["GET"])\n@__import__("rest_framework.decorators").decorators.permission_classes([])\n',
        "tests/security/test_routes.py::test_everybody_gets_what_the_table_says",
    ),
    Mutant(
        "a new route is not written down",
        "backlog_site/urls.py",
        'path("healthz", health.healthz),',
        'path("healthz", health.healthz), path("leak", health.readyz),',
        "tests/security/test_routes.py::test_every_route_has_a_row_and_every_row_a_route",
    ),
    Mutant(
        "tokens for other servers are taken",
        "resources_app/credentials.py",
        "if scope is None or not any(map(is_for_this_server, grant.resource or ())):",
        "if scope is None:",
        "tests/accounts/test_oauth_flow.py::test_a_token_for_another_server_is_worth_nothing_here",
    ),
    Mutant(
        "codes are sent anywhere",
        "backlog_site/accounts/oauth.py",
        'return parts.scheme != "http" or parts.hostname in LOOPBACK',
        "return bool(parts)",
        "tests/accounts/test_oauth_clients.py::test_an_unsafe_redirect_address_is_not_registered",
    ),
    Mutant(
        "links are followed out of a root",
        "resources_app/files.py",
        "_FILE = os.O_RDONLY | os.O_NOFOLLOW |",
        "_FILE = os.O_RDONLY |",
        "tests/resources_app/test_files.py::test_opening_takes_plain_names_only_and_follows_no_link",
    ),
    Mutant(
        "pages of other sites get in",
        "backlog_site/mcp/http.py",
        "if origin is not None and origin not in _allowed_origins(host):",
        "if origin is None and host == origin:",
        "tests/security/test_known_holes.py::test_a_page_elsewhere_does_not_reach_in_through_a_browser",
    ),
    Mutant(
        "one request too many",
        "backlog_site/rates.py",
        "return self.used > self.rate.allowed",
        "return self.used > self.rate.allowed + 1",
        "tests/backlog_site/test_rates.py::test_exactly_as_many_as_allowed_get_through_however_many_ask_at_once",
    ),
    Mutant(
        "secrets are logged",
        "backlog_site/log_scrubbing.py",
        "return {key: _scrubbed(value) for key, value in event.items()}",
        "return event",
        "tests/backlog_site/test_log_scrubbing.py",
    ),
    Mutant(
        "a stale ETag is taken",
        "resources_app/write_session.py",
        'if etag is None or normalise(etag) in {current, "*"}:',
        "if etag is None or isinstance(etag, str):",
        "tests/resources_app/test_writing_conflict.py",
    ),
    Mutant(
        "half of a batch stays",
        "resources_app/writing.py",
        "        with transaction.atomic():\n            yield\n",
        "        if transaction:\n            yield\n",
        "tests/concurrency/test_killed.py",
    ),
    Mutant(
        "a clock that is set back keeps work from being done",
        "resources_app/clock.py",
        "return Q(lease_until__lt=at) | Q(lease_until__gt=at + 2 * length)",
        "return Q(lease_until__lt=at)",
        "tests/faults/test_clock.py",
    ),
    Mutant(
        "two schedulers give two runs",
        "resources_app/tasks.py",
        "transaction.set_rollback(True)",
        "pass",
        "tests/concurrency/test_one_sync.py",
    ),
    Mutant(
        "an address makes the server stumble",
        "resources_app/uris.py",
        "    match = _SHAPE.fullmatch(uri)\n",
        '    match = _SHAPE.fullmatch(uri)\n    assert "%" not in uri\n',
        "tests/fuzz/test_addresses_and_operations.py::test_any_address_reads_or_is_refused",
    ),
    Mutant(
        "streams outlive their token",
        "backlog_site/mcp/bus.py",
        "if credential.key not in standing:",
        "if credential.key in ():",
        "tests/mcp/test_oauth.py::test_open_streams_end",
    ),
    Mutant(
        "of two edits at once one is lost",
        "resources_app/write_session.py",
        "filter(pk=thing.pk, version=was)",
        "filter(pk=thing.pk)",
        "tests/concurrency/test_lost_updates.py",
        also=(
            ("resources_app/writing.py", "        with transaction.atomic():\n            yield\n", "        yield\n"),
        ),
    ),
    Mutant(
        "half of an atomic batch stays",
        "resources_app/batches.py",
        "        if atomic:\n            raise\n",
        "        if atomic and not entry:\n            raise\n",
        "tests/resources_app/test_batches.py::test_an_atomic_batch_with_one_failure_leaves_nothing",
    ),
    Mutant(
        "a repeated request acts again",
        "resources_app/batches.py",
        "            return _kept_answer(owner, key, digest)\n",
        "            return run()\n",
        "tests/resources_app/test_idempotency.py::test_the_same_request_again_gets_the_same_answer_and_acts_once",
    ),
    Mutant(
        "history is replayed in the wrong order",
        "resources_app/history.py",
        'version__gt=base.version).order_by("version")',
        'version__gt=base.version).order_by("-version")',
        "tests/resources_app/test_history.py::test_any_version_reads_back_as_it_was",
    ),
    Mutant(
        "search finds what is limited to others",
        "search_app/filters.py",
        "visible = ~Q(kind__in=IB_KINDS) if admin else Q(restricted=False)",
        "visible = ~Q(kind__in=IB_KINDS)",
        "tests/search_app/test_visibility.py::test_what_is_limited_to_a_group_shows_to_its_members_and_admins",
    ),
    Mutant(
        "rights in IntelligenceBank are anybody's",
        "resources_app/querysets.py",
        "filter(link__user_id=user.pk or 0, expires_at__gt=Now())",
        "filter(expires_at__gt=Now())",
        "tests/intelligencebank/test_rights.py::test_two_people_see_their_own_parts",
    ),
    Mutant(
        "markup in a text reaches the page",
        "backlog_site/viewer/markdown.py",
        '{"html": False, "linkify": True}',
        '{"html": True, "linkify": True}',
        "tests/viewer/test_markdown.py::test_nothing_in_a_text_can_run",
        also=(("backlog_site/viewer/markdown.py", "return mark_safe(clean)", "return mark_safe(made)"),),
    ),
    Mutant(
        "streams tell everybody of everything",
        "resources_app/subscriptions.py",
        'return set(Change.objects.visible_to(user).filter(pk__in=changes).values_list("pk", flat=True))',
        "return set(changes)",
        "tests/mcp/test_events.py::test_what_somebody_may_not_see_they_are_not_told_of",
    ),
    Mutant(
        "a page opens without a role",
        "backlog_site/viewer/shell.py",
        "        if not may_read(request.user):\n",
        "        if request.user.is_anonymous:\n",
        "tests/security/test_pages.py::test_without_a_role_a_session_shows_nothing",
    ),
]


def main(wanted: list[str]) -> int:
    survivors = []
    with tempfile.TemporaryDirectory(prefix="backlog-mutants-") as folder:
        copy = Path(folder) / "code"
        shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
        for mutant in MUTANTS:
            if not wanted or any(word in mutant.name for word in wanted):
                caught = is_caught(copy, mutant)
                print(f"{'caught  ' if caught else 'SURVIVED'}  {mutant.name}  ({mutant.suite})", flush=True)
                survivors += [] if caught else [mutant.name]
    return 1 if survivors else 0


def is_caught(copy: Path, mutant: Mutant) -> bool:
    sound = {file: (copy / file).read_text() for file, _, _ in mutant.edits}
    try:
        for file, code, bug in mutant.edits:
            plant(copy / file, code, bug, mutant)
        command = [sys.executable, "-m", "pytest", "-x", mutant.suite]
        run = subprocess.run(command, cwd=copy, capture_output=True, text=True)
    finally:
        for file, text in sound.items():
            (copy / file).write_text(text)
    # 1: tests failed; anything else is an accident, not a catch.
    if run.returncode != 1:
        print(run.stdout[-2000:], run.stderr[-2000:])
    return run.returncode == 1


def plant(file: Path, code: str, bug: str, mutant: Mutant) -> None:
    text = file.read_text()
    if text.count(code) != 1:
        raise SystemExit(f"{mutant.name}: its place in {file.name} is gone; bring it up to date.")
    file.write_text(text.replace(code, bug))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
