"""Annotations as the events of a task leave them: a crash that cuts the events off takes them back."""

from uuid import uuid4

from a2a_canvas.store.annotations.annotation import AGENT, Annotation, AnnotationsChanged, Writer
from a2a_canvas.store.annotations.annotation_store import InMemoryAnnotations
from a2a_canvas.store.annotations.review import Report, Review
from a2a_canvas.store.evented import EventedArtifactStore
from a2a_canvas.store.models import Author
from tests.fakes import Clock, EventRecorder


class ToldAnnotations:
    """An `AnnotationStore` that reads the events of the one task of the context."""

    def __init__(self, told: EventRecorder) -> None:
        self.told = told

    async def list(self, context_id, artifact_id, accepted_into=None) -> tuple[Annotation, ...]:
        return await self._stored(context_id).list(context_id, artifact_id, accepted_into)

    async def find(self, context_id, artifact_id, annotation_id) -> Annotation | None:
        return await self._stored(context_id).find(context_id, artifact_id, annotation_id)

    async def last_number(self, context_id, artifact_id) -> int:
        return await self._stored(context_id).last_number(context_id, artifact_id)

    async def count_open(self, context_id, artifact_id) -> int:
        return await self._stored(context_id).count_open(context_id, artifact_id)

    def _stored(self, context_id) -> InMemoryAnnotations:
        stored = InMemoryAnnotations()
        for change in self.told.of(AnnotationsChanged):
            stored.write(context_id, "task", change)
        return stored

    async def hold(self, context_id, task_id) -> None: ...

    async def release(self, context_id, task_id) -> None: ...

    def make_review(self, author: Author, store: EventedArtifactStore, report: Report) -> Review:
        """The review of the task, whose message is Ann's."""
        writer = AGENT if author == "agent" else Writer("user", "ann", "ann")
        return Review(store, self, report, "context", "task", writer, Clock(), lambda: uuid4().hex)
