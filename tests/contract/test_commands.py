"""Test contract section 1: the commands that need no running site, as a user types them."""

from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command, load_command_class

from resources_app.models import ApiToken
from tests.api.clients import ApiClient
from tests.contract.calling import TASK, contents

TREE = Path(__file__).parent.parent / "fixtures" / "backlog_mcp_tree"
COMMANDS = {
    "resources_app": [
        "create_token",
        "import_backlog",
        "export_backlog",
        "sync_ib",
        "scan_resources",
        "resolve_uri",
    ],
    "search_app": ["reindex"],
    "backlog_site": ["mcp_stdio", "doctor", "backup", "restore"],
}


def run(*arguments: object) -> str:
    out = StringIO()
    call_command(*map(str, arguments), stdout=out, stderr=StringIO())
    return out.getvalue()


def run_refused(*arguments: object) -> str:
    """Run a command that names refused files and exits with 1, and return its output."""
    out = StringIO()
    with pytest.raises(CommandError, match="refused"):
        call_command(*map(str, arguments), stdout=out, stderr=StringIO())
    return out.getvalue()


def texts(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


@pytest.mark.parametrize(
    ("app", "name"), [(app, name) for app, names in COMMANDS.items() for name in names]
)
def test_every_command_says_what_it_does(app: str, name: str) -> None:
    assert load_command_class(app, name).help


@pytest.mark.parametrize("scope", ["read", "write"])
def test_a_token_is_printed_alone_and_works(backlog: ApiClient, scope: str) -> None:
    token = run("create_token", "alice", "--name", "n", "--scope", scope, "--expires", 1).strip()
    assert token.startswith("bl_") and " " not in token
    answer = ApiClient().get(f"/api/v1/resource/?uri={TASK}", Authorization=f"Bearer {token}")
    assert answer.json()["permissions"]["write"] is (scope == "write")


@pytest.mark.parametrize(
    "arguments", [("nobody", "read", 1), ("bob", "write", 1), ("alice", "admin", 1), ("mallory", "write", 1), ("bob", "read", 0)]
)  # fmt: skip
def test_a_token_beyond_the_role_is_refused(
    alice: User, bob: User, mallory: User, arguments: tuple[str, str, int]
) -> None:
    user, scope, days = arguments
    with pytest.raises(CommandError):
        run("create_token", user, "--name", "n", "--scope", scope, "--expires", days)
    assert not ApiToken.objects.exists()


def test_a_tree_goes_in_and_out_without_loss(carol: User, tmp_path: Path) -> None:
    first = run_refused("import_backlog", TREE)
    assert "6 tasks created" in first and "2 epics created" in first
    assert "created" not in run_refused("import_backlog", TREE)
    run("export_backlog", tmp_path / "one")
    exported = texts(tmp_path / "one")
    assert (
        "unchanged" in run("export_backlog", tmp_path / "one")
        and texts(tmp_path / "one") == exported
    )
    again = run("import_backlog", tmp_path / "one")
    assert "created" not in again and "changed" not in again.replace("unchanged", "")


def test_a_folder_that_cannot_be_written_is_said_so(carol: User, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CommandError, match="cannot be written"):
        run("export_backlog", tmp_path / "file" / "below")
    with pytest.raises(CommandError, match="no folder"):
        run("import_backlog", tmp_path / "none")


def test_addresses_resolve_and_links_are_converted(backlog: ApiClient, files: Path) -> None:
    path = files / "docs" / "adr" / "0004-mcp-resource-viewer.md"
    uri = "mcp://backlog/resources/docs/adr/0004-mcp-resource-viewer.md"
    assert (
        run("resolve_uri", uri).strip() == run("resolve_uri", f"file://{path}").strip() == str(path)
    )
    for wrong in (
        f"file://{files}/secret.txt",
        "mcp://backlog/resources/docs/none.md",
        "nonsense",
        TASK,
    ):
        with pytest.raises(CommandError):
            run("resolve_uri", wrong)
    links = f"[a](file://{path}) and [b](file:///home/me/b.md)"
    backlog.patch("/api/v1/tasks/TASK-0039/", {"description": links})
    assert uri in run("convert_uris")
    assert contents(backlog, f"{TASK}/description") == links
    run("convert_uris", "--apply")
    assert contents(backlog, f"{TASK}/description") == f"[a]({uri}) and [b](file:///home/me/b.md)"
