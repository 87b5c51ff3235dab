"""Test that every entry of the registry says how its addresses are read, written, watched,
completed, listed and documented.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from backlog_site.management.commands.generate_docs import addresses_page, registry_csv
from resources_app.addresses.uris import parse
from resources_app.errors import BacklogError, InvalidOperation
from resources_app.identity.roles import Actor
from resources_app.intelligencebank.sync.pages import Mirror
from resources_app.interchange.scan import scan
from resources_app.models import Change, Comment, IBConnection, Job
from resources_app.reading import catalogue, watching
from resources_app.reading.by_address import read
from resources_app.reading.get_resource import get_resource
from resources_app.reading.patterns import Entry
from resources_app.reading.registry import REGISTRY
from resources_app.writing import stored_files, write_path
from tests.factories import as_actor, make_epic, make_task, task_uri
from tests.mcp.elsewhere import mirror

pytestmark = pytest.mark.django_db

TENANT, FOLDER, ASSET = "Table1", "ab" * 16, "cd" * 16
REFUSALS = {"invalid_operation", "permission_denied"}
LISTED = {"task", "epic", "resource", "artifact", "ib_folder"}
# Values that cannot be enumerated, or must not be.
UNCOMPLETED = {"index", "number", "query"}

Fill = Callable[[Entry], dict[str, str]]


@pytest.fixture
def carol_acts(carol: User) -> Actor:
    return as_actor(carol)


@pytest.fixture
def values(carol_acts: Actor, tmp_path: Path, settings: Any) -> Fill:
    """Create one of everything and return the variables with which an entry reads."""
    folder = tmp_path / "disk"
    folder.mkdir()
    (folder / "a.md").write_text("# A")
    settings.RESOURCE_ROOTS = {"disk": folder}
    scan()
    make_epic(evidence=["e"])
    over, first = make_epic(evidence=["e"]), make_task(evidence=["e"], epic_id="EPIC-0001")
    second = make_task(evidence=["e"])
    make_task(epic_id=over.ref)
    for uri in (task_uri(first), task_uri(second), "mcp://backlog/epics/EPIC-0001"):
        write_path.add_comment(carol_acts, uri, "A comment")
    write_path.archive(carol_acts, task_uri(second))
    write_path.archive(carol_acts, f"mcp://backlog/epics/{over.ref}")
    for area in ("resources", "artifacts"):
        stored_files.create_resource(carol_acts, f"{area}/docs/a.md", "# A")
        stored_files.create_resource(carol_acts, f"{area}/docs/old.md", "# Old")
        stored_files.remove(carol_acts, f"{area}/docs/old.md")
    mirror(TENANT, FOLDER, ASSET, ["carol"])
    announce_renamed()
    now = timezone.now()
    run = Job.objects.create(kind="scan", run_at=now, created_at=now)

    def of(entry: Entry) -> dict[str, str]:
        ids = {"epics": "EPIC-0001", "archive": "TASK-0002", "workflow": str(run.pk)}
        if entry.scheme == "ib":
            ids["intelligencebank"] = FOLDER if "/folders/" in entry.pattern else ASSET
        if entry.name == "archived_epic_tasks":
            ids["archive"] = over.ref
        paths = {"local_file": f"{folder}/a.md"[1:], "archive": "docs/old.md"}
        return {
            "id": ids.get(entry.category, "TASK-0001"),
            "path": paths.get(entry.name) or paths.get(entry.category, "docs/a.md"),
            "number": str(Comment.objects.earliest("pk").pk),
            **{"field": "evidence", "index": "0", "template": "bug"},
            **{"clientid": TENANT, "query": "logo"},
        }

    return of


def announce_renamed() -> None:
    """Rename what is mirrored, as a later sync would. The first one announces nothing."""
    connection = IBConnection.objects.get(client_id=TENANT)
    connection.last_full_at = timezone.now()
    later = Mirror(connection, 2)
    later.keep_folders([{"_id": FOLDER, "name": "Brands", "parent": ""}])
    later.keep_resources([{"_id": ASSET, "folder": FOLDER, "name": "The logo", "tags": []}])


def address(entry: Entry, values: Fill) -> str:
    uri = entry.pattern
    for name, value in values(entry).items():
        uri = uri.replace(f"{{{name}}}", value)
    return uri


def test_every_entry_is_read(carol_acts: Actor, values: Fill) -> None:
    for entry in REGISTRY:
        reading = read(carol_acts, address(entry, values))
        assert entry.mime_type in ("*/*", reading.mime_type), entry.pattern


def test_every_entry_is_written_or_refuses(carol_acts: Actor, values: Fill) -> None:
    for entry in REGISTRY:
        uri = address(entry, values)
        if is_writable(carol_acts, uri):
            answer = write_path.write(carol_acts, uri, operation_for(entry), dry_run=True)
            assert entry.target and answer["version"], entry.pattern
        else:
            with pytest.raises(BacklogError) as caught:
                write_path.write(carol_acts, uri, operation_for(entry))
            assert caught.value.code in REFUSALS, entry.pattern


def is_writable(actor: Actor, uri: str) -> bool:
    return bool(read(actor, uri).metadata()["capabilities"]["writable"])


def operation_for(entry: Entry) -> dict[str, Any]:
    if entry.name == "comment" or entry.name.endswith("_element"):
        return {"type": "set", "value": "New"}
    if entry.name.endswith("_field"):
        return {"type": "set", "value": ["New"]}
    return {"type": "set", "field": "title", "value": "New"}


def test_every_entry_is_watched_or_refuses(carol_acts: Actor, values: Fill) -> None:
    changes = list(Change.objects.all())
    for entry in REGISTRY:
        uri = address(entry, values)
        reading = read(carol_acts, uri)
        if not reading.subscribable:
            with pytest.raises(InvalidOperation):
                watching.may_watch(carol_acts, uri)
            continue
        assert watching.may_watch(carol_acts, uri)
        touching = [change for change in changes if watching.matches(change, uri)]
        assert touching, f"nothing notifies a watcher of {uri}"
        assert entry.name == "changes" or len(touching) < len(changes), entry.pattern
        etags = {watching.describe(change, uri)["etag"] for change in touching}
        assert etags == {None} or reading.etag in etags, entry.pattern


def test_every_variable_is_completed(carol_acts: Actor, values: Fill) -> None:
    for entry in REGISTRY:
        assert [variable.name for variable in entry.fills] == list(entry.variables), entry.pattern
        for variable in entry.fills:
            wanted = values(entry)[variable.name]
            typed = wanted if variable.name == "path" else wanted[:-1]
            offered = catalogue.complete(carol_acts, variable.name, typed, entry.pattern)
            is_open = variable.name in UNCOMPLETED or entry.name == "local_file"
            assert (wanted in offered) is not is_open, (entry.pattern, variable.name)
            assert all(one.startswith(typed) for one in offered)


def test_every_entry_is_documented(carol_acts: Actor) -> None:
    page, table = addresses_page(), registry_csv()
    for entry in REGISTRY:
        found = REGISTRY.match(parse(entry.example))
        assert found and found[0] is entry
        assert f"| `{entry.pattern}` | {entry.description}" in page
        assert entry.pattern in table
        if entry.is_template:
            refusal = get_resource(carol_acts, entry.pattern.partition("?")[0])
            assert refusal["suggested_actions"][0] == f"Example: get_resource('{entry.example}')"


def test_every_fixed_address_and_everything_listed_is_in_the_catalogue(
    carol_acts: Actor, values: Fill
) -> None:
    rows, _ = catalogue.list_catalogue(carol_acts, None)
    listed = {row["uri"] for row in rows}
    for entry in REGISTRY:
        expected = not entry.is_template or entry.name in LISTED
        assert (address(entry, values) in listed) is expected, entry.pattern


def test_no_two_entries_have_one_name() -> None:
    assert len({entry.name for entry in REGISTRY}) == len(list(REGISTRY))
