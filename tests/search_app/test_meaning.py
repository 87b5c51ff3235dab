"""Search by meaning: what the worker embedded is found without sharing a word, within filters and visibility."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Group, User

from resources_app import jobs, writing
from resources_app.models import Job
from search_app import embedding
from search_app.embeddings.snapshot import SNAPSHOT
from search_app.models import Document, Passage
from search_app.rebuilding import reindex, sweep
from search_app.search import search_unified
from tests.factories import as_actor, make_epic, make_task, task_uri
from tests.search_app.finding import found

CAR = "The automobile's ignition fails"
MEANT = "car does not start"


@pytest.fixture(autouse=True)
def _fresh_snapshot() -> Iterator[None]:
    SNAPSHOT.forget()
    yield
    SNAPSHOT.forget()


def let_the_worker_embed() -> None:
    embedding.enqueue_if_pending()
    for running in iter(jobs.claim_next, None):
        jobs.run(running)
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
    assert [result["id"] for result in after["results"]] == [car.ref]
    assert after["total"] == 1


@pytest.mark.django_db
def test_words_and_meaning_make_one_ranking_that_says_why(bob: User) -> None:
    both = make_task(title="The car does not start in the cold")
    meant = make_task(title=CAR)
    worded = make_task(title="Start of the year")
    let_the_worker_embed()
    answer = search_unified(bob, MEANT, explain=True)
    assert [result["id"] for result in answer["results"]] == [both.ref, meant.ref, worded.ref]
    first, second, _ = (result["explain"] for result in answer["results"])
    assert first["meaning"] == 0.5
    assert first["text"] == 0.5
    assert second["text"] == 0


@pytest.mark.django_db
def test_filters_and_visibility_hold_for_what_is_meant(bob: User, carol: User) -> None:
    shown, _ = make_task(title=CAR, status="blocked"), make_epic(title=CAR)
    hidden = make_task(title=CAR, groups=[Group.objects.create(name="insiders").name])
    gone = make_task(title=CAR)
    let_the_worker_embed()
    writing.archive(as_actor(carol), task_uri(gone))
    assert found(bob, MEANT, types="task") == [shown.ref]
    assert search_unified(bob, MEANT)["total"] == 2
    assert set(found(carol, MEANT, types="task")) == {shown.ref, hidden.ref}
    assert found(bob, MEANT, status="open", types="task") == []


@pytest.mark.django_db
def test_without_a_role_nothing_is_meant_either(mallory: User) -> None:
    make_task(title=CAR)
    let_the_worker_embed()
    answer = search_unified(mallory, MEANT)
    assert (answer["results"], answer["total"], answer["next_cursor"]) == ([], 0, None)


@pytest.mark.django_db
def test_a_narrow_filter_still_finds_its_own_among_very_many(bob: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("search_app.embeddings.snapshot.COMPARED", 3)
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
    writing.write(as_actor(alice), task_uri(task, "description"), {"type": "append", "content": f"\n{CAR}."})
    let_the_worker_embed()
    kept = [one for one in Passage.objects.order_by("number") if bytes(one.digest) in vectors]
    assert len(kept) == len(vectors) - 1
    assert all(vectors[bytes(one.digest)] == bytes(one.vector) for one in kept)
    assert not Document.objects.filter(pending=True).exists()


@pytest.mark.django_db
def test_a_write_that_comes_while_embedding_stays_pending(alice: User) -> None:
    task = make_task(title=CAR)

    def write_meanwhile() -> None:
        writing.write(as_actor(alice), task_uri(task, "title"), {"type": "set", "value": "Invoices"})

    assert embedding.embed_some(write_meanwhile) == 1
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
    writing.delete_permanently(as_actor(carol), task_uri(deleted))
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
    embedding.enqueue_if_pending()
    assert not Job.objects.exclude(state=Job.State.DONE).exists()
    assert search_unified(bob, MEANT)["search_mode"] == "bm25"
    assert found(bob, "ignition") == [car.ref]
