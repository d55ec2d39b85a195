"""Where an agent works, as the events of its turn say."""

from __future__ import annotations

from a2a_canvas.server.agent.events import ArtifactChanged, State, StatusChanged
from a2a_canvas.server.tasks.presence.agent_places import AgentPlaces
from a2a_canvas.server.tasks.presence.roster import CursorPlace
from a2a_canvas.store.edit_events import EditAborted, EditChunk, EditCompleted, EditStarted, EditSuggested, Selection
from a2a_canvas.store.models import Author, DataPart, text_part

AT = Selection(3, 8)


def wrote(text: str, *, append: bool = True, last: bool = False, author: Author = "agent") -> ArtifactChanged:
    parts = (text_part(text), DataPart({"a": 1}))
    return ArtifactChanged("doc", "Doc", "", append, parts, last, 2, author, 1)


def began(edit_id: str, selection: Selection = AT) -> EditStarted:
    return EditStarted(edit_id, "doc", selection, "replace", 4)


def test_a_document_that_is_written_has_the_agent_at_its_end_in_utf16() -> None:
    places = AgentPlaces()
    assert places.place is None
    places.take(wrote("a😀", append=False))
    assert places.place == CursorPlace("doc", 2, 3, 3)
    places.take(wrote("bc"))
    assert places.place == CursorPlace("doc", 2, 5, 5)
    places.take(wrote("d", append=False))
    assert places.place == CursorPlace("doc", 2, 1, 1)
    places.take(wrote("", last=True))
    assert places.place is None


def test_an_edit_is_at_its_selection_until_it_ends_in_any_way() -> None:
    places = AgentPlaces()
    done = EditCompleted("e", "doc", AT, "x", AT, "replace", 4)
    for end in (done, EditSuggested("e", "doc", AT, "annotation"), EditAborted("e", "doc", AT)):
        places.take(began("e"))
        assert not places.take(EditChunk("e", "doc", AT, "x"))
        assert places.place == CursorPlace("doc", 4, 3, 8)
        places.take(end)
        assert places.place is None


def test_of_several_passages_the_last_begun_that_is_still_open_counts() -> None:
    places = AgentPlaces()
    places.take(began("1"))
    places.take(began("2", Selection(10, 12)))
    assert places.place == CursorPlace("doc", 4, 10, 12)
    places.take(EditAborted("2", "doc", Selection(10, 12)))
    assert places.place == CursorPlace("doc", 4, 3, 8)


def test_a_users_own_change_is_no_work_of_an_agent_and_a_settled_task_works_on_nothing() -> None:
    places = AgentPlaces()
    places.take(wrote("a", author="user"))
    assert places.place is None
    places.take(began("e"))
    places.take(StatusChanged(State.WORKING))
    assert places.place is not None
    places.take(StatusChanged(State.INPUT_REQUIRED))
    assert places.place is None
