"""A model that comments and suggests in its turn: each call is recorded with what it has made."""

from a2a_canvas.server.agent.events import ArtifactChanged, ToolSucceeded, TranscriptAppended
from a2a_canvas.store.annotations.annotation import AGENT, AnnotationsChanged
from a2a_canvas.store.changes import ReplaceParts
from a2a_canvas.store.models import text_part
from tests.fakes import answer, text, tool
from tests.server.agent.turn.turn_harness import DOC, TurnHarness


async def test_a_model_reviews_without_a_change_of_the_artifact() -> None:
    harness = TurnHarness(
        answer(
            tool("T1", "comment", {"artifact_id": "doc", "quote": "three", "text": "A source?"}),
            tool("T2", "suggest", {"artifact_id": "doc", "old_text": "One", "new_text": "1"}),
        ),
        answer(tool("T3", "comments", {"artifact_id": "doc"})),
        answer(text("Reviewed.")),
    )
    await harness.store.apply(DOC, ReplaceParts((text_part("One two three."),), last_chunk=True))
    await harness.run()
    made = await harness.annotations.list("context", "doc")
    assert [(each.kind, each.writer, each.quote.exact) for each in made] == [
        ("comment", AGENT, "three"),
        ("suggestion", AGENT, "One"),
    ]
    assert harness.told.of(ArtifactChanged) == []
    (listed,) = harness.results()
    assert '"quote": "three"' in listed.content
    kinds = [type(event) for event in harness.told.events]
    first = kinds.index(AnnotationsChanged)
    assert kinds[first : first + 3] == [AnnotationsChanged, ToolSucceeded, TranscriptAppended]
