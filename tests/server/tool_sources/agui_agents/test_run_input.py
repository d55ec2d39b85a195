"""What a run is sent: ag-ui-protocol reads it."""

import json

import pytest
from ag_ui.core import RunAgentInput

from a2a_canvas import File
from a2a_canvas.server.agent.loops.conversation import Message
from a2a_canvas.server.tool_sources.agui_agents.run_input import digest, payload, run_input, wire_messages
from a2a_canvas.server.tool_sources.agui_agents.run_mapping import Interrupt

CONVERSATION = (
    Message("user", "Hello", message_id="u-1", caller="ann"),
    Message("agent", "Hello!"),
    Message("user", "Look", (File("a.png", "image/png", b"\x89"), File("b.pdf", "", url="https://x/b")), ({"n": 1},)),
)


def sent(*answers) -> RunAgentInput:
    body = run_input("thread", "run", wire_messages("thread", CONVERSATION), None, "Be brief.", answers)
    return RunAgentInput.model_validate(json.loads(json.dumps(body)))


def test_the_conversation_is_sent_with_its_files_and_the_instructions() -> None:
    request = sent()
    first, reply, last = request.messages
    assert [(each.role, each.content) for each in (first, reply)] == [("user", "Hello"), ("assistant", "Hello!")]
    assert [part.type for part in last.content] == ["text", "image", "document"]
    assert last.content[0].text == 'Look\n{"n": 1}'
    assert (last.content[1].source.value, last.content[2].source.value) == ("iQ==", "https://x/b")
    assert [each.value for each in request.context] == ["Be brief."]
    assert request.state == {}


def test_ids_are_the_same_in_each_run_and_contain_none_of_ours() -> None:
    ids = [each.id for each in sent().messages]
    assert ids == [each.id for each in sent().messages]
    assert len({*ids}) == 3
    assert "u-1" not in ids
    assert digest("ab", "c") != digest("a", "bc")


def test_answers_resume_by_their_interrupts_or_by_the_command_of_older_agents() -> None:
    request = sent((Interrupt("i-1", "Really?", {"type": "boolean"}), "yes"), (Interrupt("", "Where?"), "Brest"))
    assert [(each.interrupt_id, each.payload) for each in request.resume] == [("i-1", True)]
    assert request.forwarded_props == {"command": {"resume": "Brest"}}


APPROVAL = {"type": "object", "properties": {"approved": {"type": "boolean"}, "why": {}}, "required": ["approved"]}


@pytest.mark.parametrize(
    ("schema", "answer", "value"),
    [
        ({}, "Brest", "Brest"),
        ({"type": "string"}, "7", "7"),
        ({"type": "boolean"}, " Yes, please", True),
        ({"type": "boolean"}, "no", False),
        (APPROVAL, "ok", {"approved": True}),
        (APPROVAL, '{"approved": false, "why": "dear"}', {"approved": False, "why": "dear"}),
        ({"type": "object", "properties": {"place": {"type": "string"}}}, "Brest", {"place": "Brest"}),
        ({"type": "object"}, "Brest", "Brest"),
    ],
)
def test_an_answer_has_the_form_that_the_interrupt_expects(schema, answer: str, value) -> None:
    assert payload(schema, answer) == value
