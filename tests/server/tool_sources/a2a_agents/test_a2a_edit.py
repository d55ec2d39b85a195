"""Edits of a selection that an A2A agent answers: what it is sent, and the new passage in its answer."""

import asyncio
from dataclasses import replace

import pytest
from a2a.helpers import new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import a2a_pb2 as pb
from starlette.applications import Starlette

from a2a_canvas import a2a_agent
from a2a_canvas.server.agent.loops.passage_edit import Edit
from a2a_canvas.server.tool_sources.a2a_agents.a2a_edit import passage_in, remote_artifact, selected_span
from a2a_canvas.store.text.spans import Span
from a2a_canvas.testing import agent
from tests.loopback import serving_app
from tests.server.app_server import serving
from tests.server.test_edits_by_function import reef

TIDES = "The tide is high.\nThen it is low.\n"


class Writer(AgentExecutor):
    """Writes a document, and answers each other message as a test says."""

    def __init__(self, answer: str, passage: str) -> None:
        self.answer, self.passage = answer, passage
        self.messages: list[pb.Message] = []

    async def execute(self, context, event_queue) -> None:
        self.messages.append(context.message)
        if context.current_task is None:
            task = new_task_from_user_message(context.message)
            task.id, task.context_id = context.task_id, context.context_id
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        said = new_text_message(self.passage)
        match "message" if len(self.messages) == 1 else self.answer:
            case "message" if len(self.messages) == 1:
                await updater.add_artifact([new_text_part(TIDES)], "tides", "tides.md")
                await updater.complete(new_text_message("Written."))
            case "message":
                await updater.complete(said)
            case "artifact":
                await updater.add_artifact([new_text_part(self.passage[:2])], "answer")
                await updater.add_artifact([new_text_part(self.passage[2:])], "answer", append=True)
                await updater.complete(new_text_message("Done."))
            case "whole document":
                await updater.add_artifact([new_text_part(TIDES.replace("high", self.passage))], "tides")
                await updater.complete(new_text_message("Done."))
            case "question":
                await updater.requires_input(said)
            case "failure":
                await updater.failed(said)

    async def cancel(self, context, event_queue) -> None:
        self.answer = "cancelled"
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def app_of(writer: Writer, *extensions: str):
    def make(url: str) -> Starlette:
        card = pb.AgentCard(name="Writer", version="1", capabilities=pb.AgentCapabilities(streaming=True))
        card.supported_interfaces.add(url=f"{url}/", protocol_binding="JSONRPC", protocol_version="1.0")
        for uri in extensions:
            card.capabilities.extensions.add(uri=uri)
        handler = DefaultRequestHandler(writer, InMemoryTaskStore(), card)
        return Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/")])

    return make


async def edited(writer: Writer, *extensions: str):
    """The answers to a message, and to an edit."""

    def run(url: str):
        with agent(loop=a2a_agent(url)) as it:
            it.send("tides")
            return it.edit("tides", "Louder", "high")

    async with serving_app(app_of(writer, *extensions)) as url:
        return await asyncio.to_thread(run, url)


@pytest.mark.parametrize("answer", ["message", "artifact", "whole document"])
async def test_its_answer_is_the_new_passage(answer: str) -> None:
    writer = Writer(answer, "HIGH!")
    done = await edited(writer)
    assert (done.state, done.artifacts["tides"]) == ("completed", TIDES.replace("high", "HIGH!"))
    assert done.text == "Edited tides.md at line 1: version 2 is saved."
    assert set(done.artifacts) == {"tides"}


async def test_it_is_sent_the_passage_the_instruction_and_the_surroundings_in_its_conversation() -> None:
    writer = Writer("message", "HIGH!")
    await edited(writer)
    first, message = writer.messages
    [part] = message.parts
    assert all(each in part.text for each in ("high", "Louder", "The tide is ", "Then it is low."))
    assert message.context_id == first.context_id != ""
    assert not message.metadata.fields


async def test_a_question_declines_the_edit_and_its_task_is_cancelled() -> None:
    writer = Writer("question", "How loud?")
    done = await edited(writer)
    assert (done.state, done.text, done.artifacts) == ("rejected", "How loud?", {"tides": TIDES})
    assert writer.answer == "cancelled"


async def test_a_failure_fails_the_edit_and_changes_nothing() -> None:
    done = await edited(Writer("failure", "No sky."))
    assert (done.state, done.artifacts) == ("failed", {"tides": TIDES})
    assert "The agent's task failed: No sky." in done.text


async def test_an_agent_that_declares_canvas_v1_is_sent_the_operation_and_else_a_message() -> None:
    """This one declares it, and does not know it."""
    writer = Writer("message", "HIGH!")
    done = await edited(writer, "urn:a2a-canvas:canvas:v1")
    assert done.artifacts["tides"] == TIDES.replace("high", "HIGH!")
    first, operation, message = writer.messages
    assert operation.metadata["urn:a2a-canvas:canvas:v1"] == {
        "op": "edit",
        "artifactId": "tides",
        "selection": {"start": 12, "end": 16, "unit": "codepoint", "text": "high"},
        "strategy": "replace",
    }
    assert [part.text for part in operation.parts] == ["Louder"]
    assert operation.context_id == message.context_id == first.context_id
    assert not message.metadata.fields


async def test_this_server_behind_itself_edits_its_own_artifact_too() -> None:
    def run(url: str) -> list[dict]:
        with agent(loop=a2a_agent(url)) as it:
            it.send("tides")
            return [it.edit("tides", "much louder", "high").artifacts, it.edit("tides", "louder", "low").artifacts]

    async with serving(grpc=False, database="memory", loop=reef()) as other:
        edits = await asyncio.to_thread(run, other.url)
        tasks = (await other.rpc("ListTasks", {"includeArtifacts": True}))["result"]["tasks"]
    assert edits == [
        {"tides": "The tide is HIGH!.\nThen it is low.\n"},
        {"tides": "The tide is HIGH!.\nThen it is LOW.\n"},
    ]
    assert len(tasks) == 3
    assert tasks[0]["artifacts"][0]["parts"][0]["text"] == "The tide is HIGH!.\nThen it is LOW.\n"


# ------------------------------------------------------------------------------ pure

EDIT = Edit("Louder", "high", "The tide is ", ".\n", "", None, "tides.md", "", "line 1", "replace", "<delete/>", "", "")
SPAN = Span(12, 16)


@pytest.mark.parametrize(
    ("answer", "strategy", "passage"),
    [
        ("The tide is HIGH.\nThen it is low.\n", "replace", "HIGH"),
        ("The tide is .\nThen it is low.\n", "replace", "<delete/>"),
        ("The tide is very high.\nThen it is low.\n", "insert_before", "very "),
        ("The tide is highest.\nThen it is low.\n", "insert_after", "est"),
        ("The tide was HIGH.\nThen it is low.\n", "replace", ""),
        ("HIGH", "replace", ""),
        ("", "replace", ""),
    ],
)
def test_the_passage_of_a_whole_document_is_what_stands_between_its_unchanged_parts(answer, strategy, passage) -> None:
    assert passage_in(answer, TIDES, replace(EDIT, strategy=strategy), SPAN) == passage


def test_an_answer_to_an_edit_of_the_whole_document_is_the_passage() -> None:
    edit = replace(EDIT, passage=TIDES, before="", after="")
    assert passage_in("New.", TIDES, edit, Span(0, len(TIDES))) == ""


@pytest.mark.parametrize(("document", "span"), [(TIDES, SPAN), (TIDES * 2, None), ("Changed.", None)])
def test_a_passage_is_found_by_its_surroundings_if_they_occur_once(document: str, span) -> None:
    assert selected_span(document, EDIT) == span


@pytest.mark.parametrize(
    ("change", "found"),
    [({}, "remote"), ({"url": "http://elsewhere"}, ""), ({"contextId": "another user's"}, ""), ({"artifactId": 1}, "")],
)
def test_a_mark_that_a_client_has_forged_leads_to_no_other_conversation(change, found) -> None:
    mark = {"url": "http://weather", "contextId": "there", "artifactId": "remote", **change}
    assert remote_artifact([mark], "http://weather", "there") == found
