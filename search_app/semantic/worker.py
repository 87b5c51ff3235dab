"""Embed passages of changed documents in the worker. Searches never wait for it.

A text is embedded outside of any transaction; a document changed meanwhile stays pending. Equal
passages are not embedded again.
"""

import hashlib
from collections.abc import Callable, Sequence

from django.db import transaction
from django.db.models import QuerySet

from resources_app.jobs import queue
from resources_app.jobs.queue import RunningJob, job
from resources_app.jobs.time_slices import time_slices
from search_app.index.documents import SOURCES, comments_on, fields_of
from search_app.index.write import current_state
from search_app.models import Document, Passage
from search_app.semantic import meaning
from search_app.semantic.passages import passages_of

# Documents at a time: at most half a minute of work, well within a lease.
CHUNK = 8
KIND = "embed_documents"


@job(KIND)
def embed_job(running: RunningJob) -> None:
    done = 0
    while embedded := embed_some(running.heartbeat):
        done += embedded
        running.progress(done, done + pending(), "embedded")


def enqueue_if_pending() -> None:
    if meaning.is_available() and pending_documents().exists():
        queue.enqueue(KIND, {}, key=KIND)


def pending() -> int:
    return pending_documents().count()


def pending_documents() -> QuerySet[Document]:
    return Document.objects.filter(slot=current_state().live, pending=True)


def embed_some(fence: Callable[[], None]) -> int:
    """Embed pending documents, newest first, because recent text is what users look for."""
    if not meaning.is_available():
        return 0
    documents = list(pending_documents().order_by("-id")[:CHUNK])
    wanted = {document: _passages(document) for document in documents}
    vectors = _Vectors(documents, wanted)
    for part in time_slices(wanted.items()):
        with transaction.atomic():
            fence()
            for document, texts in part:
                _keep(
                    document,
                    [vectors.row(document, number, text) for number, text in enumerate(texts)],
                )
    return len(documents)


def _passages(document: Document) -> list[str]:
    """Return the passages, none for a deleted or archived object."""
    thing = SOURCES[document.kind].model.objects.filter(pk=document.object_id).first()
    if thing is None or document.archived:
        return []
    said = comments_on(document.kind, [thing.pk]).get(thing.pk)
    return passages_of(fields_of(thing, said.bodies if said else ()))


class _Vectors:
    """Collect the stored vectors, and embed the missing ones together."""

    def __init__(self, documents: Sequence[Document], wanted: dict[Document, list[str]]) -> None:
        from search_app.semantic import minilm, vectors  # noqa: PLC0415  # numpy is not there without a model

        self._stored: dict[bytes, tuple[bytes, bytes]] = {}
        for document in documents:
            rows = Passage.objects.filter(kind=document.kind, object_id=document.object_id)
            for digest, vector, code in rows.values_list("digest", "vector", "code"):
                self._stored[bytes(digest)] = (bytes(vector), bytes(code))
        texts = {_digest(minilm.NAME, text): text for texts in wanted.values() for text in texts}
        missing = [digest for digest in texts if digest not in self._stored]
        for digest, vector in zip(
            missing, minilm.embed([texts[digest] for digest in missing]), strict=True
        ):
            self._stored[digest] = vectors.packed(vector)
        self._model = minilm.NAME

    def row(self, document: Document, number: int, text: str) -> Passage:
        digest = _digest(self._model, text)
        vector, code = self._stored[digest]
        return Passage(
            kind=document.kind,
            object_id=document.object_id,
            number=number,
            digest=digest,
            vector=vector,
            code=code,
        )


def _keep(document: Document, passages: list[Passage]) -> None:
    stored = Passage.objects.filter(kind=document.kind, object_id=document.object_id).order_by(
        "number"
    )
    if [bytes(digest) for digest in stored.values_list("digest", flat=True)] != [
        one.digest for one in passages
    ]:
        stored.delete()
        Passage.objects.bulk_create(passages)
    # If a write came in between, the document stays pending.
    seen = {"version": document.version, "comments_version": document.comments_version}
    Document.objects.filter(pk=document.pk, **seen).update(pending=False)


def _digest(model: str, text: str) -> bytes:
    return hashlib.blake2b(f"{model}\n{text}".encode(errors="replace"), digest_size=16).digest()
