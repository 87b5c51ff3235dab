"""Test file:// links: found in markdown, made portable where a root holds the file; addresses
resolved locally.
"""

from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from resources_app.files.links import find_file_links, machine_specific_paths, replace_file_links
from resources_app.interchange.scan import scan
from resources_app.models import Change, Comment, Epic, Resource, Task
from resources_app.writing import stored_files, write_path
from tests.factories import as_actor, make_epic, make_task, task_uri


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("see file:///a/b.md.", ["file:///a/b.md"]),
        ("[x](file:///a/b.md) and <file:///c d>", ["file:///a/b.md", "file:///c"]),
        ("[file:///a/b.md](file:///a/b.md)", ["file:///a/b.md", "file:///a/b.md"]),
        ("(file:///a/b_(1).md), \"file:///q\"", ["file:///a/b_(1).md", "file:///q"]),
        ("'file:///r' `file:///s`", ["file:///r", "file:///s"]),
        ("**file:///a/b.md**: yes!", ["file:///a/b.md"]),
        ("file://localhost/a/b FILE:///A", ["file://localhost/a/b", "FILE:///A"]),
        ("| file:///a | file:///b |", ["file:///a", "file:///b"]),
        ("file:///a%20b/ж.md#L10", ["file:///a%20b/ж.md#L10"]),
        ("file:// file:/a profile://x https://x.org/file", []),
        ("a\nfile:///x\ny", ["file:///x"]),
    ],
)  # fmt: skip
def test_links_are_found_where_they_start_and_end(text: str, links: list[str]) -> None:
    found = find_file_links(text)
    assert [link.uri for link in found] == links
    assert all(text[link.start : link.end] == link.uri for link in found)


@given(st.text(st.sampled_from(list('file:/ab.)(<>" \n')), max_size=80))
def test_replacing_by_nothing_or_by_the_same_leaves_the_text(text: str) -> None:
    assert replace_file_links(text, lambda _: None) == text
    assert replace_file_links(text, lambda uri: uri) == text


def test_a_link_that_begins_like_another_is_not_mangled() -> None:
    text = "file:///a and file:///a.md and file:///a/b"
    assert replace_file_links(text, {"file:///a": "X"}.get) == "X and file:///a.md and file:///a/b"


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("in file:///Users/g/x.md and /home/al/notes.txt.", ["file:///Users/g/x.md", "/home/al/notes.txt"]),
        (r"open C:\Users\g\x.txt, or D:/notes/y", [r"C:\Users\g\x.txt", "D:/notes/y"]),
        ("/Users/a/b /Users/a/b", ["/Users/a/b"]),
        ("https://example.org/home/al/x docs/home/al ./home/al mcp://backlog/resources/home/x", []),
        ("mcp://backlog/resources/a.md http://x.org/Users/me TASK-0001: do it", []),
        ("`/home/al/x`", ["/home/al/x"]),
        ("ratio a:b and 10:30 and x:/y", ["x:/y"]),
    ],
)  # fmt: skip
def test_paths_that_work_on_one_machine_only_are_found(text: str, paths: list[str]) -> None:
    assert machine_specific_paths(text) == paths


# With a root


@pytest.fixture
def root(tmp_path: Path, settings: Settings, db: None) -> Path:
    folder = tmp_path / "docs"
    (folder / "adr").mkdir(parents=True)
    (folder / "adr" / "my file.md").write_text("one")
    (folder / "a.md").write_text("a")
    (folder / "link.md").symlink_to("a.md")
    (folder / "way-out").symlink_to("/etc")
    settings.RESOURCE_ROOTS = {"docs": folder}
    scan()
    return folder


def convert(*arguments: str) -> str:
    out = StringIO()
    call_command("convert_uris", *arguments, stdout=out, stderr=out)
    return out.getvalue()


def test_links_inside_a_root_become_portable_everywhere_and_the_others_are_named(
    root: Path, alice: User
) -> None:
    link, spaced, foreign = (
        f"file://{root}/a.md",
        f"file://{root}/adr/my%20file.md",
        "file:///Users/g/x.md",
    )
    text = f"See [it]({link}), [that]({spaced}) and {foreign}.\n"
    task = make_task(
        description=text,
        references=[{"url": link, "title": "A"}, {"url": foreign}],
        evidence=[f"in {link}"],
    )
    epic = make_epic(description=link)
    comment = write_path.add_comment(as_actor(alice), task_uri(task), f"read {link}")
    stored_files.create_resource(as_actor(alice), "resources/notes.md", text)
    before = Change.objects.count()

    dry = convert()
    assert "8 links can be converted, 3 cannot" in dry and Change.objects.count() == before
    assert f"warning: mcp://backlog/tasks/{task.ref} description: {foreign} stays" in dry

    assert "8 links converted in 4 places, 3 left" in convert("--apply")
    new, new_spaced = (
        "mcp://backlog/resources/docs/a.md",
        "mcp://backlog/resources/docs/adr/my%20file.md",
    )
    converted = f"See [it]({new}), [that]({new_spaced}) and {foreign}.\n"
    task = Task.objects.get(pk=task.pk)
    assert (task.description, task.evidence) == (converted, [f"in {new}"])
    assert task.references == [{"url": new, "title": "A"}, {"url": foreign, "title": ""}]
    assert Epic.objects.get(pk=epic.pk).description == new
    assert Comment.objects.get(pk=comment.pk).body == f"read {new}"
    assert Resource.objects.get(path="resources/notes.md").content == converted
    written = Change.objects.filter(pk__gt=0).order_by("-pk")[:4]
    assert {(change.via, change.author) for change in written} == {("import", None)}
    assert len({change.batch for change in written}) == 4 and None not in {
        change.batch for change in written
    }
    assert task.version == 2

    after = Change.objects.count()
    assert (
        "0 links converted in 0 places, 3 left" in convert("--apply")
        and Change.objects.count() == after
    )


def test_a_link_by_a_symbolic_link_is_converted_to_the_real_file(root: Path) -> None:
    task = make_task(description=f"file://{root}/link.md file://{root}/adr")
    convert("--apply")
    new = "mcp://backlog/resources/docs/a.md mcp://backlog/resources/docs/adr"
    assert Task.objects.get(pk=task.pk).description == new


@pytest.mark.parametrize("fragment", ["#L3", "#L10-L20", "#a-section", "#%C3%A9"])
def test_a_converted_link_keeps_its_fragment(root: Path, fragment: str) -> None:
    task = make_task(description=f"[x](file://{root}/a.md{fragment}) and file://{root}/a.md")
    assert "2 links converted in 1 place" in convert("--apply")
    new = f"[x](mcp://backlog/resources/docs/a.md{fragment}) and mcp://backlog/resources/docs/a.md"
    assert Task.objects.get(pk=task.pk).description == new


@pytest.mark.parametrize(
    "tail", ["absent.md", "absent.md#L3", "a%.md", "../docs/a.md", "%2e%2e/x", ""]
)
def test_what_would_not_resolve_is_left_with_a_reason(root: Path, tail: str) -> None:
    task = make_task(description=f"file://{root}/{tail}")
    assert "0 links converted in 0 places, 1 left" in convert("--apply")
    assert Task.objects.get(pk=task.pk).version == 1


def test_archived_and_mirrored_things_are_left_alone(root: Path, carol: User) -> None:
    task = make_task(description=f"file://{root}/a.md")
    write_path.archive(as_actor(carol), task_uri(task))
    (root / "b.md").write_text(f"file://{root}/a.md")
    scan()
    assert "0 links converted in 0 places, 0 left" in convert("--apply")


def resolve(uri: str) -> str:
    out = StringIO()
    call_command("resolve_uri", uri, stdout=out)
    return out.getvalue().removesuffix("\n")


def test_an_address_below_a_root_resolves_to_the_file(root: Path) -> None:
    assert resolve("mcp://backlog/resources/docs/adr/my%20file.md") == f"{root}/adr/my file.md"
    assert resolve("mcp://backlog/resources/docs/adr") == f"{root}/adr"
    assert resolve(f"file://{root}/a.md") == f"{root}/a.md"


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("mcp://backlog/resources/notes.md", "stored in the backlog"),
        ("mcp://backlog/tasks/TASK-0001", "kept in the database"),
        ("mcp://backlog/resources/docs/absent.md", "no file"),
        ("mcp://backlog/resources/docs/a.md@v2", "version"),
        ("mcp://backlog/resources/docs/%2e%2e/x", "'..'"),
        ("mcp://other/resources/docs/a.md", "no local file"),
        ("mcp://backlog/resources/docs/way-out", "no file"),
        ("file:///etc/passwd", "no configured folder"),
        ("auth://status", "no local file"),
        ("nonsense", "scheme://"),
    ],
)  # fmt: skip
def test_what_has_no_local_file_says_so(root: Path, uri: str, reason: str) -> None:
    with pytest.raises(CommandError) as caught:
        resolve(uri)
    assert reason in str(caught.value) and caught.value.returncode == 1


def test_a_fragment_does_not_keep_an_address_from_its_file(root: Path) -> None:
    assert (
        resolve("mcp://backlog/resources/docs/a.md#L3")
        == resolve(f"file://{root}/a.md#top")
        == f"{root}/a.md"
    )
