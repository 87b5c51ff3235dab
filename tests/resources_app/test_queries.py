"""Test the collection query language of the contract, section 5."""

import datetime

import pytest
from django.contrib.auth.models import Group, User
from django.utils import timezone
from hypothesis import given, settings
from hypothesis import strategies as st

from resources_app.errors import ValidationFailed
from resources_app.models import Epic, Task
from resources_app.querying.queries import count_groups, fetch_page, parse_query, query_of, select
from resources_app.writing import write_path
from tests.factories import make_epic, make_task, make_user, system, task_uri


def found(user: User, *pairs: tuple[str, str]) -> list[str]:
    query = query_of(user, Task, pairs)
    return sorted(
        task.title for task in fetch_page(Task.objects.visible_to(user).live(), query).rows
    )


def test_the_same_parameter_again_means_or(bob: User) -> None:
    for status in ("open", "in_progress", "done"):
        make_task(title=status, status=status)
    assert found(bob, ("status", "open"), ("status", "in_progress")) == ["in_progress", "open"]


def test_different_parameters_mean_and(bob: User, alice: User) -> None:
    make_task(title="both", status="open", assignee="alice")
    make_task(title="one", status="open")
    assert found(bob, ("status", "open"), ("assignee", "alice")) == ["both"]


def test_an_empty_value_finds_what_has_none(bob: User, alice: User) -> None:
    epic = make_epic()
    make_task(title="mine", assignee="alice", epic_id=epic.ref)
    make_task(title="free")
    assert found(bob, ("assignee", "")) == ["free"]
    assert found(bob, ("epic_id", "")) == ["free"]
    assert found(bob, ("parent_id", epic.ref)) == ["mine"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("status:open,priority:high", ["auth, urgent"]),
        ("priority>=high", ["auth, urgent", "Authentication"]),
        ('title~"auth"', ["Authentication", "auth, urgent"]),
        ('title:"auth, urgent"', ["auth, urgent"]),
        ("status!=open", ["Authentication"]),
        ("label:backend", ["Authentication"]),
        ("label!=backend", ["auth, urgent", "plain"]),
        (
            "created_at>2001-01-01,created_at<2101-01-01",
            ["auth, urgent", "Authentication", "plain"],
        ),
        ("created_at<2001-01-01", []),
        ("due_date<=2026-05-01", ["plain"]),
    ],
)
def test_filters_compare(bob: User, text: str, expected: list[str]) -> None:
    make_task(title="auth, urgent", priority="high")
    make_task(title="Authentication", priority="urgent", status="blocked", labels=["backend"])
    make_task(title="plain", due_date="2026-05-01")
    assert found(bob, ("filter", text)) == sorted(expected)


def test_ready_means_open_and_nothing_unfinished_before_it(bob: User) -> None:
    first = make_task(title="first")
    make_task(title="waits", depends_on=[first.ref])
    make_task(title="busy", status="in_progress")
    assert found(bob, ("ready", "true")) == ["first"]
    write_path.write(system(), task_uri(first, "status"), {"type": "set", "value": "done"})
    assert found(bob, ("ready", "true")) == ["waits"]


def test_not_ready_is_everything_else(bob: User) -> None:
    first = make_task(title="first")
    make_task(title="waits", depends_on=[first.ref])
    make_task(title="busy", status="in_progress")
    make_task(title="over", status="done")
    assert found(bob, ("ready", "false")) == ["busy", "over", "waits"]
    assert found(bob, ("ready", "false"), ("status", "open")) == ["waits"]
    write_path.write(system(), task_uri(first, "status"), {"type": "set", "value": "done"})
    assert found(bob, ("ready", "false")) == ["busy", "first", "over"]


def test_search_wants_every_word_somewhere(bob: User) -> None:
    make_task(title="Login page", description="uses OAuth")
    make_task(title="Login form")
    assert found(bob, ("search", "login oauth")) == ["Login page"]


@pytest.mark.parametrize(
    ("pairs", "field"),
    [
        ([("colour", "red")], "colour"),
        ([("status", "opened")], "status"),
        ([("filter", "colour:red")], "colour"),
        ([("filter", "status>open")], "status"),
        ([("filter", "status")], "filter"),
        ([("filter", "")], "filter"),
        ([("limit", "0")], "limit"),
        ([("limit", "201")], "limit"),
        ([("limit", "99999999999999999999")], "limit"),
        ([("limit", "-1")], "limit"),
        ([("sort", "colour")], "sort"),
        ([("order", "up")], "order"),
        ([("ready", "maybe")], "ready"),
        ([("epic_id", "EPIC-1")], "epic_id"),
        ([("filter", "created_at>yesterday")], "created_at"),
        ([("filter", "created_at:9999-12-31")], "created_at"),
        ([("group_by", "status")], "aggregate"),
        ([("aggregate", "sum")], "aggregate"),
        ([("cursor", "!!!")], "cursor"),
        ([("cursor", "abcd"), ("offset", "1")], "offset"),
        ([("search", "a\x00b")], "search"),
    ],
)
def test_what_is_not_known_is_refused_with_what_is(
    bob: User, pairs: list[tuple[str, str]], field: str
) -> None:
    with pytest.raises(ValidationFailed) as refusal:
        found(bob, *pairs)
    assert refusal.value.details["field"] == field


def test_an_unknown_parameter_is_answered_with_the_known_ones(bob: User) -> None:
    with pytest.raises(ValidationFailed) as refusal:
        parse_query(Task, [("colour", "red")])
    assert {"status", "filter", "ready", "cursor"} <= set(refusal.value.details["allowed_values"])


def test_epics_have_no_task_parameters() -> None:
    with pytest.raises(ValidationFailed):
        parse_query(Epic, [("ready", "true")])
    with pytest.raises(ValidationFailed):
        parse_query(Epic, [("filter", "epic_id:EPIC-0001")])


@pytest.mark.parametrize(
    "sort", ["id", "title", "status", "priority", "due_date", "created_at", "updated_at"]
)
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_cursors_walk_every_row_once_in_order(bob: User, sort: str, order: str) -> None:
    for number in range(23):
        due = f"2026-01-{1 + number % 5:02d}" if number % 3 else None
        make_task(
            title=f"t{number % 4}", priority=("none", "low", "high")[number % 3], due_date=due
        )
    rows = Task.objects.visible_to(bob).live()
    whole = fetch_page(
        rows, parse_query(Task, [("sort", sort), ("order", order), ("limit", "200")])
    ).rows
    walked: list[Task] = []
    pairs = [("sort", sort), ("order", order), ("limit", "5")]
    page = fetch_page(rows, parse_query(Task, pairs))
    walked += page.rows
    while page.next_cursor:
        assert page.total == 23
        page = fetch_page(rows, parse_query(Task, [*pairs, ("cursor", page.next_cursor)]))
        walked += page.rows
    assert [task.pk for task in walked] == [task.pk for task in whole]


def test_a_cursor_of_another_sort_is_refused(bob: User) -> None:
    make_task(), make_task()
    page = fetch_page(Task.objects.visible_to(bob), parse_query(Task, [("limit", "1")]))
    with pytest.raises(ValidationFailed):
        found(bob, ("sort", "title"), ("cursor", str(page.next_cursor)))


def test_counts_by_group(bob: User, alice: User) -> None:
    epic = make_epic()
    make_task(status="open", labels=["a", "b"], assignee="alice", epic_id=epic.ref)
    make_task(status="open", labels=["a"])
    make_task(status="done")
    rows = Task.objects.visible_to(bob).live()

    def counted(group: str) -> dict[str, int]:
        return count_groups(
            rows, parse_query(Task, [("aggregate", "count"), ("group_by", group)]), bob
        )

    assert counted("status") == {
        "open": 2,
        "in_progress": 0,
        "blocked": 0,
        "done": 1,
        "cancelled": 0,
    }
    assert counted("label") == {"a": 2, "b": 1}
    assert counted("assignee") == {"": 2, "alice": 1}
    assert counted("epic_id") == {"": 2, epic.ref: 1}
    assert count_groups(
        rows, parse_query(Task, [("aggregate", "count"), ("status", "open")]), bob
    ) == {"count": 2}


def test_counts_and_totals_hold_only_what_the_reader_sees(bob: User, mallory: User) -> None:
    make_user("dora", "viewer", "security")
    make_task(title="open")
    make_task(title="secret", groups=["security"])
    for user, seen in ((bob, 1), (mallory, 0), (make_user("dora", "viewer", "security"), 2)):
        rows = Task.objects.visible_to(user).live()
        assert fetch_page(rows, parse_query(Task, [])).total == seen
        assert count_groups(rows, parse_query(Task, [("aggregate", "count")]), user) == {
            "count": seen
        }


@pytest.mark.django_db
@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                ["status", "filter", "limit", "cursor", "sort", "label", "x", "created_at"]
            ),
            st.text(),
        ),
        max_size=4,
    )
)
def test_any_query_gives_rows_or_a_clear_refusal(pairs: list[tuple[str, str]]) -> None:
    try:
        query = parse_query(Task, pairs)
        list(select(Task.objects.all(), query)[:1])
        fetch_page(Task.objects.all(), query)
    except ValidationFailed as refusal:
        assert refusal.message


@pytest.mark.parametrize(
    ("title", "typed"),
    [
        ("Привет МИР", "привет"),
        ("ÉCOLE", "école"),
        ("Año Ññ", "ÑÑ"),
        ("Straße (1.*)", "STRASSE"[:4]),
        ("a+É*", "+é*"),
    ],
)
def test_a_part_of_a_text_is_found_in_any_case_of_any_script(
    bob: User, title: str, typed: str
) -> None:
    make_task(title=title)
    make_task(title="Other")
    assert found(bob, ("filter", f'title~"{typed}"')) == [title]


def test_inside_quotes_only_a_quote_and_a_backslash_are_escaped(bob: User) -> None:
    for title in ("a\\b", "ab", 'say "no"'):
        make_task(title=title)
    assert found(bob, ("filter", r'title~"a\b"')) == ["a\\b"]
    assert found(bob, ("filter", r'title~"a\\b"')) == ["a\\b"]
    assert found(bob, ("filter", r"title~a\b")) == ["a\\b"]
    assert found(bob, ("filter", r'title:"say \"no\""')) == ['say "no"']


def made_at(*moments: str) -> None:
    for moment in moments:
        task = make_task(title=moment)
        Task.objects.filter(pk=task.pk).update(created_at=moment, updated_at=moment)


DAYS = {
    ":": ["2026-11-18T00:00:00+01:00", "2026-11-18T23:59:59+01:00"],
    "!=": ["2026-11-17T23:59:59+01:00", "2026-11-19T00:00:00+01:00"],
    ">": ["2026-11-19T00:00:00+01:00"],
    ">=": ["2026-11-18T00:00:00+01:00", "2026-11-18T23:59:59+01:00", "2026-11-19T00:00:00+01:00"],
    "<": ["2026-11-17T23:59:59+01:00"],
    "<=": ["2026-11-17T23:59:59+01:00", "2026-11-18T00:00:00+01:00", "2026-11-18T23:59:59+01:00"],
}


@pytest.mark.parametrize("name", ["created_at", "updated_at"])
@pytest.mark.parametrize("operator", DAYS)
def test_a_date_means_the_whole_day_of_the_callers_time_zone(
    bob: User, operator: str, name: str
) -> None:
    made_at(*DAYS["!="], *DAYS[":"])
    with timezone.override("Europe/Berlin"):
        assert found(bob, ("filter", f"{name}{operator}2026-11-18")) == DAYS[operator]


def test_a_time_is_that_very_moment(bob: User) -> None:
    made_at("2026-11-18T00:00:00+00:00", "2026-11-18T12:00:00+00:00")
    assert found(bob, ("filter", "created_at:2026-11-18T00:00:00Z")) == [
        "2026-11-18T00:00:00+00:00"
    ]
    assert found(bob, ("filter", "created_at<=2026-11-18T00:00:00Z")) == [
        "2026-11-18T00:00:00+00:00"
    ]
    assert found(bob, ("filter", "created_at>2026-11-18T00:00:00Z")) == [
        "2026-11-18T12:00:00+00:00"
    ]


def test_times_may_be_relative(bob: User) -> None:
    now = timezone.now()
    old, new = (now - datetime.timedelta(days=8)).isoformat(), now.isoformat()
    made_at(old, new)
    today = timezone.localdate()
    make_task(title="due", due_date=today.isoformat())
    make_task(title="later", due_date=(today + datetime.timedelta(days=30)).isoformat())
    assert found(bob, ("filter", "created_at>-7d")) == [new, "due", "later"]
    assert found(bob, ("filter", "created_at<-24h")) == [old]
    assert found(bob, ("filter", "created_at:today")) == [new, "due", "later"]
    assert found(bob, ("due_date", "today")) == ["due"]
    assert found(bob, ("filter", "due_date>today")) == ["later"]
    assert found(bob, ("filter", "due_date<=+7d")) == ["due"]
    for text in ("created_at:-7d", "created_at>-7y", "created_at>-99999w"):
        with pytest.raises(ValidationFailed):
            found(bob, ("filter", text))


def test_me_is_the_caller(bob: User, alice: User) -> None:
    make_task(title="hers", assignee="alice")
    make_task(title="his", assignee="bob")
    assert found(bob, ("assignee", "@me")) == ["his"]
    assert found(alice, ("filter", "assignee:@me")) == ["hers"]
    assert found(alice, ("filter", "assignee!=@me")) == ["his"]


def test_what_depends_on_a_task_is_a_filter(bob: User) -> None:
    first = make_task(title="first")
    make_task(title="second", depends_on=[first.ref])
    make_task(title="third", depends_on=[first.ref, "TASK-0002"])
    assert (
        found(bob, ("depends_on", first.ref))
        == found(bob, ("filter", f"depends_on:{first.ref}"))
        == ["second", "third"]
    )
    assert found(bob, ("depends_on", "TASK-0002")) == ["third"]
    assert found(bob, ("depends_on", "")) == ["first"]
    assert found(bob, ("filter", f"depends_on!={first.ref}")) == ["first"]


@pytest.mark.parametrize("name", ["epic_id", "parent_id", "depends_on", "assignee"])
@pytest.mark.parametrize("as_filter", [False, True])
def test_a_name_of_nothing_is_refused_with_suggestions(
    bob: User, alice: User, name: str, as_filter: bool
) -> None:
    Group.objects.create(name="insiders")
    make_epic()
    make_epic(groups=["insiders"])
    make_task()
    make_task(groups=["insiders"])
    near = {"assignee": "alice", "depends_on": "TASK-0001"}.get(name, "EPIC-0001")
    for value in ["Alic"] if name == "assignee" else [f"{near[:4]}-0002", f"{near[:4]}-9999"]:
        with pytest.raises(ValidationFailed) as refused:
            found(bob, ("filter", f"{name}:{value}") if as_filter else (name, value))
        details = refused.value.details
        assert (details["field"], details["value"]) == (name, value)
        assert (
            near in details["allowed_values"]
            and f"{near[:4]}-0002" not in details["allowed_values"]
        )


def test_without_a_role_no_name_is_confirmed_or_denied(mallory: User) -> None:
    make_epic()
    for pairs in ([("epic_id", "EPIC-0001")], [("epic_id", "EPIC-9999")], [("assignee", "ghost")]):
        assert found(mallory, *pairs) == []
