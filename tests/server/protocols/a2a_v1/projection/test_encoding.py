"""Encode once: readers who see the same of a task get the same bytes, and each gets what it would get alone."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import accumulate
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.server.agent import events as ev
from a2a_canvas.server.agent.model import Usage
from a2a_canvas.server.protocols.a2a_v1.bindings.grpc_server import EVENT, LEGACY_EVENT
from a2a_canvas.server.protocols.a2a_v1.operations.dispatch import EVENT_JSON
from a2a_canvas.server.protocols.a2a_v1.projection.encoding import EventForm, TaskEncoder
from a2a_canvas.server.protocols.a2a_v1.projection.extensions import ActivatedExtensions
from a2a_canvas.server.protocols.a2a_v1.projection.projection import TaskProjection
from a2a_canvas.server.protocols.edge.encoded_events import EncodedEvents
from a2a_canvas.server.tasks.record import Entry, TaskRecord, fold
from a2a_canvas.store.edit_events import EditChunk, EditStarted, Selection
from tests.property_examples import examples
from tests.server.protocols.a2a_v1.projection.test_projection import BEGIN, PLACE, entries, grows, said
from tests.server.protocols.a2a_v1.projection.test_update_json import TEXTS

SELECTION = Selection(3, 8, "utf16")
EDIT = EditStarted("e", "r", SELECTION, "rewrite", 1)
PLACES = st.builds(ev.BlockPosition, st.integers(0, 3), st.integers(1, 2), st.integers(0, 3))
EVENTS = st.one_of(
    st.builds(grows, st.booleans(), TEXTS, st.booleans()),
    st.builds(ev.MessageStarted, st.integers(1, 2)),
    st.builds(ev.TextBlockStarted, PLACES, st.sampled_from(["text", "thinking"])),
    st.builds(ev.TextAdded, PLACES, TEXTS),
    st.builds(ev.ThinkingAdded, PLACES, TEXTS),
    st.builds(ev.BlockStopped, PLACES),
    st.builds(ev.LlmCallCompleted, st.integers(1, 2), st.just("end_turn"), st.just(Usage())),
    st.sampled_from(
        [
            EDIT,
            EditChunk("e", "r", SELECTION, "new"),
            ev.StatusChanged(ev.State.WORKING, ev.AgentMessage("l", "Writing r.md…", label=True)),
            ev.StatusChanged(ev.State.WORKING, ev.AgentMessage("l", "Read a file", label=True, of_tool=True)),
            ev.StatusChanged(ev.State.INPUT_REQUIRED, said("Which?")),
            ev.StatusChanged(ev.State.WORKING),
        ]
    ),
)
FORMS = (EVENT_JSON, EVENT, LEGACY_EVENT)


Reader = tuple[int, Callable[[TaskRecord], TaskProjection], EventForm, str]


@st.composite
def readers(draw: st.DrawFn, entries: int) -> list[Reader]:
    """Readers: after how many entries each joins, its projection and form, and before which entries it is behind."""
    found = []
    for _ in range(draw(st.integers(2, 5))):
        turn, canvas, pause, thinking = (draw(st.booleans()) for _ in range(4))
        form = draw(st.sampled_from(FORMS))
        seen = {"ends_at_pause": pause, "expose_thinking": thinking, "as_json": form.as_json}
        project = partial(TaskProjection, activated=ActivatedExtensions(turn, canvas), **seen)
        behind = draw(st.text("yn", min_size=entries, max_size=entries))
        found.append((draw(st.integers(0, entries)), project, form, behind))
    return found


@settings(max_examples=examples(300), deadline=None)
@given(st.data(), st.lists(EVENTS, min_size=1, max_size=12), st.sampled_from([0, 2000, 10**6]))
def test_every_reader_gets_what_it_would_get_alone(data: st.DataObject, events: list[Any], max_bytes: int) -> None:
    encoded, written = EncodedEvents(max_bytes), entries(EDIT, *events)
    records = list(accumulate(written, fold, initial=BEGIN))
    for joins, project, form, behind in data.draw(readers(len(written))):
        encoder, alone = TaskEncoder(encoded, project(records[joins]), form), project(records[joins])
        for entry, is_behind in zip(written[joins:], behind[joins:], strict=True):
            got = list(encoder.encode(entry, behind=is_behind == "y"))
            assert got == [form.write(event) for event in alone.project(entry, behind=is_behind == "y")]


def test_an_event_is_projected_and_encoded_once_for_all_who_see_the_same() -> None:
    counts: Counter[str] = Counter()
    encoded = EncodedEvents()

    def form(name: str) -> EventForm:
        def write(event: Any) -> bytes:
            counts[name] += 1
            return EVENT_JSON.write(event)

        return EventForm(write, as_json=True)

    forms = [form("one"), form("another")]
    written = entries(ev.ToolInputAdded(PLACE, "T", "{"), grows(True, "a"), ev.StatusChanged(ev.State.COMPLETED))
    for activated in (ActivatedExtensions(), ActivatedExtensions(turn=True)):
        for each in forms * 20:
            encoder = TaskEncoder(encoded, TaskProjection(BEGIN, activated, ends_at_pause=True, as_json=True), each)
            sent = [list(encoder.encode(entry, behind=False)) for entry in written]
            assert [len(events) for events in sent] == ([1, 1, 3] if activated.turn else [0, 1, 1])
    assert counts == {"one": 7, "another": 7}


def test_the_stored_input_of_a_call_and_the_end_of_its_block_have_one_number_and_are_two_events() -> None:
    activated = ActivatedExtensions(turn=True)
    projection = TaskProjection(BEGIN, activated, ends_at_pause=True, as_json=True)
    encoder = TaskEncoder(EncodedEvents(), projection, EVENT_JSON)
    stored = [
        Entry(1, 5, BEGIN.changed_at, event) for event in (ev.ToolInputAdded(PLACE, "T", "{}"), ev.BlockStopped(PLACE))
    ]
    sent = [event for entry in stored for event in encoder.encode(entry, behind=False)]
    assert b"tool_use_input_delta" in sent[0]
    assert b"content_block_stop" in sent[1]


def test_another_epoch_of_a_task_is_encoded_anew() -> None:
    encoded = EncodedEvents()
    projection = TaskProjection(BEGIN, ActivatedExtensions(), ends_at_pause=True, as_json=True)
    encoder = TaskEncoder(encoded, projection, EVENT_JSON)
    before, after = (Entry(epoch, 2, BEGIN.changed_at, grows(True, text)) for epoch, text in ((1, "a"), (2, "b")))
    assert [*encoder.encode(before, behind=False)] != [*encoder.encode(after, behind=False)]
