"""Provide the backlog that the examples of the contract and of the specs use."""

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from resources_app.interchange.scan import scan
from resources_app.writing import stored_files, write_path
from tests.api.clients import ApiClient
from tests.factories import as_actor, system

DESCRIPTION = "# Task Description\n\n## Old Section\nOld content\n"
ADR = "---\ntitle: The viewer\ntags: [adr]\n---\n# MCP resource viewer\n"


@pytest.fixture
def client(alice: User) -> ApiClient:
    return ApiClient(alice)


@pytest.fixture
def backlog(alice: User, client: ApiClient) -> ApiClient:
    """Create TASK-0039 of the specs in EPIC-0002, a finished task it depends on, and the archived
    TASK-0001.
    """
    actor = as_actor(alice)
    write_path.create_item(actor, "epic", {"title": "Authentication", "labels": ["auth"]}, number=2)
    write_path.create_item(
        actor, "task", {"title": "Old", "description": "gone", "evidence": ["e"]}, number=1
    )
    write_path.create_item(actor, "task", {"title": "Ground work", "status": "done"}, number=38)
    values = {
        "title": "Writable resources for auth",
        "description": DESCRIPTION,
        "priority": "high",
        "labels": ["auth", "mcp"],
        "assignee": "alice",
        "due_date": "2026-12-24",
        "evidence": ["first", "second"],
        "blocked_reason": ["none yet"],
        "references": [{"url": "https://example.org/a", "title": "A"}],
        "depends_on": ["TASK-0038"],
        "epic_id": "EPIC-0002",
    }
    write_path.create_item(actor, "task", values, number=39)
    write_path.add_comment(actor, "mcp://backlog/tasks/TASK-0001", "Before it went")
    write_path.archive(actor, "mcp://backlog/tasks/TASK-0001")
    return client


@pytest.fixture
def files(tmp_path: Path, settings: Settings, client: ApiClient) -> Path:
    """Create the repository of adr-0006 with two mirrored folders, and a stored artifact."""
    for path, text in {
        "docs/adr/0004-mcp-resource-viewer.md": ADR,
        "viewer/components/resource-viewer.ts": "export {};\n",
        "secret.txt": "outside every root",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "docs" / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00")
    (tmp_path / "docs" / "link.txt").symlink_to(tmp_path / "secret.txt")
    settings.RESOURCE_ROOTS = {"docs": tmp_path / "docs", "viewer": tmp_path / "viewer"}
    scan()
    stored_files.create_resource(system(), "artifacts/task-0060/artifact.md", "# Artifact\n")
    return tmp_path
