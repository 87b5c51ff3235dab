"""Test semantic search: embedded texts are found without a shared word, within filters and
visibility.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Group, User

from resources_app.errors import NotFound
from resources_app.jobs import queue
from resources_app.models import Job
from resources_app.writing import write_path
from search_app.context import build_context
from search_app.index.rebuild import reindex, sweep
from search_app.models import Document, Passage
from search_app.search import search_unified
from search_app.semantic import worker
from search_app.semantic.snapshot import SNAPSHOT
from tests.factories import as_actor, make_epic, make_task, task_uri
from tests.search_app.finding import found, only

CAR = "The automobile's ignition fails"
MEANT = "car does not start"


@pytest.fixture(autouse=True)
def _fresh_snapshot() -> Iterator[None]:
    SNAPSHOT.forget()
    yield
    SNAPSHOT.forget()


def let_the_worker_embed() -> None:
    worker.enqueue_if_pending()
    for running in iter(queue.claim_next, None):
        queue.run(running)
    assert not Job.objects.exclude(state=Job.State.DONE).exists()


@pytest.mark.django_db
def test_what_is_meant_is_found_once_the_worker_has_been_there(bob: User) -> None:
    car = make_task(title=CAR)
    make_task(title="Invoices are sent on Monday")
    before = search_unified(bob, MEANT)
    assert (before["search_mode"], before["total"]) == ("bm25", 0)
    let_the_worker_embed()
    after = search_unified(bob, MEANT)
    assert after["search_mode"] == "hybrid"
    [result] = after["results"]
    assert (result["id"], result["match"], result["snippet"]["matched_fields"]) == (
        car.ref,
        "semantic",
        [],
    )
    assert (after["total"], after["semantic_total"]) == (0, 1)
    assert after["index_version"] != before["index_version"]


@pytest.mark.django_db
def test_words_and_meaning_make_one_ranking_that_says_why(bob: User) -> None:
    both = make_task(title="The car does not start in the cold")
    meant = make_task(title=CAR)
    worded = make_task(title="Start of the year")
    let_the_worker_embed()
    answer = search_unified(bob, MEANT, explain=True)
    assert [result["id"] for result in answer["results"]] == [both.ref, meant.ref, worded.ref]
    first, second, _ = (result["explain"] for result in answer["results"])
    assert first["meaning"] > second["meaning"] > 0.25
    assert first["text"] > 0.25
    assert second["text"] == 0
    assert [result.get("match") for result in answer["results"]] == [None, "semantic", None]
    assert (answer["total"], answer["semantic_total"]) == (2, 1)


@pytest.mark.django_db
def test_filters_and_visibility_hold_for_what_is_meant(bob: User, carol: User) -> None:
    shown, _ = make_task(title=CAR, status="blocked"), make_epic(title=CAR)
    hidden = make_task(title=CAR, groups=[Group.objects.create(name="insiders").name])
    gone = make_task(title=CAR)
    let_the_worker_embed()
    write_path.archive(as_actor(carol), task_uri(gone))
    assert found(bob, MEANT, types="task") == [shown.ref]
    assert search_unified(bob, MEANT)["semantic_total"] == 2
    assert set(found(carol, MEANT, types="task")) == {shown.ref, hidden.ref}
    assert found(bob, MEANT, status="open", types="task") == []


@pytest.mark.django_db
def test_without_a_role_nothing_is_meant_either(mallory: User) -> None:
    make_task(title=CAR)
    let_the_worker_embed()
    answer = search_unified(mallory, MEANT)
    assert (answer["results"], answer["total"], answer["next_cursor"]) == ([], 0, None)


@pytest.mark.django_db
def test_a_narrow_filter_still_finds_its_own_among_very_many(
    bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("search_app.semantic.snapshot.COMPARED", 3)
    for number in range(6):
        make_task(title=f"Car {number} does not start")
    wanted = make_task(title=CAR, status="blocked")
    let_the_worker_embed()
    assert found(bob, MEANT, status="blocked") == [wanted.ref]


@pytest.mark.django_db
def test_an_edit_moves_the_meaning_and_embeds_only_what_changed(alice: User) -> None:
    task = make_task(title="Notes", description="Invoices are sent on Monday. " * 60)
    let_the_worker_embed()
    vectors = {bytes(one.digest): bytes(one.vector) for one in Passage.objects.all()}
    write_path.write(
        as_actor(alice), task_uri(task, "description"), {"type": "append", "content": f"\n{CAR}."}
    )
    let_the_worker_embed()
    kept = [one for one in Passage.objects.order_by("number") if bytes(one.digest) in vectors]
    assert len(kept) == len(vectors) - 1
    assert all(vectors[bytes(one.digest)] == bytes(one.vector) for one in kept)
    assert not Document.objects.filter(pending=True).exists()


@pytest.mark.django_db
def test_a_write_that_comes_while_embedding_stays_pending(alice: User) -> None:
    task = make_task(title=CAR)

    def write_meanwhile() -> None:
        write_path.write(
            as_actor(alice), task_uri(task, "title"), {"type": "set", "value": "Invoices"}
        )

    assert worker.embed_some(write_meanwhile) == 1
    assert Document.objects.get().pending
    let_the_worker_embed()
    assert found(alice, MEANT) == []


@pytest.mark.django_db
def test_a_rebuild_keeps_the_vectors(bob: User) -> None:
    car = make_task(title=CAR)
    let_the_worker_embed()
    [passage] = Passage.objects.values_list("pk", flat=True)
    reindex()
    assert found(bob, MEANT) == [car.ref]
    let_the_worker_embed()
    assert list(Passage.objects.values_list("pk", flat=True)) == [passage]


@pytest.mark.django_db
def test_what_is_deleted_or_lost_leaves_no_passage(carol: User) -> None:
    deleted, lost = make_task(title=CAR), make_task(title=CAR)
    let_the_worker_embed()
    write_path.delete_permanently(as_actor(carol), task_uri(deleted))
    assert Passage.objects.count() == 1
    type(lost).objects.all().delete()
    sweep()
    assert not Passage.objects.exists()


@pytest.mark.django_db
def test_without_the_model_everything_works_by_words(bob: User, settings: Any) -> None:
    car = make_task(title=CAR)
    let_the_worker_embed()
    settings.SEARCH_EMBEDDINGS = False
    make_task(title="Another one")
    worker.enqueue_if_pending()
    assert not Job.objects.exclude(state=Job.State.DONE).exists()
    assert search_unified(bob, MEANT)["search_mode"] == "bm25"
    assert found(bob, "ignition") == [car.ref]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "query", ["zebra", "zzqqx", "xkcdvwq", "ffffffff", "blorptang", "cache", "поиск"]
)
def test_nonsense_and_words_that_no_text_has_find_nothing(bob: User, query: str) -> None:
    for title in (
        "Health and readiness endpoints",
        "A scanned contract needs an index",
        "Keyboard shortcuts and their help",
        "Read captions and credits from the file",
        "Suggest corrections for one wrong letter",
        "Search in Chinese, Japanese and other scripts",
    ):
        make_task(title=title)
    let_the_worker_embed()
    answer = search_unified(bob, query)
    assert (answer["results"], answer["total"], answer["semantic_total"]) == ([], 0, 0)
    with pytest.raises(NotFound):
        build_context(bob, query=query)


@pytest.mark.django_db
@pytest.mark.parametrize("query", ["m574e4aw18n6z", "made m574e4aw18n6z"])
def test_a_rare_exact_word_comes_first_among_near_twins(bob: User, query: str) -> None:
    for number in range(30):
        make_task(title=f"made m574e4aw18n{number + 10}z", description="Nothing else")
    exact = make_task(
        title="Notes of the week",
        description=f"{'Many other words. ' * 60} Then m574e4aw18n6z came.",
    )
    for number in range(30):
        make_task(title=f"made m574e4aw18n{number + 40}z")
    assert found(bob, query)[0] == exact.ref
    let_the_worker_embed()
    assert found(bob, query)[0] == exact.ref


@pytest.mark.django_db
def test_a_corrected_word_counts_half_and_says_so(bob: User) -> None:
    typed = make_task(title="Something", description="A milstone of the road")
    make_task(title="Milestone")
    assert found(bob, "milstone") == [typed.ref]
    assert only(bob, "milstonf")["match"] == "corrected"
    corrected, exact = (
        only(bob, query, types="task", explain=True)["explain"] for query in ("roaf", "road")
    )
    assert corrected["text"] == pytest.approx(exact["text"] / 2, abs=0.0001)
    assert corrected["coordination"] == exact["coordination"] / 2


@pytest.mark.django_db
def test_a_score_does_not_depend_on_the_other_candidates(bob: User) -> None:
    make_task(title="The car does not start in the cold", status="blocked")
    make_task(title=CAR)
    make_task(title="Start of the car year")
    let_the_worker_embed()
    scores = [
        {
            result["id"]: result["score"]
            for result in search_unified(bob, MEANT, include_scores=True, **chosen)["results"]
        }
        for chosen in ({}, {"status": "blocked"}, {"limit": 1})
    ]
    assert scores[1]["TASK-0001"] == scores[2]["TASK-0001"] == scores[0]["TASK-0001"]


@pytest.mark.django_db
def test_a_document_that_is_not_embedded_yet_keeps_its_lexical_standing(bob: User) -> None:
    words = make_task(title="Nightly import of contracts fails")
    others = [make_task(title=f"Import number {number} is slow") for number in range(5)]
    let_the_worker_embed()
    Passage.objects.filter(kind="task", object_id=words.pk).delete()
    SNAPSHOT.forget()
    answer = search_unified(bob, "nightly import of contracts")
    assert answer["search_mode"] == "hybrid"
    assert answer["results"][0]["id"] == words.ref and len(answer["results"]) == len(others) + 1
