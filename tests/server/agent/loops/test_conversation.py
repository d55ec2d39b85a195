"""The conversation as a function reads it: A2A messages, and pairs for a model."""

from a2a_canvas import File
from a2a_canvas.server.agent.events import AgentMessage, AssistantOutput, ToolStep, UserMessage
from a2a_canvas.server.agent.loops.conversation import History, Message, to_history, to_message
from a2a_canvas.server.agent.model import ModelText, ToolResult, ToolUse
from a2a_canvas.server.agent.turn.history import to_user_input
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.models import DataPart, FilePart, text_part
from tests.fakes import said

UNDO = UserMessage("m-2", (text_part("undo"),), {CANVAS: {"op": "undo", "artifactId": "report"}}, sender="ann")


def test_a_message_has_its_parts_its_metadata_its_id_and_its_sender() -> None:
    parts = (text_part("One"), FilePart(b"a,b", "", "t.csv", "text/csv"), DataPart({"n": 1}), text_part("Two"))
    assert to_message(UserMessage("m-1", parts, {"k": "v"}, sender="ann")) == Message(
        "user", "One\nTwo", (File("t.csv", "text/csv", b"a,b"),), ({"n": 1},), {"k": "v"}, "m-1", "ann"
    )
    assert to_message(AgentMessage("a-1", "Done.")) == Message("agent", "Done.", message_id="a-1")


def test_what_the_user_did_to_an_artifact_is_a_note() -> None:
    assert to_message(UNDO).note == '[The user\'s own step in artifact "report": undo]'


def test_earlier_tasks_are_read_as_they_were_said_whoever_answered() -> None:
    earlier = (said("m-1", "Write"), AgentMessage("a-1", "Written."), UNDO, AgentMessage("a-2", "Undone."))
    history = to_history([earlier], (), (), ())
    assert [(each.role, each.text, each.message_id) for each in history] == [
        ("user", "Write", "m-1"),
        ("agent", "Written.", "a-1"),
        ("user", "undo", "m-2"),
        ("agent", "Undone.", "a-2"),
    ]


def test_pairs_alternate_and_hold_all_that_is_text() -> None:
    files = (File("t.csv", "text/csv", b""),)
    history = History(
        (
            Message("user", "Write"),
            Message("user", "Look", files, ({"n": 1},), note="[Of it]"),
            Message("agent", "Written."),
            Message("agent", ""),
        )
    )
    assert history.pairs(Message("user", "More")) == [
        {"role": "user", "content": 'Write\n\n[Of it]\nLook\n{"n": 1}\n[File "t.csv", text/csv]'},
        {"role": "assistant", "content": "Written."},
        {"role": "user", "content": "More"},
    ]


def test_of_its_own_task_a_function_reads_what_came_before_its_call() -> None:
    messages = [said("m-1", "Go"), said("m-2", "In Brest"), said("m-3", "And more")]
    first, second, third = map(to_user_input, messages)
    call = AssistantOutput(1, (ModelText("I look. "), ToolUse("T1", "search", {})))
    transcript = (
        first,
        ToolStep("", "called", "1"),
        call,
        ToolResult("T1", "hits"),
        ToolStep("", "asked", "Where?", "0"),
        second,
        AssistantOutput(2, (ModelText("Done."),)),
        third,
        ToolStep("", "called", "3"),
        AssistantOutput(3, (ModelText("not said yet"),)),
    )
    said_before = [(each.role, each.text) for each in to_history((), (), transcript, messages)]
    assert said_before == [
        ("user", "Go"),
        ("agent", "I look."),
        ("agent", "Where?"),
        ("user", "In Brest"),
        ("agent", "Done."),
    ]
    assert to_history((), (), transcript[:3], messages[:1]) == ()


def test_what_a_function_said_again_after_a_crash_is_read_once() -> None:
    begun = ToolStep("", "called", "1"), ToolStep("", "began")
    look = AssistantOutput(1, (ModelText("I look."),))
    transcript = (to_user_input(said("m-1", "Go")), *begun, look, ToolStep("", "began"), look)
    history = (said("m-1", "Go"), AgentMessage("a-1", "I look."), AgentMessage("a-2", "I look."))
    assert [each.message_id for each in to_history([history], [transcript], (), ())] == ["m-1", "a-2"]
