"""What a `RunAgentInput` asks for, and what of it is refused by its name."""

import json
from base64 import b64encode
from typing import Any

import pytest
from a2a.utils.errors import InvalidParamsError
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.server.agent.events import UserMessage
from a2a_canvas.server.agent.intent import Converse, Focus, Put, SelectionEdit, VersionStep
from a2a_canvas.server.agent.operation_forms import InvalidOperation
from a2a_canvas.server.protocols.a2a_v1.projection.parts import MAX_ID
from a2a_canvas.server.protocols.agui.input import MAX_MESSAGES, RUN_METADATA, RunInput, in_forwarded_props, run_input
from a2a_canvas.server.protocols.guard.checks import MAX_VALUES
from a2a_canvas.server.wire import AGENTSTACK, CANVAS
from a2a_canvas.store.changes import Undo
from a2a_canvas.store.models import FilePart, TextPart, text_part
from tests.property_examples import examples
from tests.store.artifact_builders import JSON

PNG = b"\x89PNG\r\n"


def user(content: Any = "Hello", message_id: str = "m") -> dict[str, Any]:
    return {"id": message_id, "role": "user", "content": content}


def body(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {"threadId": "t", "runId": "r", "messages": list(messages or [user()]), **fields}


def asked(*messages: Any, **fields: Any) -> UserMessage:
    message = run_input(body(*messages, **fields)).message
    assert message
    return message


def texts(message: UserMessage) -> list[str]:
    return [part.text for part in message.parts if isinstance(part, TextPart)]


def refused(value: dict[str, Any]) -> str:
    """The field that a refusal names, in its sentence and as a detail."""
    with pytest.raises(InvalidParamsError) as raised:
        run_input(value)
    ((field, sentence),) = ((error["field"], error["message"]) for error in raised.value.data["errors"])
    assert raised.value.message == f"{field} {sentence}"
    return field


# -------------------------------------------------------------------------- the message


def test_a_run_is_a_message_in_the_context_of_its_thread() -> None:
    run = run_input(body(user("Hello")))
    message = UserMessage("m", (text_part("Hello"),), {RUN_METADATA: {"runId": "r"}})
    assert run == RunInput("t", "r", message, history=run.history)
    assert [(each.id, each.role) for each in run.history] == [("m", "user")]


def test_only_the_last_message_is_said_now() -> None:
    past = [
        {"id": "s", "role": "system", "content": "Be kind."},
        user("Hi", "1"),
        {"id": "2", "role": "assistant", "toolCalls": [
            {"id": "T", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"id": "3", "role": "tool", "toolCallId": "T", "content": "done"},
        {"id": "4", "role": "reasoning", "content": "hm"},
        {"id": "5", "role": "activity", "activityType": "x", "content": {"n": 1}},
    ]  # fmt: skip
    assert asked(*past, user("And now?", "6")) == asked(user("And now?", "6"))


def test_another_run_of_the_same_message_is_another_message() -> None:
    assert asked() == asked()
    assert asked() != asked(runId="r2")


def test_content_may_be_parts() -> None:
    def source(kind: str, value: str, **more: str) -> dict[str, Any]:
        return {"type": kind, "value": value, **more}

    message = asked(
        user(
            [
                {"type": "text", "text": "Look:"},
                {"type": "image", "source": source("data", b64encode(PNG).decode(), mimeType="image/png")},
                {"type": "document", "source": source("url", "https://example.org/a.pdf", mimeType="application/pdf")},
                {"type": "audio", "source": source("url", "https://example.org/a")},
                {"type": "text", "text": "Well?"},
            ]
        )
    )
    assert message.parts == (
        text_part("Look:"),
        FilePart(PNG, media_type="image/png"),
        FilePart(url="https://example.org/a.pdf", media_type="application/pdf"),
        FilePart(url="https://example.org/a"),
        text_part("Well?"),
    )


def test_a_file_alone_says_something() -> None:
    image = {"type": "image", "source": {"type": "url", "value": "https://example.org/i.png"}}
    assert len(asked(user([{"type": "text", "text": " "}, image])).parts) == 2


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({}, "threadId"),
        ({"threadId": 5, "runId": "r", "messages": []}, "threadId"),
        ({"threadId": "", "runId": "r", "messages": [user()]}, "threadId"),
        ({"threadId": "t" * (MAX_ID + 1), "runId": "r", "messages": [user()]}, "threadId"),
        ({"threadId": "t\0", "runId": "r", "messages": [user()]}, "threadId"),
        ({"threadId": "t", "messages": [user()]}, "runId"),
        (body(runId="r" * (MAX_ID + 1)), "runId"),
        ({"threadId": "t", "runId": "r"}, "messages"),
        (body() | {"messages": []}, "messages"),
        (body() | {"messages": {}}, "messages"),
        (body(3), "messages.0"),
        (body(user(), {"id": "a", "role": "assistant", "content": "Hi"}), "messages"),
        (body(user(), {"id": "a", "role": "nobody", "content": "Hi"}), "messages.1"),
        (body(user(""), user(" \n", "2")), "messages.1.content"),
        (body(user([])), "messages.0.content"),
        (body(user(3)), "messages.0.content"),
        (body(user("Hi", "")), "messages.0.id"),
        (body(user("Hi", "m" * (MAX_ID + 1))), "messages.0.id"),
        (body({"role": "user", "content": "Hi"}), "messages.0.id"),
        (body(context=[{"description": "x"}]), "context.0.value"),
        (body(context=[{"description": "", "value": ""}] * (MAX_VALUES + 1)), "context"),
        (body(user([{"type": "text", "text": "x"}] * (MAX_VALUES + 1))), "messages.0.content"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_run_is_refused_by_the_name_of_its_field(value: dict[str, Any], field: str) -> None:
    assert refused(value) == field


@pytest.mark.parametrize(
    ("part", "field"),
    [
        ({"type": "imag"}, ""),
        ({"text": "no type"}, ""),
        ({"type": "text"}, ".text"),
        ({"type": "image"}, ".source"),
        ({"type": "image", "source": {"type": "data", "value": 1, "mimeType": "image/png"}}, ".source.value"),
        ({"type": "image", "source": {"type": "data", "value": "AA=="}}, ".source.mimeType"),
        ({"type": "image", "source": {"type": "data", "value": "AA=", "mimeType": "image/png"}}, ".source.value"),
        ({"type": "image", "source": {"type": "data", "value": "é", "mimeType": "image/png"}}, ".source.value"),
        ({"type": "image", "source": {"type": "url", "value": ""}}, ".source.value"),
        ({"type": "image", "source": {"type": "file", "value": "file-1"}}, ".source"),
    ],
)
def test_a_part_that_cannot_be_read_is_refused_by_its_place(part: dict[str, Any], field: str) -> None:
    good = {"type": "text", "text": "x"}
    assert refused(body(user("Hi", "1"), user([good, part]))) == f"messages.1.content.1{field}"


@settings(max_examples=examples(60))
@given(
    value=st.dictionaries(
        st.sampled_from(["threadId", "runId", "messages", "context", "resume", "forwardedProps", "state"]), JSON
    )
    | st.builds(
        lambda content, fields: body(user(content), **fields),
        JSON,
        st.dictionaries(st.sampled_from(["context", "resume", "forwardedProps", "tools"]), JSON, max_size=2),
    )
)
def test_whatever_is_sent_is_a_run_or_is_refused(value: dict[str, Any]) -> None:
    try:
        run = run_input(value)
        found: object = run.message or run.task_id
    except InvalidParamsError as error:
        found = error.data["errors"][0]["field"]
    assert found


# --------------------------------------------------------------------------- its context


CONTEXT = [{"description": "The user's name", "value": "Ann"}, {"description": "Time", "value": "noon"}]


def test_what_the_agent_is_to_know_stands_before_the_message() -> None:
    assert texts(asked(context=CONTEXT)) == ["[The user's name: Ann]", "[Time: noon]", "Hello"]


def test_it_does_not_stand_in_the_instruction_of_an_edit() -> None:
    message = asked(context=CONTEXT, forwardedProps={CANVAS: EDIT})
    intent = message.intent
    assert isinstance(intent, SelectionEdit)
    assert intent.instruction == "Hello"


# ------------------------------------------------------------------------ forwarded props


EDIT = {"op": "edit", "artifactId": "doc", "baseVersion": 2, "selection": {"start": 1, "end": 3}}
THEIRS = {"start_index": 1, "end_index": 3, "description": "Shorter", "artifact_id": "doc"}


@pytest.mark.parametrize(
    ("forwarded", "kind"),
    [
        ({CANVAS: EDIT}, SelectionEdit),
        ({AGENTSTACK: THEIRS}, SelectionEdit),
        ({CANVAS: {"op": "put", "artifactId": "doc", "text": ""}}, Put),
        ({CANVAS: {"op": "undo", "artifactId": "doc"}}, VersionStep),
        ({CANVAS: {"artifactId": "doc"}}, Converse),
        ({"other": {"op": "undo"}}, Converse),
        (None, Converse),
        ("anything", Converse),
    ],
)
def test_forwarded_props_of_a_canvas_extension_are_the_messages_metadata(forwarded: Any, kind: type) -> None:
    message = asked(forwardedProps=forwarded)
    assert isinstance(message.intent, kind)
    known = {uri: forwarded[uri] for uri in (CANVAS, AGENTSTACK) if isinstance(forwarded, dict) and uri in forwarded}
    assert message.metadata == {**known, RUN_METADATA: {"runId": "r"}}


def test_what_they_ask_for_is_what_a2as_metadata_ask_for() -> None:
    for fields, undo in (({"baseVersion": 3}, Undo(3)), ({"group": True}, Undo(group=True))):
        asks = asked(forwardedProps={CANVAS: {"op": "undo", "artifactId": "doc", **fields}})
        assert asks.intent == VersionStep("doc", undo)
    assert asked(forwardedProps={CANVAS: {"artifactId": "doc"}}).intent == Converse(Focus("doc"))


def test_an_operation_may_be_written_as_json_in_a_string() -> None:
    for uri, operation in ((CANVAS, EDIT), (AGENTSTACK, THEIRS)):
        as_object, as_text = (asked(forwardedProps={uri: given}) for given in (operation, json.dumps(operation)))
        assert (as_text.metadata, as_text.intent) == (as_object.metadata, as_object.intent)


@pytest.mark.parametrize("props", ["forwardedProps", "forwarded_props"])
@pytest.mark.parametrize(
    ("forwarded", "field"),
    [
        ({CANVAS: "x"}, f"forwardedProps.{CANVAS}"),
        ({CANVAS: {"op": "eat", "artifactId": "doc"}}, f"forwardedProps.{CANVAS}.op"),
        ({CANVAS: {**EDIT, "baseVersions": 2}}, f"forwardedProps.{CANVAS}.baseVersions"),
        ({CANVAS: {**EDIT, "selection": {"start": 3, "end": "1"}}}, f"forwardedProps.{CANVAS}.selection.end"),
        ({CANVAS: {"op": "eat"}, AGENTSTACK: THEIRS}, f"forwardedProps.{CANVAS}.op"),
        ({CANVAS: None, AGENTSTACK: []}, f"forwardedProps.{AGENTSTACK}"),
        ({AGENTSTACK: {**THEIRS, "end_index": "3"}}, f"forwardedProps.{AGENTSTACK}.end_index"),
    ],
)
def test_an_operation_that_cannot_be_read_is_refused_by_its_place(forwarded: Any, field: str, props: str) -> None:
    value = body(**{props: forwarded})
    with pytest.raises(InvalidOperation) as raised:
        run_input(value)
    named = in_forwarded_props(raised.value, value)
    assert (named.field, str(named)) == (field, f"{field} {raised.value.reason}.")


def test_an_edit_that_does_not_say_what_is_to_be_changed_is_refused_by_the_message() -> None:
    picture = {"type": "image", "source": {"type": "data", "value": "", "mimeType": "image/png"}}
    value = body(user(message_id="1"), user([picture]), forwardedProps={CANVAS: EDIT})
    with pytest.raises(InvalidOperation) as raised:
        run_input(value)
    assert in_forwarded_props(raised.value, value).field == "messages.1.content"


def nested(levels: int) -> Any:
    return [nested(levels - 1)] if levels else 0


@pytest.mark.parametrize("more", [nested(30), list(range(MAX_VALUES))], ids=["deep", "long"])
def test_metadata_that_a2a_could_not_carry_are_refused(more: Any) -> None:
    assert refused(body(forwardedProps={AGENTSTACK: {**THEIRS, "more": more}})) == "forwardedProps"
    assert asked(forwardedProps={"other": more})


# --------------------------------------------------------------------------------- resume


def resume(status: str = "resolved", interrupt: str = "task", **fields: Any) -> dict[str, Any]:
    return {"interruptId": interrupt, "status": status, **fields}


@pytest.mark.parametrize(
    ("payload", "words"),
    [("Blue", "Blue"), ({"colour": "blaü"}, '{"colour": "blaü"}'), (False, "false"), (3, "3")],
)
def test_a_resolved_interrupt_is_an_answer_to_its_task(payload: Any, words: str) -> None:
    run = run_input(body(resume=[resume(payload=payload)]) | {"messages": []})
    assert run == RunInput("t", "r", UserMessage("r:task", (text_part(words),), {RUN_METADATA: {"runId": "r"}}), "task")


def test_it_wins_over_the_messages_which_are_the_past() -> None:
    assert texts(asked(user("old"), resume=[resume(payload="new")])) == ["new"]


def test_an_answer_may_say_what_the_user_looks_at() -> None:
    message = asked(resume=[resume(payload="this")], forwardedProps={CANVAS: {"artifactId": "doc"}})
    assert message.intent == Converse(Focus("doc"))


def test_a_cancelled_interrupt_says_nothing() -> None:
    run = run_input(body(resume=[resume("cancelled", payload="x")]))
    assert run == RunInput("t", "r", None, "task", run.history)


def test_an_empty_resume_is_none() -> None:
    assert texts(asked(user("Hi"), resume=[])) == ["Hi"]


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (body(resume=[resume("done")]), "resume.0.status"),
        (body(resume=[{"status": "resolved"}]), "resume.0.interruptId"),
        (body(resume=[resume(interrupt="")]), "resume.0.interruptId"),
        (body(resume=[resume()]), "resume.0.payload"),
        (body(resume=[resume(payload=" ")]), "resume.0.payload"),
        (body(resume=[resume(payload="a"), resume(payload="b", interrupt="other")]), "resume"),
        (body(resume=[resume(payload="a")], forwardedProps={CANVAS: EDIT}), "forwardedProps"),
        (body(resume="task"), "resume"),
    ],
)
def test_a_resume_that_answers_nothing_is_refused(value: dict[str, Any], field: str) -> None:
    assert refused(value) == field


def test_the_ids_of_an_answer_are_never_too_long() -> None:
    message = asked(runId="r" * MAX_ID, resume=[resume(payload="x", interrupt="i" * MAX_ID)])
    assert len(message.message_id) == MAX_ID
    assert json.dumps(dict(message.metadata))


# --------------------------------------------------------------------------------- limits


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (body(*[{}] * (MAX_MESSAGES + 1)), "messages"),
        (body(user([{}] * (MAX_VALUES + 1))), "messages.0.content"),
        (body({"id": "1", "role": "assistant", "toolCalls": [0] * (MAX_VALUES + 1)}, user()), "messages.0.toolCalls"),
        (body(context=[0] * (MAX_VALUES + 1)), "context"),
        (body(resume=[0] * (MAX_VALUES + 1)), "resume"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_list_that_is_too_long_is_refused_before_anything_in_it_is_read(value: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidParamsError, match=f"^{field} has 10001 values and may have 10000;"):
        run_input(value)


def test_the_first_message_that_is_none_is_named() -> None:
    assert refused(body(user(), user(), {}, 3, user([{}] * 5000))) == "messages.2"


def test_tools_of_the_client_are_not_read() -> None:
    assert asked(tools=[0] * 20_000) == asked()
