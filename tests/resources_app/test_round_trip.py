"""Test that an export, imported into an empty database and exported again, is byte-identical."""

import datetime
import string
import tempfile
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import transaction
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from resources_app.demo import fill
from resources_app.fields.declarations import clean_line
from resources_app.history.documents import document_of
from resources_app.models import Comment, Epic, Resource, Task
from resources_app.reading.markdown import BOOKKEEPING, kept_keys, read_body, write_body
from resources_app.vocabulary import Priority, Status
from resources_app.writing import stored_files, write_path
from tests.factories import as_actor, make_user, system
from tests.resources_app.trees import contents_of, empty_the_database, run_export, run_import

UTF8 = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
TEXTS = st.text(UTF8, max_size=60) | st.text("\n\r-# \t:'\"|>ab", max_size=40)
LINES = st.text(UTF8, min_size=1, max_size=40).filter(
    lambda text: clean_line("line", text).strip() and len(text.splitlines()) == 1
)
NAMES = st.text(string.ascii_letters + string.digits + "_-. ", min_size=1, max_size=20).filter(
    str.strip
)
MOMENTS = st.datetimes(
    datetime.datetime(1980, 1, 1), datetime.datetime(2100, 1, 1), timezones=st.just(datetime.UTC)
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
ENTRIES = st.lists(TEXTS.filter(str.strip), max_size=3)
FIELDS = st.fixed_dictionaries(
    {"title": LINES},
    optional={
        "description": TEXTS,
        "status": st.sampled_from(Status.labels),
        "priority": st.sampled_from(Priority.labels),
        "labels": st.lists(LINES, max_size=3),
        "assignee": st.sampled_from(["zoe", "yan"]),
        "due_date": st.dates().map(str),
        "evidence": ENTRIES,
        "blocked_reason": ENTRIES,
        "references": st.lists(
            st.fixed_dictionaries(
                {"url": st.just("https://a.example/?q=1#x")}, optional={"title": TEXTS}
            ),
            max_size=2,
        ),
        "groups": st.lists(st.sampled_from(["night shift", "security"]), max_size=2),
    },
)
EXTRAS = st.dictionaries(LINES.map(lambda name: f"x {name}"), VALUES, max_size=3)
COMMENTS = st.lists(
    st.tuples(
        st.sampled_from(["zoe", "yan", "carol"]),
        st.sampled_from(["", "claude-code"]),
        TEXTS.filter(str.strip),
        MOMENTS,
    ),
    max_size=3,
)
ITEMS = st.lists(
    st.tuples(FIELDS, EXTRAS, MOMENTS, MOMENTS, COMMENTS, st.booleans()), min_size=1, max_size=4
)

BACKLOGS = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def make_items(kind: str, items: list[Any], **shared: Any) -> list[str]:
    refs: list[str] = []
    for fields, extra, created, updated, comments, archived in items:
        values = fields | shared | ({"depends_on": refs[-2:]} if kind == "task" else {})
        item = write_path.create_item(
            system(), kind, values, extra=extra, created_at=created, updated_at=updated
        )
        refs.append(item.ref)
        uri = f"mcp://backlog/{kind}s/{item.ref}"
        for author, agent, body, moment in comments:
            actor = as_actor(make_user(author, "admin"), agent=agent)
            write_path.add_comment(actor, uri, body, created_at=moment)
        if archived:
            write_path.archive(system(), uri)
    return refs


def documents() -> list[dict[str, Any]]:
    """Return every task, epic and comment, without what cannot survive: users without an account,
    and the import's own notes.
    """
    items = [
        document_of(item) | {"id": item.ref}
        for model in (Epic, Task)
        for item in model.objects.order_by("pk")
    ]
    kept = [
        item | {"extra": kept_keys(item) | {"assignee": None}, "assignee": None} for item in items
    ]
    comments = Comment.objects.order_by("task", "epic", "created_at", "pk")
    return [*kept, *comments.values("task", "epic", "agent", "body", "created_at", "updated_at")]


def assert_survives() -> None:
    """Export, empty the database, import and export; then import once more."""
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder) / "first", Path(folder) / "second"
        assert run_export(first).failures == []
        before = documents()
        empty_the_database()
        assert run_import(first).failures == []
        assert documents() == before
        versions = [item.version for model in (Epic, Task) for item in model.objects.order_by("pk")]
        run_export(second)
        assert contents_of(second) == contents_of(first)
        again = run_import(second)
        assert not [what for what in again.counts if "unchanged" not in what]
        assert versions == [
            item.version for model in (Epic, Task) for item in model.objects.order_by("pk")
        ]


@pytest.mark.django_db
@BACKLOGS
@given(epics=ITEMS, tasks=ITEMS)
def test_any_backlog_survives_export_and_import(epics: list[Any], tasks: list[Any]) -> None:
    with transaction.atomic():
        for name in ("zoe", "yan"):
            make_user(name, "contributor")
        for name in ("night shift", "security"):
            Group.objects.get_or_create(name=name)
        live = [(*epic[:-1], False) for epic in epics[:1]]
        (epic,) = make_items("epic", live)
        make_items("epic", epics[1:])
        make_items("task", tasks, epic_id=epic)
        if epics[0][-1]:
            write_path.archive(system(), f"mcp://backlog/epics/{epic}")
        assert_survives()
        transaction.set_rollback(True)


@given(TEXTS)
@example("\n")
@example("")
@example("\n\n")
@example("a\n")
def test_a_description_is_read_back_as_it_was_written(description: str) -> None:
    assert read_body(write_body(description)) == description


@pytest.mark.django_db
def test_the_demo_survives_export_and_import() -> None:
    fill.seed("irrelevant here")
    assert_survives()


@pytest.mark.django_db
def test_people_and_groups_that_are_there_are_found_again() -> None:
    zoe = make_user("zoe", "contributor", "security")
    task = write_path.create_item(
        as_actor(zoe), "task", {"title": "Ours", "assignee": "zoe", "groups": ["security"]}
    )
    write_path.add_comment(as_actor(zoe), f"mcp://backlog/tasks/{task.ref}", "Mine")
    with tempfile.TemporaryDirectory() as folder:
        run_export(Path(folder))
        empty_the_database()
        zoe, yan = make_user("zoe", "contributor", "security"), make_user("yan", "contributor")
        run_import(Path(folder))
    found = Task.objects.get()
    assert found.assignee == zoe
    assert found.comments.get().author == zoe
    assert list(Task.objects.visible_to(zoe)) == [found]
    assert not Task.objects.visible_to(yan).exists()
    assert set(found.extra) == {BOOKKEEPING}


@pytest.mark.django_db
def test_a_restriction_to_a_group_that_is_gone_still_hides_the_task() -> None:
    zoe = make_user("zoe", "contributor", "security")
    write_path.create_item(as_actor(zoe), "task", {"title": "Ours", "groups": ["security"]})
    with tempfile.TemporaryDirectory() as folder:
        run_export(Path(folder))
        empty_the_database()
        report = run_import(Path(folder))
    assert "group 'security' was created" in report.warnings[0][1]
    assert not Task.objects.visible_to(make_user("yan", "contributor")).exists()


@pytest.mark.django_db
def test_lists_longer_than_frontmatter_may_be_survive() -> None:
    evidence = [f"{number}: " + "log line " * 900 for number in range(12)]
    write_path.create_item(
        system(), "task", {"title": "Long", "description": "Text", "evidence": evidence}
    )
    assert_survives()
    assert Task.objects.get().evidence == evidence


@pytest.mark.django_db
def test_files_survive_with_what_their_bytes_do_not_say() -> None:
    make_user("zoe", "contributor", "security")
    binary = bytes(range(256))
    stored_files.create_resource(
        system(), "resources/docs/plain.md", "# Heading\r\n\ufeffText", title=""
    )
    stored_files.create_resource(
        system(),
        "resources/docs/told.md",
        "# Heading\n",
        title="Another",
        description="Why",
        tags=["a"],
    )
    stored_files.create_resource(
        system(), "artifacts/logo.bin", binary, mime_type="image/tiff", groups=["security"]
    )
    stored_files.create_resource(system(), "artifacts/empty.txt", "")
    stored_files.create_resource(system(), "resources/gone.md", "Old")
    stored_files.remove(system(), "resources/gone.md")
    write_path.write(
        system(),
        "mcp://backlog/resources/docs/plain.md",
        {"type": "set", "field": "title", "value": ""},
    )
    facts = (
        "path",
        "mime_type",
        "sha256",
        "title",
        "description",
        "tags",
        "groups",
        "content",
        "archived_at",
    )
    before = list(Resource.objects.order_by("path").values(*facts))
    assert_survives()
    assert list(Resource.objects.order_by("path").values(*facts)) == before
    assert bytes(Resource.objects.get(path="artifacts/logo.bin").blob or b"") == binary
