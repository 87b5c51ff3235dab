"""Test context: the focus and its surroundings, never over budget, an accurate ledger, only visible
objects.
"""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User

from bench.tokens import count_tokens
from resources_app.writing import stored_files, write_path
from tests.api.clients import ApiClient, error_of
from tests.factories import as_actor, make_epic, make_task, make_user, task_uri

CONTEXT = "/api/v1/context/"


@pytest.fixture
def surroundings(alice: User) -> dict[str, Any]:
    actor = as_actor(alice)
    epic = make_epic(title="Sign-in", description="All about signing in")
    stored_files.create_resource(actor, "resources/docs/adr.md", "# Decision\nUse passkeys.\n")
    needed = make_task(title="Issue certificates", epic_id=epic.ref)
    focus = make_task(
        title="Passkeys for customers",
        description=f"As in mcp://backlog/resources/docs/adr.md, after {needed.ref}.",
        epic_id=epic.ref,
        depends_on=[needed.ref],
    )
    dependent = make_task(title="Announce it", depends_on=[focus.ref])
    mention = make_task(title="Elsewhere", description=f"see {focus.ref} first")
    write_path.add_comment(actor, task_uri(focus), "Try it with Firefox.")
    return {
        "epic": epic,
        "needed": needed,
        "focus": focus,
        "dependent": dependent,
        "mention": mention,
    }


def parts_of(answer: dict[str, Any]) -> dict[str, str]:
    return {part["uri"]: part["role"] for part in answer["parts"]}


def test_everything_around_a_task_is_there(bob: User, surroundings: dict[str, Any]) -> None:
    answer = ApiClient(bob).get(f"{CONTEXT}?id={surroundings['focus'].ref}").json()
    roles = parts_of(answer)
    assert answer["focus"] == task_uri(surroundings["focus"])
    assert answer["parts"][0]["role"] == "focus" and answer["parts"][0]["fidelity"] == "full"
    assert answer["parts"][0]["content"]["description"].startswith("As in mcp://")
    assert answer["parts"][1]["role"] == "parent"
    assert roles["mcp://backlog/epics/EPIC-0001"] == "parent"
    assert roles[task_uri(surroundings["needed"])] in {"sibling", "dependency"}
    assert roles[task_uri(surroundings["dependent"])] == "dependent"
    assert roles["mcp://backlog/resources/docs/adr.md"] == "reference"
    assert roles[task_uri(surroundings["mention"])] == "referenced_by"
    assert "comment" in roles.values() and "change" in roles.values()
    assert answer["left_out"] == []


@pytest.mark.parametrize("max_tokens", [100, 200, 400, 1000, 4000, 20000])
def test_never_over_budget_and_nothing_missing_without_a_word(
    bob: User, surroundings: dict[str, Any], max_tokens: int
) -> None:
    client = ApiClient(bob)
    whole = client.get(f"{CONTEXT}?id={surroundings['focus'].ref}&max_tokens=20000").json()
    answer = client.get(f"{CONTEXT}?id={surroundings['focus'].ref}&max_tokens={max_tokens}").json()
    assert count_tokens(json.dumps(answer, ensure_ascii=False)) <= max_tokens
    assert answer["tokens"] <= max_tokens
    named = [entry for entry in answer["left_out"] if "uri" in entry]
    unnamed = sum(entry.get("more", 0) for entry in answer["left_out"])
    assert len(answer["parts"]) + len(named) + unnamed == len(whole["parts"])
    assert (
        answer
        == client.get(f"{CONTEXT}?id={surroundings['focus'].ref}&max_tokens={max_tokens}").json()
    )


def test_a_long_thing_is_cut_and_says_so(bob: User) -> None:
    task = make_task(title="Long", description="word " * 5000)
    [focus] = ApiClient(bob).get(f"{CONTEXT}?id={task.ref}&max_tokens=2000").json()["parts"][:1]
    assert focus["fidelity"] == "full"
    shown = focus["content"]
    assert len(shown["description"]) + shown["truncated"]["characters_left"] == len(
        task.description
    )


@pytest.mark.parametrize("text", ["数据库很慢 ", "Задача на завтра ", '"quoted"\n', "😀 "])
def test_texts_of_any_script_stay_within_the_budget(bob: User, text: str) -> None:
    task = make_task(title=text.strip() * 5, description=text * 3000)
    for max_tokens in (100, 500, 4000):
        answer = ApiClient(bob).get(f"{CONTEXT}?id={task.ref}&max_tokens={max_tokens}").json()
        assert count_tokens(json.dumps(answer, ensure_ascii=False)) <= max_tokens


def test_relations_that_are_too_many_name_the_address_that_lists_them(bob: User) -> None:
    epic = make_epic()
    for number in range(25):
        make_task(title=f"Step {number}", epic_id=epic.ref)
    answer = ApiClient(bob).get(f"{CONTEXT}?id={epic.ref}&max_tokens=20000").json()
    assert parts_of(answer)[f"mcp://backlog/epics/{epic.ref}/tasks"] == "child"
    assert list(parts_of(answer).values()).count("child") == 21


def test_a_collection_has_no_context(bob: User) -> None:
    response = ApiClient(bob).get(f"{CONTEXT}?id=mcp://backlog/tasks")
    assert error_of(response)["message"] == (
        "Context is made for tasks, epics, files and IntelligenceBank assets."
    )


def test_a_query_takes_its_best_hit(bob: User, surroundings: dict[str, Any]) -> None:
    answer = ApiClient(bob).get(f"{CONTEXT}?query=passkeys customers").json()
    assert answer["focus"] == task_uri(surroundings["focus"])
    assert ApiClient(bob).get(f"{CONTEXT}?query=zzzzzzzz").status_code == 404


def test_depth_two_goes_one_step_further(bob: User) -> None:
    far = make_task(title="Far")
    near = make_task(title="Near", depends_on=[far.ref])
    focus = make_task(title="Focus", depends_on=[near.ref])
    client = ApiClient(bob)
    assert task_uri(far) not in parts_of(client.get(f"{CONTEXT}?id={focus.ref}").json())
    assert task_uri(far) in parts_of(client.get(f"{CONTEXT}?id={focus.ref}&depth=2").json())


def test_what_is_hidden_leaves_no_trace(bob: User, mallory: User) -> None:
    dora = make_user("dora", "viewer", "security")
    secret = make_task(title="Secret key rotation", groups=["security"])
    focus = make_task(title="Key rotation", description=f"after {secret.ref}")
    assert "Secret" not in ApiClient(bob).get(f"{CONTEXT}?id={focus.ref}").content.decode()
    assert "Secret" in ApiClient(dora).get(f"{CONTEXT}?id={focus.ref}").content.decode()
    assert ApiClient(bob).get(f"{CONTEXT}?id={secret.ref}").status_code == 404
    outsider = ApiClient()
    outsider._client.force_login(mallory)
    assert outsider.get(f"{CONTEXT}?id={focus.ref}").status_code == 404


@pytest.mark.parametrize(
    "query",
    [
        "",
        "id=TASK-0001&query=x",
        "id=TASK-0001&max_tokens=1",
        "id=TASK-0001&depth=3",
        "id=TASK-0001&colour=red",
    ],
)
def test_bad_requests_are_refused(bob: User, query: str) -> None:
    make_task()
    response = ApiClient(bob).get(f"{CONTEXT}?{query}")
    assert (response.status_code, error_of(response)["code"]) == (400, "validation_failed")


def test_context_has_an_address(bob: User, surroundings: dict[str, Any]) -> None:
    client = ApiClient(bob)
    ref = surroundings["focus"].ref
    read = client.get(f"/api/v1/resource/?uri=mcp://backlog/context/{ref}?max_tokens=1000").json()
    assert read["contents"] == client.get(f"{CONTEXT}?id={ref}&max_tokens=1000").json()
