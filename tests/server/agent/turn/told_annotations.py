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

    async def list(self, context_id, artifact_id) -> tuple[Annotation, ...]:
        stored = InMemoryAnnotations()
        for change in self.told.of(AnnotationsChanged):
            stored.write(context_id, "task", change)
        return await stored.list(context_id, artifact_id)

    async def hold(self, context_id, artifact_id, task_id) -> tuple[Annotation, ...]:
        return await self.list(context_id, artifact_id)

    async def release(self, context_id, task_id) -> None: ...

    def make_review(self, author: Author, store: EventedArtifactStore, report: Report) -> Review:
        """The review of the task, whose message is Ann's."""
        writer = AGENT if author == "agent" else Writer("user", "ann", "ann")
        return Review(store, self, report, "context", "task", writer, Clock(), lambda: uuid4().hex)
