"""Test bin/mcp-path, the resolver for users without the server, in a real shell."""

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "bin" / "mcp-path"
SHELLS = [shell for shell in ("sh", "dash", "bash", "busybox") if shutil.which(shell)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "my docs"
    (root / "adr").mkdir(parents=True)
    (root / "adr" / "0001 ж %.md").write_text("x")
    (root / "a.md").write_text("x")
    (root / "inner").mkdir()
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "b.md").write_text("x")
    (tmp_path / "export" / "tasks").mkdir(parents=True)
    (tmp_path / "export" / "tasks" / "TASK-0001.md").write_text("x")
    (tmp_path / "secret").write_text("x")
    return root


def run(root: Path, *arguments: str, shell: str = "sh", **over: str) -> tuple[int, str, str]:
    environment = {
        "PATH": "/usr/bin:/bin",
        "BACKLOG_RESOURCE_ROOTS": (
            f"docs={root}, docs/inner={root.parent}/inner,artifacts/logs={root}/"
        ),
        "BACKLOG_EXPORT_DIR": f"{root.parent}/export",
    } | over
    command = [shell, *(["sh"] if shell == "busybox" else []), str(SCRIPT), *arguments]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=30, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("shell", SHELLS)
def test_it_parses_and_resolves_in_every_shell_at_hand(root: Path, shell: str) -> None:
    assert (
        subprocess.run(
            [shell, *(["sh"] if shell == "busybox" else []), "-n", str(SCRIPT)], check=False
        ).returncode
        == 0
    )
    uri = "mcp://backlog/resources/docs/adr/0001%20%D0%B6%20%25.md"
    assert run(root, uri, shell=shell) == (0, f"{root}/adr/0001 ж %.md\n", "")
    assert run(root, "mcp://backlog/resources/docs/..%2f..%2fsecret", shell=shell)[0] == 2
    assert run(root, "mcp://backlog/resources/docs/%2e%2e/secret", shell=shell)[0] == 2


def test_it_is_executable_and_starts_with_sh() -> None:
    assert SCRIPT.read_text().startswith("#!/bin/sh\n") and SCRIPT.stat().st_mode & 0o111 == 0o111


def test_files_folders_nested_roots_and_artifacts_resolve(root: Path) -> None:
    assert run(root, "mcp://backlog/resources/docs/a.md")[1] == f"{root}/a.md\n"
    assert run(root, "mcp://backlog/resources/docs")[1] == f"{root}\n"
    assert run(root, "mcp://backlog/resources/docs/inner/b.md")[1] == f"{root.parent}/inner/b.md\n"
    assert run(root, "mcp://backlog/artifacts/logs/a.md")[1] == f"{root}/a.md\n"


def test_tasks_resolve_into_an_exported_tree(root: Path) -> None:
    for uri in ("mcp://backlog/tasks/TASK-0001", "mcp://backlog/tasks/TASK-0001/file"):
        assert run(root, uri) == (0, f"{root.parent}/export/tasks/TASK-0001.md\n", "")
    assert run(root, "mcp://backlog/tasks/TASK-0002")[0] == 1
    code, out, error = run(root, "mcp://backlog/tasks/TASK-0001", BACKLOG_EXPORT_DIR="")
    assert (code, out) == (1, "") and "BACKLOG_EXPORT_DIR" in error


REFUSED = [
    "mcp://backlog/resources/docs/../secret", "mcp://backlog/resources/docs/../../secret", "mcp://backlog/../x",
    "mcp://backlog/resources/docs/./a.md", "mcp://backlog/resources//docs/a.md", "mcp://backlog/resources/docs/",
    "mcp://backlog/resources/docs/%2e%2e/%2e%2e/secret", "mcp://backlog/resources/docs/%2E./secret",
    "mcp://backlog/resources/docs/.%2e/secret", "mcp://backlog/resources/docs/..%2fsecret",
    "mcp://backlog/resources/docs/..%5csecret", "mcp://backlog/resources/docs/..\\secret",
    "mcp://backlog/resources/docs/a.md%00", "mcp://backlog/resources/docs/a%0a.md", "mcp://backlog/resources/docs/a\n.md",
    "mcp://backlog/resources/docs/a%.md", "mcp://backlog/resources/docs/a%2", "mcp://backlog/resources/docs/a%zz",
    "mcp://backlog/resources/docs/a.md?x=1", "mcp://backlog/resources/docs/a.md#x", "mcp://other/resources/docs/a.md",
    "mcp://backlog/", "mcp://backlog", "http://backlog/resources/docs/a.md", "file:///etc/passwd", "",
    "mcp://backlog/tasks/../../secret", "mcp://backlog/tasks/TASK-1", "mcp://backlog/tasks/TASK-0001x",
    "mcp://backlog/tasks/TASK-0001/../x", "mcp://backlog/tasks/EPIC-0001", "mcp://backlog/tasks/TASK-0001/title",
]  # fmt: skip


@pytest.mark.parametrize("uri", REFUSED)
def test_traversal_and_nonsense_are_refused(root: Path, uri: str) -> None:
    code, out, error = run(root, uri)
    assert (code, out) == (2, "") and error


ABSENT = [
    "mcp://backlog/resources/docs/%252e%252e/secret", "mcp://backlog/resources/docs-evil/a.md",
    "mcp://backlog/resources/doc/a.md", "mcp://backlog/artifacts/docs/a.md", "mcp://backlog/resources/docs/absent",
    "mcp://backlog/resources/docs/a.md@v2", "mcp://backlog/changes", "mcp://backlog/resources/docs/*",
]  # fmt: skip


@pytest.mark.parametrize("uri", ABSENT)
def test_what_is_not_there_is_said_to_be_absent(root: Path, uri: str) -> None:
    code, out, error = run(root, uri)
    assert (code, out) == (1, "") and error


def test_escapes_are_decoded_once(root: Path) -> None:
    (root / "%2e%2e").mkdir()
    (root / "%2e%2e" / "x").write_text("x")
    assert run(root, "mcp://backlog/resources/docs/%252e%252e/x")[1] == f"{root}/%2e%2e/x\n"


def test_nothing_in_a_uri_is_run_or_expanded(root: Path) -> None:
    for name in ("$(touch pwned)", "`touch pwned`", "$HOME", "-n", "a b;c", "%s%n", "*"):
        (root / name).write_text("x")
        code, out, _ = run(root, f"mcp://backlog/resources/docs/{name.replace('%', '%25')}")
        assert (code, out) == (0, f"{root}/{name}\n")
    assert not Path("pwned").exists()


def test_help_and_wrong_usage(root: Path) -> None:
    code, out, _ = run(root, "--help")
    assert code == 0 and "BACKLOG_RESOURCE_ROOTS" in out
    assert run(root)[0] == 2 and run(root, "a", "b")[0] == 2
    code, _, error = run(root, "mcp://backlog/resources/docs/a.md", BACKLOG_RESOURCE_ROOTS="docs")
    assert code == 2 and "BACKLOG_RESOURCE_ROOTS" in error
    assert run(root, "mcp://backlog/resources/docs/a.md", BACKLOG_RESOURCE_ROOTS="")[0] == 1
