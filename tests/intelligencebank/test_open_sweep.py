"""Test every address of the registry and every form of a link, opened in the viewer by every user:
never a failure.
"""

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils.html import escape

from resources_app.intelligencebank.fake.world import Tenant
from resources_app.interchange.scan import scan
from resources_app.models import Comment, IBLink, IBResource
from resources_app.reading.registry import REGISTRY
from resources_app.writing import stored_files, write_path
from tests.factories import as_actor, make_epic, make_task, task_uri
from tests.intelligencebank.worlds import folder_named
from tests.viewer.browsing import fragment, signed_in, text_of

CLIENT = "BnK4JV"
VALUES = {
    "clientid": CLIENT,
    "query": "logo",
    "id": "TASK-0001",
    "field": "evidence",
    "index": "0",
    "template": "bug",
}
TAILS = ("#L1-L2", "@v1", "?version=1", "?limit=1", "/", "?nothing=1", "@v1#L1")
ODD = [
    *("", " ", "nonsense", "TASK-0001", "TASK-9999", "#L1", "/etc/passwd", "docs/a.md", "../a.md", "//host/a"),
    *("http://example.org/a", "https://[::1", "mailto:a@example.org", "ftp://example.org/a", "javascript:alert(1)"),
    *("data:text/html,x", "mcp:", "mcp://", "mcp:///tasks", "mcp://backlog", "mcp://backlog/", "mcp://other/tasks"),
    *("mcp://backlog/tasks/%zz", "mcp://backlog/tasks/%00", "mcp://backlog/tasks/\x7f", "MCP://backlog/tasks"),
    *("ib://", "ib:///folders/root", "ib://nobody/folders/root", f"ib://{CLIENT}", f"ib://{CLIENT}/folders"),
    *(f"ib://{CLIENT}/folders/zz", f"ib://{CLIENT}/folders/root/resources", f"ib://{CLIENT}/search"),
    *(f"ib://{CLIENT}/search?q=", f"ib://{CLIENT}/search?q=logo&q=x", "file://", "file:///", "file://host/a"),
    *("file:///etc/passwd", "file:///a%00", "file:///a?x=1", "auth://", "admin://nothing", "workflow://workflows/x/status"),
    *("mcp://backlog/resources/" + "a/" * 60, "mcp://backlog/resources/" + "ж" * 900, "mcp://backlog/tasks?filter=(", "x" * 5000),
]  # fmt: skip
FILES = {
    "docs/a.md": "# A\n\n[b](b.md#x) [c](../c.csv) ![p](p.png)\n",
    "wide.csv": 'a,b\n"' + "x" * 200_000 + '",c\n',
    "bare-cr.csv": 'a\rb,"c\rd',
    "many.csv": "," * 90_000,
    "open.csv": 'a,"b\n',
    "nothing.csv": "",
    "empty.md": "",
    "bad.json": '{"a": ',
    "lines.txt": "\n" * 90_000,
}

FILE_PARTS = [
    f"{file}_{part}" for file in ("resource", "artifact") for part in ("versions", "schema")
]
ARCHIVED_FILES = [f"archived_{name}" for name in ("resource", "artifact", *FILE_PARTS)]


@pytest.fixture
def root(tmp_path: Path, settings: Any) -> Path:
    (tmp_path / "docs" / "inner").mkdir(parents=True)
    (tmp_path / "docs" / "a.md").write_text("# A\n\n## Section\n\n[in](inner/b.md)\n")
    (tmp_path / "docs" / "inner" / "b.md").write_text("b")
    settings.RESOURCE_ROOTS = {"disk": tmp_path / "docs"}
    scan()
    return tmp_path / "docs"


@pytest.fixture
def things(carol: User) -> None:
    make_epic(title="Epic", evidence=["e"])
    over = make_epic(title="Over")
    first, second = (make_task(title=title, evidence=["e"]) for title in ("First", "Second"))
    write_path.archive(as_actor(carol), task_uri(second))
    write_path.archive(as_actor(carol), f"mcp://backlog/epics/{over.ref}")
    write_path.add_comment(as_actor(carol), task_uri(first), "hm")
    stored_files.create_resource(as_actor(carol), "artifacts/docs/a.md", "# A")
    for area in ("resources", "artifacts"):
        stored_files.create_resource(as_actor(carol), f"{area}/docs/old.md", "# Old")
        stored_files.remove(as_actor(carol), f"{area}/docs/old.md")
    for path, content in FILES.items():
        stored_files.create_resource(as_actor(carol), f"resources/{path}", content)


def registered(tenant: Tenant, root: Path) -> list[str]:
    """Return one address for each entry of the registry, and several for files."""
    folder = folder_named(tenant, "Logos")
    asset = IBResource.objects.filter(folder__ib_id=folder).order_by("sort_name").first()
    paths = {
        "resource": [*FILES, "docs", "disk", "disk/inner", "disk/inner/b.md"],
        "artifact": ["docs", "docs/a.md"],
        **{name: ["docs/a.md"] for name in FILE_PARTS},
        **{name: ["docs/old.md"] for name in ARCHIVED_FILES},
        "local_file": [f"{root}{tail}"[1:] for tail in ("", "/a.md", "/inner")],
    }
    found = []
    for entry in REGISTRY:
        for path in paths.get(entry.name, [""]):
            uri = entry.pattern.replace("{path}", path)
            if entry.scheme == "ib":
                uri = uri.replace(
                    "{id}", asset.ib_id if "resource/" in uri or "resources/" in uri else folder
                )
            for name, value in (VALUES | {"number": str(Comment.objects.get().pk)}).items():
                uri = uri.replace(f"{{{name}}}", value)
            uri = uri.replace("epics/TASK-", "epics/EPIC-").replace(
                "archive/TASK-0001", "archive/TASK-0002"
            )
            found.append(uri.replace("archive/TASK-0002/tasks", "archive/EPIC-0002/tasks"))
    return [*found, f"ib://{CLIENT}/folders/root"]


def pane(client: Client, uri: str) -> int:
    return int(fragment(client, f"/open/?uri={quote(uri, safe='')}").status_code)


def everywhere(client: Client, uri: str) -> list[int]:
    """Return the statuses of the page, the pane and the bytes."""
    quoted = quote(uri, safe="")
    return [
        client.get(f"/open/?uri={quoted}").status_code,
        pane(client, uri),
        client.get(f"/raw/?uri={quoted}").status_code,
    ]


@pytest.fixture
def browsers(alice: User, bob: User, carol: User, mallory: User) -> dict[str, Client]:
    people = {"contributor": alice, "viewer": bob, "admin": carol, "without a role": mallory}
    found = {role: signed_in(person) for role, person in people.items()} | {"anonymous": Client()}
    for client in found.values():
        client.raise_request_exception = False
    return found


@pytest.mark.parametrize("role", ["anonymous", "without a role", "viewer", "contributor", "admin"])
def test_no_address_fails_for_anybody(
    browsers: dict[str, Client],
    things: None,
    root: Path,
    tenant: Tenant,
    alices_link: IBLink,
    bobs_link: IBLink,
    role: str,
) -> None:
    answers = {uri: pane(browsers[role], uri) for uri in [*registered(tenant, root), *ODD]}
    assert {uri: status for uri, status in answers.items() if status >= 500} == {}
    if role in {"anonymous", "without a role"}:
        assert 200 not in answers.values()


def test_no_form_of_a_link_fails_on_any_page(
    browsers: dict[str, Client], things: None, root: Path, tenant: Tenant, alices_link: IBLink
) -> None:
    client = browsers["contributor"]
    answers = {uri: everywhere(client, uri) for uri in [*registered(tenant, root), *ODD]}
    answers |= {
        uri + tail: [pane(client, uri + tail)] for uri in registered(tenant, root) for tail in TAILS
    }
    assert {uri: statuses for uri, statuses in answers.items() if max(statuses) >= 500} == {}


def test_what_a_contributor_may_read_opens_with_and_without_a_fragment(
    browsers: dict[str, Client], things: None, root: Path, tenant: Tenant, alices_link: IBLink
) -> None:
    refused = {
        uri + tail
        for uri in registered(tenant, root)
        for tail in ("", "#L1-L2")
        if pane(browsers["contributor"], uri + tail) != 200
    }
    assert {
        uri for uri in refused if not uri.startswith(("admin://", "workflow://workflows/"))
    } == set()


def test_a_folder_and_a_search_of_the_library_list_what_is_in_them(
    browsers: dict[str, Client], tenant: Tenant, alices_link: IBLink
) -> None:
    client, folder = browsers["contributor"], folder_named(tenant, "Logos")
    asset = IBResource.objects.filter(folder__ib_id=folder).order_by("sort_name").first()
    assert "Marketing" in text_of(fragment(client, f"/open/?uri=ib://{CLIENT}/folders/root"))
    shown = text_of(fragment(client, f"/open/?uri=ib://{CLIENT}/folders/{folder}/resources"))
    assert f'data-uri="ib://{CLIENT}/resources/{asset.ib_id}"' in shown
    assert escape(asset.name) in shown


@pytest.mark.parametrize("name", ["wide.csv", "bare-cr.csv"])
def test_a_table_that_cannot_be_read_is_shown_as_text(
    browsers: dict[str, Client], things: None, name: str
) -> None:
    shown = text_of(fragment(browsers["viewer"], f"/open/?uri=mcp://backlog/resources/{name}"))
    assert "<table" not in shown and 'class="codeview"' in shown


def test_the_lines_and_the_section_that_a_link_names_are_marked(
    browsers: dict[str, Client], root: Path
) -> None:
    client = browsers["viewer"]
    (root / "b.py").write_text("a = 1\nb = 2\nc = 3\n")
    scan()
    shown = text_of(fragment(client, "/open/?uri=mcp://backlog/resources/disk/b.py%23L2-L3"))
    assert shown.count('class="line at"') == 2
    assert 'data-line="2" autofocus' in shown
    section = text_of(fragment(client, "/open/?uri=mcp://backlog/resources/disk/a.md%23section"))
    assert 'id="s-section" tabindex="-1" autofocus' in section


def test_relative_links_lead_from_the_folder_of_their_file(
    browsers: dict[str, Client], root: Path
) -> None:
    shown = text_of(fragment(browsers["viewer"], "/open/?uri=mcp://backlog/resources/disk/a.md"))
    assert 'data-uri="mcp://backlog/resources/disk/inner/b.md"' in shown
    local = text_of(fragment(browsers["viewer"], f"/open/?uri=file://{root}/a.md"))
    assert f'data-uri="file://{root}/inner/b.md"' in local
