"""Run `make mutants`: plant one bug after the other in a copy of the code; each suite must catch
its own.

A suite that stays green with a bug in what it guards is worthless, and so is one that is red
without it. All of them therefore run once on the unmodified code first.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Long enough for any suite on a busy machine; a longer run hangs.
PATIENCE_SECONDS = 900
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", "var", "__pycache__", "node_modules", ".mypy_cache", ".ruff_cache"
)


@dataclass(frozen=True)
class Mutant:
    """Describe a bug, its place, and the test that must catch it."""

    name: str
    file: str
    code: str
    bug: str
    suite: str
    # Further changes needed before the bug shows, where one check backs up another: file, code,
    # bug.
    also: tuple[tuple[str, str, str], ...] = ()

    @property
    def edits(self) -> tuple[tuple[str, str, str], ...]:
        return (self.file, self.code, self.bug), *self.also


MUTANTS = [
    Mutant(
        "scopes are ignored",
        "resources_app/identity/roles.py",
        'return self.scope != "read" and may_write(self.user)',
        "return may_write(self.user)",
        "tests/security/test_addresses.py::test_every_tool_serves_whom_it_is_meant_for",
    ),
    Mutant(
        "restricted things are shown",
        "resources_app/models/querysets.py",
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
        "resources_app/identity/credentials.py",
        "if scope is None or not any(map(is_for_this_server, grant.resource or ())):",
        "if scope is None:",
        "tests/accounts/test_oauth_flow.py::test_a_token_for_another_server_is_worth_nothing_here",
    ),
    Mutant(
        "codes are sent anywhere",
        "backlog_site/accounts/oauth.py",
        'return parts.scheme != "http" or parts.hostname in LOOPBACK',
        "return bool(parts)",
        "tests/accounts/test_oauth_clients.py::test_an_unsafe_redirect_address_is_not_registered[uris0]",
    ),
    Mutant(
        "links are followed out of a root",
        "resources_app/files/disk.py",
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
        "backlog_site/serving/rate_limit.py",
        "return self.used > self.rate.allowed",
        "return self.used > self.rate.allowed + 1",
        "tests/backlog_site/test_rates.py::test_exactly_as_many_as_allowed_get_through_however_many_ask_at_once",
    ),
    Mutant(
        "secrets are logged",
        "backlog_site/operations/log_scrubbing.py",
        "return {key: _scrubbed(value, key) for key, value in event.items()}",
        "return event",
        "tests/backlog_site/test_log_scrubbing.py::test_a_traceback_with_a_token_in_it_is_masked",
    ),
    Mutant(
        "a stale ETag is taken",
        "resources_app/writing/session.py",
        "        if conditions.is_stale(current, thing.updated_at):",
        "        if conditions.is_stale(current, thing.updated_at) and not current:",
        "tests/resources_app/test_writing_conflict.py::test_a_stale_etag_conflicts_with_the_diff_from_the_callers_version",
    ),
    Mutant(
        "half of a batch stays",
        "resources_app/writing/write_path.py",
        "        with transaction.atomic():\n            yield\n",
        "        if transaction:\n            yield\n",
        "tests/concurrency/test_killed.py"
        "::test_nothing_of_an_unfinished_batch_remains_and_all_that_was_acknowledged_does",
    ),
    Mutant(
        "a clock that is set back keeps work from being done",
        "resources_app/jobs/clock.py",
        "return Q(lease_until__lt=at) | Q(lease_until__gt=at + 2 * length)",
        "return Q(lease_until__lt=at)",
        "tests/faults/test_clock.py::test_what_waits_and_what_a_dead_worker_left_is_done_though_the_clock_was_set_back",
    ),
    Mutant(
        "two schedulers give two runs",
        "resources_app/tasks.py",
        "transaction.set_rollback(True)",
        "pass",
        "tests/concurrency/test_one_sync.py::test_ticks_of_many_schedulers_are_one_run",
    ),
    Mutant(
        "an address makes the server stumble",
        "resources_app/addresses/uris.py",
        "    match = _SHAPE.fullmatch(uri)\n",
        '    match = _SHAPE.fullmatch(uri)\n    assert "%" not in uri\n',
        "tests/fuzz/test_addresses_and_operations.py::test_any_address_reads_or_is_refused",
    ),
    Mutant(
        "streams outlive their token",
        "backlog_site/mcp/bus.py",
        "if credential.key not in standing:",
        "if credential.key in ():",
        "tests/mcp/test_oauth.py::test_open_streams_end[revoked by the client]",
    ),
    Mutant(
        "of two edits at once one is lost",
        "resources_app/writing/session.py",
        "filter(pk=thing.pk, version=was)",
        "filter(pk=thing.pk)",
        "tests/concurrency/test_lost_updates.py::test_no_edit_is_lost_among_many_writers[16-100]",
        also=(
            (
                "resources_app/writing/write_path.py",
                "        with transaction.atomic():\n            yield\n",
                "        yield\n",
            ),
        ),
    ),
    Mutant(
        "half of an atomic batch stays",
        "resources_app/writing/batches.py",
        "        if atomic:\n            raise\n",
        "        if atomic and not entry:\n            raise\n",
        "tests/resources_app/test_batches.py::test_an_atomic_batch_with_one_failure_leaves_nothing",
    ),
    Mutant(
        "a repeated request acts again",
        "resources_app/writing/batches.py",
        "            return _kept_answer(owner, key, digest)\n",
        "            return run()\n",
        "tests/resources_app/test_idempotency.py::test_the_same_request_again_gets_the_same_answer_and_acts_once",
    ),
    Mutant(
        "history is replayed in the wrong order",
        "resources_app/history/revisions.py",
        'version__gt=base.version).order_by("version")',
        'version__gt=base.version).order_by("-version")',
        "tests/resources_app/test_history.py::test_any_version_reads_back_as_it_was",
    ),
    Mutant(
        "search finds what is limited to others",
        "search_app/filters.py",
        "visible = ~Q(kind__in=IB_KINDS) if admin else Q(restricted=False)",
        "visible = ~Q(kind__in=IB_KINDS)",
        "tests/search_app/test_visibility.py::test_a_query_of_nothing_but_filters_shows_no_more",
    ),
    Mutant(
        "rights in IntelligenceBank are anybody's",
        "resources_app/models/querysets.py",
        "link__user_id=user.pk or 0, expires_at__gt=Now()",
        "expires_at__gt=Now()",
        "tests/intelligencebank/test_rights.py::test_two_people_see_their_own_parts",
    ),
    Mutant(
        "markup in a text reaches the page",
        "backlog_site/viewer/markdown.py",
        '{"html": False, "linkify": True}',
        '{"html": True, "linkify": True}',
        "tests/viewer/test_markdown.py::test_nothing_in_a_text_can_run",
        also=(("backlog_site/viewer/markdown.py", "    return clean\n", "    return made\n"),),
    ),
    Mutant(
        "streams tell everybody of everything",
        "resources_app/reading/watching.py",
        'return set(Change.objects.visible_to(user).filter(pk__in=changes).values_list("pk",'
        " flat=True))",
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
    Mutant(
        "a client replaces what it registered by anything",
        "backlog_site/accounts/registration.py",
        "return _refusal(request.body) or super().put(request, *args, **kwargs)",
        "return super().put(request, *args, **kwargs)",
        "tests/accounts/test_oauth_clients.py::test_what_agents_do_not_need_is_not_registered[over0]",
    ),
    Mutant(
        "sessions are kept for ever",
        "backlog_site/mcp/sessions.py",
        "            for unused in surplus:\n",
        "            for unused in surplus[:0]:\n",
        "tests/mcp/test_limits.py::test_however_many_sessions_are_opened_few_are_kept",
    ),
    Mutant(
        "an undo takes back the words of others",
        "resources_app/writing/undo.py",
        "            refuse_words_of_others(actor, thing)\n",
        "",
        "tests/api/test_undo.py::test_what_somebody_said_is_taken_back_by_themselves_or_an_admin",
    ),
    Mutant(
        "a change does not say where it came from",
        "backlog_site/api/actors.py",
        "client=SESSION_CLIENT, address=address",
        "client=SESSION_CLIENT",
        "tests/resources_app/test_audit_trail.py::test_writes_in_the_viewer_and_the_admin_are_told_apart",
    ),
    Mutant(
        "a count of hits tells of what is hidden",
        "search_app/backends/visibility_tokens.py",
        'LIMITED if columns["restricted"] else SHARED',
        "SHARED",
        "tests/search_app/test_visibility.py::test_what_is_limited_to_a_group_shows_to_its_members_and_admins",
    ),
    Mutant(
        "whoever has no role is offered names",
        "resources_app/reading/catalogue.py",
        "    if not may_read(actor.user):\n        return []\n",
        "",
        "tests/security/test_restricted.py::test_without_a_role_nothing_is_listed_counted_completed_or_found",
    ),
]


@dataclass(frozen=True)
class Run:
    """Hold the result of some tests.

    Only a failed assertion is a catch; a site that did not start is an error.
    """

    code: int | None
    output: str

    @property
    def is_green(self) -> bool:
        return self.code == 0

    @property
    def has_failed(self) -> bool:
        return self.code == 1 and any(
            line.startswith("FAILED ") for line in self.output.splitlines()
        )

    @property
    def reason(self) -> str:
        told = (line for line in self.output.splitlines() if line.startswith("E  "))
        return next(told, "").removeprefix("E").strip()[:120]


def main(wanted: list[str]) -> int:
    chosen = [
        mutant for mutant in MUTANTS if not wanted or any(word in mutant.name for word in wanted)
    ]
    started, outcomes = time.monotonic(), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="backlog-mutants-") as folder:
        copy = Path(folder) / "code"
        shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
        print(f"{len(chosen)} bugs; their tests on the sound code first …", flush=True)
        sound = run(copy, *dict.fromkeys(mutant.suite for mutant in chosen))
        if not sound.is_green:
            print(
                sound.output[-4000:], "They are red without a bug: nothing was planted.", sep="\n"
            )
            return 1
        for number, mutant in enumerate(chosen, start=1):
            outcome = outcome_of(copy, mutant)
            outcomes[outcome] += 1
            print(f"{number:3} {outcome:8}  {mutant.name}  ({mutant.suite})", flush=True)
    print(
        f"{outcomes['caught']} of {len(chosen)} caught in {(time.monotonic() - started) / 60:.0f}"
        " minutes"
    )
    return 0 if outcomes["caught"] == len(chosen) else 1


def outcome_of(copy: Path, mutant: Mutant) -> str:
    sound = {file: (copy / file).read_text() for file, _, _ in mutant.edits}
    try:
        for file, code, bug in mutant.edits:
            plant(copy / file, code, bug, mutant)
        tried = run(copy, mutant.suite)
    finally:
        for file, text in sound.items():
            (copy / file).write_text(text)
    if tried.has_failed:
        print(f"    {tried.reason}")
        return "caught"
    print(tried.output[-2000:])
    return "SURVIVED" if tried.is_green else "ACCIDENT"


def run(copy: Path, *suites: str) -> Run:
    """Run in a separate process group, so that a test that hangs is killed with its children."""
    command = [sys.executable, "-m", "pytest", "-x", *suites]
    with subprocess.Popen(
        command,
        cwd=copy,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=PATIENCE_SECONDS * len(suites))
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            return Run(None, "It ran for too long.")
    return Run(process.returncode, output)


def plant(file: Path, code: str, bug: str, mutant: Mutant) -> None:
    text = file.read_text()
    if text.count(code) != 1:
        raise SystemExit(f"{mutant.name}: its place in {file.name} is gone; bring it up to date.")
    file.write_text(text.replace(code, bug))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
