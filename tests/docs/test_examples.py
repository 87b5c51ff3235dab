"""Test that every example of the docs runs, and every link and command in them resolves."""

import json
import re
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import get_commands
from django.db import connection

from backlog_site.accounts.clients import connections, oauth_command
from backlog_site.api import parsers
from resources_app.addresses import uris
from resources_app.fields.declarations import MAX_TEXT
from resources_app.files import frontmatter
from resources_app.querying import queries
from resources_app.reading.get_resource import get_resource
from resources_app.writing import batches
from tests.api.clients import ApiClient
from tests.factories import as_actor

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "SECURITY.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "integrations").rglob("*.md"),
    ]
)


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.django_db
@pytest.mark.skipif(
    connection.vendor != "postgresql", reason="what PgBouncer does not pass on is PostgreSQL's"
)
def test_a_role_can_be_given_what_each_connection_asks_for() -> None:
    (statements,) = blocks(ROOT / "docs/scaling.md", "sql")
    with connection.cursor() as cursor:
        cursor.execute("CREATE ROLE backlog")
        cursor.execute(statements)
    asked = re.findall(r"-c (\w+)=", connection.settings_dict["OPTIONS"]["options"])
    assert re.findall(r"SET (\w+) =", statements) == asked


def test_the_rest_examples_run_one_after_the_other(alice: User) -> None:
    client = ApiClient(alice)
    lines = [line for block in blocks(ROOT / "docs/rest.md", "http") for line in block.splitlines()]
    requests = [index for index, line in enumerate(lines) if re.match(r"(GET|POST) /", line)]
    assert len(requests) >= 12
    for index in requests:
        method, path = lines[index].split(" ", 1)
        body = json.loads(lines[index + 1]) if method == "POST" else None
        response = client.request(method.lower(), path, body)
        assert response.status_code in (200, 201), (lines[index], response.content)


def test_the_examples_of_get_resource_run(alice: User) -> None:
    examples = blocks(ROOT / "docs/get-resource.md", "python")
    assert len(examples) >= 3
    for example in examples:
        exec(example, {"get_resource": lambda uri=None: get_resource(as_actor(alice, "mcp"), uri)})


def test_the_examples_about_security_run_for_anybody(db: None) -> None:
    lines = [
        line for block in blocks(ROOT / "docs/security.md", "http") for line in block.splitlines()
    ]
    assert len(lines) == 3
    for line in lines:
        assert ApiClient().get(line.removeprefix("GET ")).status_code == 200


def test_the_limits_in_the_docs_are_the_ones_in_the_code() -> None:
    text = (ROOT / "docs/security.md").read_text()
    for limit in (
        settings.RATE_PER_TOKEN,
        settings.RATE_PER_ADDRESS,
        MAX_TEXT,
        batches.MAX_OPERATIONS,
        uris.MAX_LENGTH,
    ):
        assert f"{limit:,}" in text
    assert f"| depth of JSON | {parsers.MAX_DEPTH} |" in text
    assert f"| a page of a list | {queries.MAX_LIMIT} |" in text
    assert f"{frontmatter.MAX_BYTES // 1024} KiB, {frontmatter.MAX_DEPTH} deep" in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?://)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_exist(page: Path) -> None:
    text = page.read_text()
    for name in re.findall(r"manage\.py (\w+)", text):
        assert name in get_commands(), f"{page.name} names manage.py {name}"
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for name in re.findall(r"`make ([a-z-]+)`|^make ([a-z-]+)$", text, re.MULTILINE):
        assert (name[0] or name[1]) in targets, f"{page.name} names make {name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_json_in_the_docs_is_json(page: Path) -> None:
    for block in blocks(page, "json"):
        json.loads(block)


def test_commands_that_add_the_server_are_those_of_the_table() -> None:
    """Compare the docs with the table. tests/mcp/conformance runs each of its commands with the
    real client.
    """
    url = "http://127.0.0.1:8000/mcp"
    known = {oauth_command(url), *(one.text for one in connections(url))}
    found = {
        line
        for page in PAGES
        for line in re.findall(r"^\w+ mcp add .*$", page.read_text(), re.MULTILINE)
    }
    assert found <= known
    assert {"claude", "codex", "gemini"} == {line.split()[0] for line in found}


def test_every_page_is_in_the_site() -> None:
    listed = (ROOT / "mkdocs.yml").read_text()
    pages = [page for page in (ROOT / "docs").glob("*.md") if page.name not in listed]
    assert [page.name for page in pages] == []
