"""Test random writes against a plain model: stored values, answers and history never disagree with
it.
"""

import copy
from typing import Any

import pytest
from django.db import transaction
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from resources_app.addresses.uris import parse
from resources_app.errors import BacklogError, Conflict, OperationFailed, PermissionDenied
from resources_app.history import revisions as history
from resources_app.history.documents import document_of
from resources_app.identity.roles import Actor
from resources_app.models import Revision, Task
from resources_app.reading.registry import target_of
from resources_app.writing import write_path
from resources_app.writing.batches import write_batch
from resources_app.writing.session import current_etag
from tests.factories import make_task, system, task_uri

CONTENT = st.text(alphabet="ab \n\r👍\u0301$\\", max_size=8)
WORDS = st.text(alphabet="xyz", min_size=1, max_size=2)
EVIDENCE = st.text(alphabet="pq \n", min_size=1, max_size=4).filter(str.strip)
Step = dict[str, Any]


class ModelTask:
    """Hold the document as Python values, and every version it had."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.now: dict[str, Any] = document_of(task)
        self.versions: list[dict[str, Any]] = [copy.deepcopy(self.now)]
        self.changed_at: dict[str, int] = {}

    def become(self, **values: Any) -> None:
        changed = {name for name, value in values.items() if self.now[name] != value}
        if changed:
            self.now = {**self.now, **copy.deepcopy(values)}
            self.versions.append(self.now)
            self.changed_at |= dict.fromkeys(changed, len(self.versions))


class HistoryMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.savepoint = transaction.atomic()
        self.savepoint.__enter__()
        self.actor: Actor = system()
        self.models = [
            ModelTask(make_task(description="one\ntwo\n")),
            ModelTask(make_task(title="Other")),
        ]

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self.savepoint.__exit__(None, None, None)

    def write(
        self, model: ModelTask, *rest: object, etag: str | None = None, **operation: Any
    ) -> dict[str, Any]:
        return write_path.write(self.actor, task_uri(model.task, *rest), operation, etag)

    def live(self, which: int) -> ModelTask | None:
        """Return the model, or None after checking that an archived object rejects writes."""
        model = self.models[which]
        if model.now["archived_at"] is None:
            return model
        with pytest.raises(PermissionDenied):
            self.write(model, "description", type="append", content="x")
        return None

    @rule(which=st.integers(0, 1), content=CONTENT, at_end=st.booleans())
    def append_or_prepend(self, which: int, content: str, at_end: bool) -> None:
        if model := self.live(which):
            self.write(
                model, "description", type="append" if at_end else "prepend", content=content
            )
            text = model.now["description"]
            model.become(description=text + content if at_end else content + text)

    @rule(which=st.integers(0, 1), data=st.data(), new=CONTENT, every=st.booleans())
    def replace(self, which: int, data: st.DataObject, new: str, every: bool) -> None:
        model = self.live(which)
        if model is None or not model.now["description"]:
            return
        text = model.now["description"]
        start = data.draw(st.integers(0, len(text) - 1))
        old = text[start : start + data.draw(st.integers(1, 4))]
        if text.count(old) > 1 and not every:
            with pytest.raises(OperationFailed):
                self.write(model, "description", type="str_replace", old_str=old, new_str=new)
        else:
            self.write(
                model,
                "description",
                type="str_replace",
                old_str=old,
                new_str=new,
                replace_all=every,
            )
            model.become(description=text.replace(old, new))

    @rule(
        which=st.integers(0, 1),
        value=st.text(alphabet="ab ", min_size=1, max_size=6).filter(str.strip),
    )
    def set_title(self, which: int, value: str) -> None:
        if model := self.live(which):
            self.write(model, "title", type="set", value=value)
            model.become(title=value.strip())

    @rule(which=st.integers(0, 1), content=st.text(alphabet="c ", max_size=3))
    def append_to_title(self, which: int, content: str) -> None:
        if model := self.live(which):
            self.write(model, "title", type="append", content=content)
            model.become(title=(model.now["title"] + content).strip())

    @rule(which=st.integers(0, 1), value=EVIDENCE, data=st.data())
    def change_evidence(self, which: int, value: str, data: st.DataObject) -> None:
        model = self.live(which)
        if model is None:
            return
        entries = list(model.now["evidence"])
        index = data.draw(st.integers(0, len(entries)))
        if index < len(entries) and data.draw(st.booleans()):
            self.write(model, "evidence", type="array_remove", index=index)
            del entries[index]
        else:
            self.write(model, "evidence", type="array_insert", index=index, value=value)
            entries.insert(index, value)
        model.become(evidence=entries)

    @rule(
        which=st.integers(0, 1),
        labels=st.lists(WORDS, max_size=3),
        status=st.sampled_from(["open", "done"]),
    )
    def merge(self, which: int, labels: list[str], status: str) -> None:
        if model := self.live(which):
            self.write(model, type="merge", value={"labels": labels, "status": status})
            model.become(labels=list(dict.fromkeys(labels)), status=status)

    @rule(which=st.integers(0, 1), data=st.data(), whole=st.booleans())
    def restore(self, which: int, data: st.DataObject, whole: bool) -> None:
        model = self.live(which)
        if model is None:
            return
        version = data.draw(st.integers(1, len(model.versions)))
        then = {
            name: value
            for name, value in model.versions[version - 1].items()
            if name not in {"archived_at", "extra"}
        }
        if whole:
            self.write(model, type="restore", version=version)
            model.become(**then)
        else:
            self.write(model, "description", type="restore", version=version)
            model.become(description=then["description"])

    @rule(which=st.integers(0, 1))
    def archive_or_bring_back(self, which: int) -> None:
        model = self.models[which]
        act = write_path.unarchive if model.now["archived_at"] else write_path.archive
        row = act(self.actor, task_uri(model.task))
        model.become(archived_at=row.archived_at.isoformat() if row.archived_at else None)

    def batch(self, contents: list[str], broken: int | None) -> list[Step]:
        """Append to both tasks in turn; the step at `broken` fails only after its row was
        updated.
        """
        steps: list[Step] = []
        for number, content in enumerate(contents):
            uri = task_uri(self.models[number % 2].task)
            steps.append(
                {"uri": f"{uri}/description", "operation": {"type": "append", "content": content}}
            )
            if number == broken:
                lost = {"description": "lost", "labels": ["lost"], "depends_on": ["TASK-9999"]}
                steps.append({"uri": uri, "operation": {"type": "merge", "value": lost}})
        return steps

    def follow_batch(self, contents: list[str]) -> None:
        for number, content in enumerate(contents):
            model = self.models[number % 2]
            model.become(description=model.now["description"] + content)

    def nothing_archived(self) -> bool:
        return not any(model.now["archived_at"] for model in self.models)

    @precondition(nothing_archived)
    @rule(contents=st.lists(CONTENT, min_size=1, max_size=5))
    def atomic_batch(self, contents: list[str]) -> None:
        write_batch(self.actor, self.batch(contents, None))
        self.follow_batch(contents)

    @precondition(nothing_archived)
    @rule(contents=st.lists(CONTENT, min_size=1, max_size=5), broken=st.integers(0, 4))
    def broken_atomic_batch(self, contents: list[str], broken: int) -> None:
        with pytest.raises(BacklogError):
            write_batch(self.actor, self.batch(contents, min(broken, len(contents) - 1)))

    @precondition(nothing_archived)
    @rule(contents=st.lists(CONTENT, min_size=1, max_size=5), broken=st.integers(0, 4))
    def best_effort_batch(self, contents: list[str], broken: int) -> None:
        answer = write_batch(
            self.actor, self.batch(contents, min(broken, len(contents) - 1)), atomic=False
        )
        assert answer["failed"] == 1
        self.follow_batch(contents)

    @precondition(nothing_archived)
    @rule(contents=st.lists(CONTENT, min_size=1, max_size=5), atomic=st.booleans())
    def rehearsed_batch(self, contents: list[str], atomic: bool) -> None:
        write_batch(self.actor, self.batch(contents, None), atomic=atomic, dry_run=True)

    @rule(which=st.integers(0, 1), data=st.data(), content=CONTENT.filter(bool))
    def append_with_an_etag(self, which: int, data: st.DataObject, content: str) -> None:
        model = self.live(which)
        if model is None:
            return
        etag = self.etag(model, "description")
        if data.draw(st.booleans()):
            self.write(model, "description", type="append", content="moved on")
            model.become(description=model.now["description"] + "moved on")
            with pytest.raises(Conflict) as caught:
                self.write(model, "description", etag=etag, type="append", content=content)
            etag = caught.value.details["current_etag"]
        self.write(model, "description", etag=etag, type="append", content=content)
        model.become(description=model.now["description"] + content)

    def etag(self, model: ModelTask, name: str) -> str:
        return current_etag(
            Task.objects.get(pk=model.task.pk), target_of(parse(task_uri(model.task, name)))
        )

    @invariant()
    def the_row_is_the_model(self) -> None:
        for model in self.models:
            row = Task.objects.get(pk=model.task.pk)
            assert document_of(row) == model.now
            assert row.version == len(model.versions)
            assert row.field_versions == model.changed_at
            assert set(row.label_rows.values_list("name", flat=True)) == set(row.labels)

    @invariant()
    def every_version_is_in_the_history_once(self) -> None:
        for model in self.models:
            revisions = Revision.objects.filter(kind="task", object_id=model.task.pk)
            versions = list(
                revisions.order_by("change_id").values_list("version", "change__version")
            )
            assert versions == [(version, version) for version in range(1, len(model.versions) + 1)]

    @invariant()
    def the_latest_version_reads_back(self) -> None:
        for model in self.models:
            assert history.document_at("task", model.task.pk, len(model.versions)) == model.now

    @rule(which=st.integers(0, 1), data=st.data())
    def any_version_reads_back(self, which: int, data: st.DataObject) -> None:
        model = self.models[which]
        version = data.draw(st.integers(1, len(model.versions)))
        assert history.document_at("task", model.task.pk, version) == model.versions[version - 1]


@pytest.mark.django_db
def test_history_and_rows_agree_with_a_plain_model_after_any_writes() -> None:
    # Without shrinking: it takes minutes here, and the printed steps are short enough to follow.
    phases = (Phase.explicit, Phase.reuse, Phase.generate)
    run = settings(max_examples=15, stateful_step_count=20, phases=phases, deadline=None)
    run_state_machine_as_test(HistoryMachine, settings=run)
