"""Test what users and agents type, and what they find."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from resources_app.errors import ValidationFailed
from resources_app.writing.stored_files import create_resource
from search_app.search import search_unified
from tests.factories import as_actor, make_epic, make_task, system
from tests.search_app.finding import found, only


@pytest.mark.parametrize(
    ("written", "typed"),
    [
        ("Rework authentication", "authenticat"),
        ("Rework authentication", "authenticaton"),
        ("Rework authentication", "AUTHENTICATION"),
        ("Rework authentication", "authenticating"),
        ("Rework authentication", "re"),
        ("Новая Задача для команды", "Задача"),
        ("Новая задача для команды", "задачи"),
        ("Новая задача для команды", "задчаа"),
        ("优化数据库查询", "数据库"),
        ("优化数据库查询", "库"),
        ("データベースの移行", "データベース"),
        ("Call getUserById twice", "getUserById"),
        ("Call getUserById twice", "get_user_by_id"),
        ("Call getUserById twice", "user by id"),
        ("Call getUserById twice", "getUserB"),
        ("Fix the café menu", "cafe"),
        ("Fix the cafe menu", "café"),
        ("Read src/auth/login_view.py", "login_view.py"),
        ("Read src/auth/login_view.py", "auth/login"),
        ("full-text search", "fulltext"),
        ("Ship it 🚀", "🚀"),
        ("the", "the"),
    ],
)
def test_what_is_typed_finds_what_is_meant(bob: User, written: str, typed: str) -> None:
    task = make_task(title=written, description="Something else entirely")
    make_task(title="Water the plants", description="Nothing to do with it")
    assert found(bob, typed)[0] == task.ref


@pytest.mark.parametrize("typed", ["TASK-39", "task-0039", "TASK-0039", "39", "task 39"])
def test_an_exact_id_comes_first(bob: User, typed: str) -> None:
    tasks = [make_task(title=f"Mentions TASK-0039 and number 39, {n}") for n in range(40)]
    assert found(bob, typed)[0] == tasks[38].ref == "TASK-0039"


def test_a_bare_number_means_the_task_before_what_mentions_it(bob: User) -> None:
    task = make_task(title="Plain")
    make_task(title="1 1 1 1", description="1 1 1")
    assert found(bob, "1")[0] == task.ref


def test_an_exact_title_comes_first(bob: User) -> None:
    for n in range(5):
        make_task(title=f"Login page login page {n}", description="login page " * 5)
    exact = make_task(title="Login  Page", description="x " * 500)
    assert found(bob, "login page")[0] == exact.ref


def test_a_title_weighs_more_than_a_text(bob: User) -> None:
    in_text = make_task(title="Something", description="The export of folders")
    in_title = make_task(title="The export of folders", description="Something")
    assert found(bob, "export") == [in_title.ref, in_text.ref]


def test_a_short_beginning_is_looked_for_in_titles_alone(bob: User) -> None:
    make_task(title="Something", description="The export of folders")
    in_title = make_task(title="Export", description="Something")
    assert found(bob, "ex") == found(bob, "exp") == [in_title.ref]
    assert len(found(bob, "expo")) == 2


def test_more_of_the_words_rank_higher_but_any_is_enough(bob: User) -> None:
    one = make_task(title="Slow import")
    both = make_task(title="Slow nightly import of contracts")
    assert found(bob, "nightly contracts import") == [both.ref, one.ref]


def test_equal_scores_order_by_id(bob: User) -> None:
    refs = [make_task(title="Same words").ref for _ in range(5)]
    assert found(bob, "same") == refs


def test_comments_are_found_as_their_item(bob: User, alice: User) -> None:
    from resources_app.writing import write_path as writing

    task = make_task(title="Quiet")
    writing.add_comment(
        as_actor(alice), f"mcp://backlog/tasks/{task.ref}", "The **kraken** was here"
    )
    result = only(bob, "kraken")
    assert result["id"] == task.ref
    assert (
        result["snippet"]["field"] == "comments"
        and result["snippet"]["text"] == "The kraken was here"
    )


def test_resources_are_found_by_content_path_and_name(bob: User) -> None:
    create_resource(
        system(), "resources/guides/deploy-notes.md", "# Rolling out\n\nUse the canary first."
    )
    create_resource(system(), "resources/app/user_store.py", "def getUserById(id):\n    return 1\n")
    assert found(bob, "canary") == ["resources/guides/deploy-notes.md"]
    assert found(bob, "deploy-notes.md")[0] == "resources/guides/deploy-notes.md"
    assert found(bob, "get_user_by_id") == ["resources/app/user_store.py"]


def test_a_resource_without_a_title_shows_its_name(bob: User) -> None:
    create_resource(system(), "resources/app/user_store.py", "import this")
    assert only(bob, "user_store")["title"] == "user_store.py"


def test_leading_words_become_filters(bob: User) -> None:
    blocked = make_task(title="Login is slow", status="blocked", blocked_reason=["waiting"])
    make_task(title="Login is broken")
    make_epic(title="Login", status="blocked")
    assert found(bob, "blocked tasks about login") == [blocked.ref]
    assert found(bob, "blocked tasks about login", explain=True) == [blocked.ref]


def test_a_query_that_is_nothing_but_filters_lists_what_they_leave(
    bob: User, mallory: User
) -> None:
    blocked = [make_task(title=f"Step {number}", status="blocked").ref for number in range(3)]
    make_task(title="About blocked tasks")
    make_epic(title="Blocked", status="blocked")
    assert found(bob, "blocked tasks") == blocked[::-1]
    assert found(bob, "Blocked tasks", limit=2) == blocked[:0:-1]
    answer = search_unified(bob, "blocked tasks", limit=1)
    assert (
        answer["total"] == 3 and answer["results"][0]["snippet"]["text"] and answer["next_cursor"]
    )
    assert found(bob, "tasks") == ["TASK-0004"]
    assert search_unified(mallory, "blocked tasks")["total"] == 0


def test_leading_words_stay_words_when_somebody_filters_or_has_that_title(bob: User) -> None:
    epic = make_epic(title="Blocked tasks about login")
    task = make_task(title="Login", status="blocked")
    assert found(bob, "blocked tasks about login")[0] == epic.ref
    assert found(bob, "tasks about login", types=["epic"]) == [epic.ref]
    assert task.ref in found(bob, "blocked tasks about login")


def test_sort_recent_orders_by_the_last_change(bob: User, alice: User) -> None:
    from resources_app.writing import write_path as writing

    first, second = make_task(title="Words words words"), make_task(title="words")
    writing.write(
        as_actor(alice),
        f"mcp://backlog/tasks/{first.ref}/priority",
        {"type": "set", "value": "low"},
    )
    assert found(bob, "words", sort="recent") == [first.ref, second.ref]


def test_filters_give_a_full_page_whenever_enough_match(bob: User) -> None:
    epic = make_epic(title="Home")
    for n in range(30):
        make_task(title=f"Filler export {n}")
    wanted = [
        make_task(
            title=f"Export {n}",
            status="blocked",
            epic_id=epic.ref,
            labels=["a,b", "x"],
            assignee="bob",
        ).ref
        for n in range(5)
    ]
    for options in (
        {"status": ["blocked"]},
        {"status": "blocked,done"},
        {"parent_id": epic.ref},
        {"assignee": "bob"},
        {"label": "a,b"},
        {"label": ["nothing", "x"], "types": "task"},
    ):
        answer = search_unified(bob, "export", limit=5, **options)  # type: ignore[arg-type]
        assert sorted(result["id"] for result in answer["results"]) == wanted, options
        assert answer["total"] == 5 and answer["next_cursor"] is None


def test_a_folder_narrows_to_what_lies_below(bob: User) -> None:
    create_resource(system(), "resources/a/b/one.md", "needle")
    create_resource(system(), "resources/ab/two.md", "needle")
    assert found(bob, "needle", parent_id="resources/a") == ["resources/a/b/one.md"]


def test_types_narrow_and_those_without_documents_find_nothing(bob: User) -> None:
    task, epic = make_task(title="needle"), make_epic(title="needle")
    create_resource(system(), "resources/n.md", "needle")
    assert found(bob, "needle", types="task") == [task.ref]
    assert found(bob, "needle", types=["epic"]) == [epic.ref]
    assert found(bob, "needle", types=["resource"]) == ["resources/n.md"]
    assert found(bob, "needle", types="ib_folder,ib_resource") == []
    assert len(found(bob, "needle")) == 3


@pytest.mark.parametrize("sort", ["relevant", "recent"])
def test_pages_follow_each_other_without_gap_or_repeat(
    bob: User, sort: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("search_app.candidates.WINDOW", 7)
    refs = {make_task(title=f"Words {n} {'words ' * (n % 4)}").ref for n in range(23)}
    pages, cursor = [], None
    while True:
        answer = search_unified(bob, "words", limit=5, cursor=cursor, sort=sort)
        assert answer["total"] == 23
        pages.append([result["id"] for result in answer["results"]])
        if not (cursor := answer["next_cursor"]):
            break
    assert [len(page) for page in pages] == [5, 5, 5, 5, 3]
    assert {ref for page in pages for ref in page} == refs


def test_of_very_many_matches_the_best_are_still_first(
    bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("search_app.candidates.WINDOW", 5)
    exact = make_task(title="common")
    both = make_task(title="Also common", description="rare")
    rare = make_task(title="Only", description="a rare one")
    for n in range(30):
        make_task(title=f"Filler {n}", description="common words here")
    assert found(bob, "common rare")[:2] == [both.ref, rare.ref]
    assert found(bob, "common")[0] == exact.ref
    assert found(bob, "1")[0] == exact.ref


@pytest.mark.parametrize(
    ("options", "field", "allowed"),
    [
        ({"types": ["tasks"]}, "types", "ib_folder"),
        ({"status": "opened"}, "status", "in_progress"),
        ({"sort": "newest"}, "sort", "recent"),
        ({"parent_id": "TASK-0001"}, "parent_id", "EPIC-0001"),
    ],
)
def test_an_unknown_value_is_refused_with_the_known_ones(
    bob: User, options: dict[str, Any], field: str, allowed: str
) -> None:
    with pytest.raises(ValidationFailed) as refused:
        search_unified(bob, "x", **options)
    assert refused.value.details["field"] == field
    assert allowed in refused.value.details["allowed_values"]


@pytest.mark.parametrize(
    "options",
    [{"limit": 0}, {"limit": 101}, {"limit": True}, {"limit": "5"}, {"cursor": "x"}, {"cursor": "MS4x"}, {"label": 5},
     {"assignee": "\x00"}, {"types": ["task"] * 51}],
)  # fmt: skip
def test_what_cannot_be_used_is_refused(bob: User, options: dict[str, Any]) -> None:
    with pytest.raises(ValidationFailed):
        search_unified(bob, "x", **options)


def test_a_cursor_belongs_to_its_query(bob: User) -> None:
    for _ in range(3):
        make_task(title="words")
    cursor = search_unified(bob, "words", limit=2)["next_cursor"]
    with pytest.raises(ValidationFailed, match="same query"):
        search_unified(bob, "word", limit=2, cursor=cursor)


def test_the_query_is_bounded(bob: User) -> None:
    with pytest.raises(ValidationFailed, match="at most"):
        search_unified(bob, "x" * 1001)
    answer = search_unified(bob, " ".join(f"w{n}" for n in range(200)), explain=True)
    assert len(answer["explain"]["terms"]) == 32


def test_content_and_scores_come_when_asked_for(bob: User) -> None:
    make_task(title="needle", description="# Long *text*")
    plain = only(bob, "needle")
    assert "score" not in plain and "content" not in plain and "explain" not in plain
    full = only(bob, "needle", include_content=True, include_scores=True, explain=True)
    assert full["content"] == "# Long *text*"
    assert full["score"] == pytest.approx(sum(full["explain"].values()), abs=0.001)


def test_a_correction_is_said_and_made_of_visible_words_only(bob: User, carol: User) -> None:
    from django.contrib.auth.models import Group

    Group.objects.create(name="secret")
    make_task(title="Zanzibar", groups=["secret"], actor=as_actor(carol))
    explained = search_unified(bob, "zanzibra", explain=True)["explain"]
    assert explained["terms"][0]["corrected_from"] is None
    assert (
        search_unified(carol, "zanzibra", explain=True)["explain"]["terms"][0]["word"] == "zanzibar"
    )
