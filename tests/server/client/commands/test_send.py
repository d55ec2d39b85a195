"""`send` against real servers on loopback: the SDK's own, and one that says exactly what a test wants."""

from __future__ import annotations

import asyncio
import errno
import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import grpc
import pytest
from a2a.helpers import new_task_from_user_message, new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler, GrpcHandler
from a2a.server.routes import create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import a2a_pb2 as pb
from a2a.types import a2a_pb2_grpc
from google.protobuf.json_format import MessageToDict, ParseDict
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from a2a_canvas.server.client.commands.send import MAX_ATTACHED, MAX_IMAGE, send, typed_text
from a2a_canvas.server.client.conversation.invocation import Invocation, await_command
from a2a_canvas.server.client.conversation.state_file import last_context, last_server, remember
from a2a_canvas.server.client.screen.fold import SeenTask, fold
from a2a_canvas.server.wire import TURN
from tests.loopback import serving_app
from tests.property_examples import examples
from tests.server.app_server import serving as serving_canvas
from tests.server.client.client_harness import (
    BREAK,
    Result,
    Screen,
    Script,
    card,
    card_route,
    status,
    typed,
    unused_url,
    update,
)

REPORT = "── report.md ───────────────────────────\n"
RULE = "─" * 40 + "\n"


async def run(url: str, text: str = "go", out: StringIO | None = None, **options: Any) -> Result:
    """Without waiting between tries."""
    out, err = out or StringIO(), StringIO()
    how = {name: options.pop(name) for name in ("json", "program", "quiet") if name in options}
    invocation = Invocation(url, out=out, err=err, pause=no_pause, **how)
    code = await await_command(invocation, send(invocation, (text,), **options))
    return Result(code, out.getvalue(), err.getvalue())


async def no_pause(seconds: float) -> None: ...


# ------------------------------------------------------------ the SDK's own server


class Writer(AgentExecutor):
    """Does what the text of the message names."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        message, wish = context.message, context.get_user_input()
        assert message is not None
        if wish == "message":
            await event_queue.enqueue_event(new_text_message("Just words.", context_id=context.context_id))
            return
        if context.current_task is None:
            await event_queue.enqueue_event(new_task_from_user_message(message))
        updater = TaskUpdater(event_queue, context.task_id or "", context.context_id or "")
        await updater.start_work(new_text_message("Working…"))
        match wish:
            case "ask":
                await updater.requires_input(new_text_message("Which colour?"))
            case "fail":
                await updater.failed(new_text_message("The model is\naway"))
            case "reject":
                await updater.reject()
            case "hang":
                await updater.start_work(new_text_message("Hanging…"))
                await asyncio.Event().wait()
            case _:
                for number, text in enumerate(("# T\n", "one ", "two\n")):
                    await updater.add_artifact([pb.Part(text=text)], "r1", "report.md", append=number > 0)
                await updater.complete(new_text_message(f"Wrote it: {wish}."))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise AssertionError("nobody cancels here")


def sdk_app(make_card: Callable[[str], dict[str, Any]]) -> Callable[[str], ASGIApp]:
    def make(url: str) -> ASGIApp:
        content = make_card(url)
        known = ParseDict(
            card(url, streaming=content["capabilities"]["streaming"]),
            pb.AgentCard(),
            ignore_unknown_fields=True,
        )
        handler = DefaultRequestHandler(Writer(), InMemoryTaskStore(), known)
        routes = [
            card_route(content),
            *create_jsonrpc_routes(handler, "/", enable_v0_3_compat=True),
            *create_rest_routes(handler, enable_v0_3_compat=True, path_prefix="/rest"),
        ]
        return Starlette(routes=routes)

    return make


def jsonrpc(url: str) -> dict[str, Any]:
    return card(url)


def rest(url: str) -> dict[str, Any]:
    return card(f"{url}/rest", "HTTP+JSON")


def blocking(url: str) -> dict[str, Any]:
    return card(url, streaming=False)


def old(url: str) -> dict[str, Any]:
    new = card(url)
    del new["supportedInterfaces"]
    return {**new, "url": url, "preferredTransport": "JSONRPC", "protocolVersion": "0.3.0"}


async def test_a_task_ends_with_its_reply_and_ids_on_every_binding_and_version() -> None:
    for make_card in (jsonrpc, rest, blocking, old):
        async with serving_app(sdk_app(make_card)) as url:
            got = await run(url, "go", context="c1")
        assert got.code == 0, got
        head, _, facts = got.out.partition("context   c1\n")
        assert head == f"{REPORT}# T\none two\n{RULE}Wrote it: go.\n"
        assert facts.startswith("task      ")
        assert facts.endswith("\nartifact  r1  report.md\n")


async def test_statuses_are_lines_on_err_when_out_is_no_terminal() -> None:
    async with serving_app(sdk_app(jsonrpc)) as url:
        assert (await run(url)).err == "Working…\n"


async def test_grpc_is_spoken_when_the_card_has_nothing_else() -> None:
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    content = card(f"127.0.0.1:{port}", "GRPC")
    known = ParseDict(content, pb.AgentCard())
    handler = DefaultRequestHandler(Writer(), InMemoryTaskStore(), known)
    a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(handler), server)
    await server.start()
    try:
        async with serving_app(lambda _: Starlette(routes=[card_route(content)])) as url:
            got = await run(url)
    finally:
        await server.stop(None)
    assert got.code == 0
    assert f"{RULE}Wrote it: go.\n" in got.out


async def test_a_message_in_place_of_a_task_is_the_reply() -> None:
    async with serving_app(sdk_app(jsonrpc)) as url:
        got = await run(url, "message", context="c1")
    assert (got.code, got.out) == (0, "Just words.\ncontext   c1\n")


async def test_a_question_is_printed_with_the_way_to_answer_and_the_answer_goes_on() -> None:
    for make_card in (jsonrpc, blocking):
        async with serving_app(sdk_app(make_card)) as url:
            asked = await run(url, "ask")
            *_, ids, answer = asked.out.splitlines()
            task = ids.split()[-1]
            answered = await run(url, "red", task=task)
        assert asked.code == 3
        assert asked.out.startswith("Which colour?\ncontext   ")
        assert answer == f"Answer with: a2a-canvas send --task {task} … --url {url}"
        assert answered.code == 0
        assert "Wrote it: red.\n" in answered.out
        assert f"task      {task}\n" in answered.out


async def test_a_task_that_ends_badly_is_a_line_on_err_and_exit_1() -> None:
    async with serving_app(sdk_app(jsonrpc)) as url:
        failed, rejected = await run(url, "fail"), await run(url, "reject")
    assert (failed.code, failed.err) == (1, "Working…\na2a-canvas: Task failed: The model is away\n")
    assert (rejected.code, rejected.err) == (1, "Working…\na2a-canvas: Task rejected.\n")
    assert failed.out.startswith("context   ")


async def test_json_is_one_line_per_event_and_nothing_else() -> None:
    async with serving_app(sdk_app(jsonrpc)) as url:
        done, asked, failed = [await run(url, wish, json=True) for wish in ("go", "ask", "fail")]
    kinds = [next(iter(json.loads(line))) for line in done.out.splitlines()]
    assert kinds == ["task", "statusUpdate", *["artifactUpdate"] * 3, "statusUpdate"]
    assert (done.code, done.err) == (0, "")
    last = json.loads(asked.out.splitlines()[-1])
    assert last["statusUpdate"]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert (asked.code, failed.code, failed.err) == (3, 1, "a2a-canvas: Task failed: The model is away\n")


async def test_an_unknown_task_is_refused_with_the_way_to_go_on() -> None:
    async with serving_app(sdk_app(jsonrpc)) as url:
        got = await run(url, task="none")
    assert (got.code, got.out) == (1, "")
    refused, advice = got.err.splitlines()
    assert refused == "a2a-canvas: There is no task 'none'"
    assert advice.startswith("Omit --task; ")


async def test_an_interrupt_offers_to_watch_the_task_or_to_cancel_it() -> None:
    err = Screen("Hanging…")
    async with serving_app(sdk_app(jsonrpc)) as url:
        invocation = Invocation(url, program=".venv/bin/a2a-canvas", out=StringIO(), err=err)
        sending = asyncio.create_task(await_command(invocation, send(invocation, ("hang",), context="c1")))
        await err.written.wait()
        sending.cancel()
        assert await sending == 130
    *_, interrupted, watch, cancel = err.getvalue().splitlines()
    assert interrupted == "a2a-canvas: Interrupted; the task continues"
    task = watch.split()[4]
    assert watch == f"Watch it: .venv/bin/a2a-canvas watch {task} --url {url}"
    assert cancel == f"Cancel it: .venv/bin/a2a-canvas cancel {task} --url {url}"


# --------------------------------------------------------- a server by the test's hand


def task(state: str = "WORKING", text: str = "", artifact: str = "") -> pb.StreamResponse:
    now = pb.Task(id="t1", context_id="c1", status=status(state, text))
    if artifact:
        now.artifacts.add(artifact_id="r1", name="report.md", parts=[pb.Part(text=artifact)])
    return pb.StreamResponse(task=now)


def marked(state: str, text: str = "", **mark: Any) -> pb.StreamResponse:
    """A status as it comes where the turn events are activated."""
    event = update(state, text)
    event.status_update.metadata.update({TURN: {"epoch": 1, "generation": 7, **mark}})
    return event


def turn(event_type: str, **data: Any) -> pb.StreamResponse:
    event = update("WORKING")
    event.status_update.metadata.update({TURN: {"event_type": event_type, "data": data}})
    return event


def written(text: str, *, append: bool = False) -> pb.StreamResponse:
    artifact = pb.Artifact(artifact_id="r1", name="report.md", parts=[pb.Part(text=text)])
    event = pb.TaskArtifactUpdateEvent(task_id="t1", context_id="c1", artifact=artifact, append=append)
    return pb.StreamResponse(artifact_update=event)


FACTS = "context   c1\ntask      t1\n"
WITH_REPORT = FACTS + "artifact  r1  report.md\n"


async def test_the_turn_extension_is_activated_where_the_card_lists_it_and_nowhere_else() -> None:
    for extension in (TURN, "urn:other"):
        script = Script([[update("COMPLETED", "Hi")]], extension)
        async with serving_app(script.app) as url:
            await run(url)
        assert [header for _, _, header in script.calls] == [TURN if extension == TURN else ""]


async def test_the_reply_types_out_below_the_artifact_and_is_said_once() -> None:
    spoken = [
        task(),
        turn("thinking", content="hmm"),
        turn("final_message_start"),
        turn("assistant", content="I am writ", replace=True),
        turn("assistant", content="I am writing.", replace=True),
        update("WORKING", "I am writing."),
        written("# T\n"),
        turn("tool_use_start", name="artifact_update"),
        written("text", append=True),
        turn("assistant", content="Writ", replace=True),
        turn("assistant", content="Written.", replace=True),
        turn("completed", content="Written."),
        turn("stream_end"),
        update("COMPLETED", "Written."),
    ]
    async with serving_app(Script([spoken], TURN).app) as url:
        got = await run(url)
    assert (got.code, got.err) == (0, "")
    assert got.out == f"I am writing.\n{REPORT}# T\ntext\n{RULE}Written.\n{WITH_REPORT}"


async def test_labels_are_statuses_with_the_turn_events_too_and_what_was_said_is_none() -> None:
    spoken = [
        task(),
        marked("WORKING", "Working…", label=True),
        turn("thinking", content="hmm"),
        marked("WORKING", "Writing reply…", label=True),
        turn("final_message_start"),
        turn("assistant", content="I am writing.", replace=True),
        marked("WORKING", "Writing report.md…", label=True),
        written("# T\n"),
        marked("WORKING", "I am writing."),
        marked("COMPLETED"),
    ]
    async with serving_app(Script([spoken], TURN).app) as url:
        got = await run(url)
        assert (got.out, got.err) == (
            f"I am writing.\n{REPORT}# T\n{WITH_REPORT}",
            "Working…\nWriting reply…\nWriting report.md…\n",
        )


SCRIPT = """
rules:
  - match: {text: "^write$"}
    rounds:
      - thinking: "A note."
        text: "I am writing."
        tools:
          - name: artifact_update
            input:
              append: false
              last_chunk: true
              artifact: {artifact_id: r1, name: report.md, parts: [{kind: text, text: "# T\\n"}]}
      - {text: "Written."}
"""


async def test_this_server_tells_on_err_what_it_is_doing(tmp_path: Path) -> None:
    script = tmp_path / "write.yaml"
    script.write_text(SCRIPT)
    async with serving_canvas(script, grpc=False) as served:
        got = await run(served.url, "write", context="c1")
    assert got.err.splitlines() == ["Working…", "Writing reply…", "Writing report.md…", "Writing reply…"]
    assert got.out.startswith(f"I am writing.\n{REPORT}# T\n{RULE}Written.\ncontext   c1\n")


async def test_an_answer_that_broke_off_is_announced() -> None:
    spoken = [
        task(),
        turn("assistant", content="Half", replace=True),
        turn("llm_call_completed", round=1, stop_reason="error"),
        turn("message_start", round=1),
        turn("assistant", content="Whole.", replace=True),
        turn("llm_call_completed", round=1, stop_reason="end_turn"),
        update("COMPLETED", "Whole."),
    ]
    async with serving_app(Script([spoken], TURN).app) as url:
        got = await run(url)
    assert (got.out, got.err) == (f"Half\nWhole.\n{FACTS}", "The answer was interrupted; asking again…\n")


async def test_an_answer_that_broke_off_and_is_not_asked_for_again_is_a_failure_alone() -> None:
    broken = [turn("message_start", round=1), turn("llm_call_completed", round=1, stop_reason="error")]
    async with serving_app(Script([[task(), *broken, update("FAILED", "The key is wrong.")]], TURN).app) as url:
        got = await run(url)
    assert (got.code, got.err) == (1, "a2a-canvas: Task failed: The key is wrong.\n")


async def test_a_stream_that_broke_with_the_answer_does_not_say_that_it_is_asked_again() -> None:
    broken = [turn("message_start", round=1), turn("llm_call_completed", round=1, stop_reason="error")]
    later = [task(), turn("message_start", round=2), update("COMPLETED", "Done.")]
    async with serving_app(Script([[task(), *broken, BREAK], later], TURN).app) as url:
        got = await run(url)
    assert (got.code, got.err) == (0, "Connection lost, trying again (1 of 6)…\n")


async def test_a_server_that_forgot_the_task_is_told_as_such() -> None:
    unknown = {"error": {"code": -32001, "message": "Task not found: 't1'."}}
    asked = {"result": MessageToDict(task("SUBMITTED"))}
    for script in (Script([[task(), BREAK], unknown]), Script([asked, unknown], streaming=False)):
        async with serving_app(script.app) as url:
            got = await run(url)
        forgotten = "a2a-canvas: The server no longer knows the task; it may have been restarted (task t1, context c1)"
        assert (got.code, got.err.splitlines()[-1]) == (1, forgotten)


async def test_a_task_that_takes_no_message_is_answered_with_the_way_to_go_on() -> None:
    said = "Task 't1' is completed. Get it with GetTask, or send a message without taskId."
    over = {"error": {"code": -32004, "message": said}}
    for context in ("", "c 1"):
        async with serving_app(Script([over]).app) as url:
            got = await run(url, task="t1", context=context)
        assert got.err.splitlines() == [
            "a2a-canvas: The server refused: Task 't1' is completed.",
            "Omit --task; -c or --context continues the conversation.",
        ]


async def test_without_a_task_given_a_refusal_is_one_line() -> None:
    async with serving_app(Script([{"error": {"code": -32004, "message": "No."}}]).app) as url:
        assert (await run(url)).err == "a2a-canvas: The server refused: No.\n"


async def test_a_broken_stream_is_taken_up_again_where_it_broke() -> None:
    first = [task(), written("# T\n"), BREAK]
    second = [task(artifact="# T\none "), written("two\n", append=True), update("COMPLETED", "Done.")]
    script = Script([first, second])
    async with serving_app(script.app) as url:
        got = await run(url)
    assert got.code == 0
    assert got.out == f"{REPORT}# T\none two\n{RULE}Done.\n{WITH_REPORT}"
    assert got.err == "Connection lost, trying again (1 of 6)…\n"
    assert [(method, params.get("id")) for method, params, _ in script.calls] == [
        ("SendStreamingMessage", None),
        ("SubscribeToTask", "t1"),
    ]


INFO = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "INTERNAL_ERROR", "domain": "a2a-protocol.org"}
AWAY = {"error": {"code": -32603, "message": "Lost.", "data": [{**INFO, "metadata": {"retryable": "true"}}]}}


async def test_a_stream_that_ends_with_an_error_that_may_pass_is_taken_up_again() -> None:
    script = Script([[task(), AWAY], AWAY, [task(), update("COMPLETED", "Done.")]])
    async with serving_app(script.app) as url:
        got = await run(url)
    tries = [f"Connection lost, trying again ({n} of 6)…" for n in (1, 2)]
    assert (got.code, got.err.splitlines()) == (0, tries)
    assert [method for method, _, _ in script.calls] == ["SendStreamingMessage", *["SubscribeToTask"] * 2]


async def test_an_error_that_will_not_pass_is_the_servers_last_word() -> None:
    lasting = {"error": {"code": -32603, "message": "Internal error"}}
    async with serving_app(Script([[task(), BREAK], lasting]).app) as url:
        got = await run(url)
    assert (got.code, got.err.splitlines()[-1]) == (
        1,
        "a2a-canvas: The server refused: Internal error (task t1, context c1)",
    )


async def test_a_stream_that_keeps_breaking_is_given_up_with_the_task_id() -> None:
    script = Script([[task(), BREAK], [task(), BREAK], 503, [task()], *[503] * 3])
    async with serving_app(script.app) as url:
        got = await run(url)
    assert got.code == 1
    assert got.err.splitlines() == [
        *(f"Connection lost, trying again ({n} of 6)…" for n in range(1, 7)),
        f"a2a-canvas: The connection to {url} was lost; the task may still be running (task t1, context c1)",
        f"Watch it: a2a-canvas watch t1 --url {url}",
        f"Cancel it: a2a-canvas cancel t1 --url {url}",
    ]


async def test_a_try_that_brings_something_new_counts_anew() -> None:
    broken = [[task(), written(f"{n}\n", append=True), BREAK] for n in range(6)]
    async with serving_app(Script([*broken, [update("COMPLETED")]]).app) as url:
        got = await run(url)
    assert (got.code, got.out) == (0, f"{REPORT}0\n1\n2\n3\n4\n5\n{WITH_REPORT}")


async def test_a_task_that_ended_meanwhile_is_asked_for_itself() -> None:
    refused = {"error": {"code": -32004, "message": "the task is over"}}
    done = {"result": MessageToDict(task("COMPLETED", "Done.").task)}
    script = Script([[task(), BREAK], refused, done])
    async with serving_app(script.app) as url:
        got = await run(url)
    assert (got.code, got.out) == (0, f"Done.\n{FACTS}")
    assert [method for method, _, _ in script.calls] == ["SendStreamingMessage", "SubscribeToTask", "GetTask"]


async def test_a_connection_lost_before_there_is_a_task_is_not_tried_again() -> None:
    script = Script([[BREAK]])
    async with serving_app(script.app) as url:
        got = await run(url)
    assert (got.code, got.out, len(script.calls)) == (1, "", 1)
    assert got.err.startswith(f"a2a-canvas: The connection to {url} was lost: ")
    assert got.err.count("\n") == 1


async def test_without_streaming_an_unfinished_task_is_polled() -> None:
    tasks = (task("WORKING", "Half"), task("COMPLETED", "Done."))
    polled = [{"result": MessageToDict(now.task)} for now in tasks]
    script = Script([{"result": MessageToDict(task("SUBMITTED"))}, *polled], streaming=False)
    async with serving_app(script.app) as url:
        got = await run(url)
    assert (got.code, got.out, got.err) == (0, f"Done.\n{FACTS}", "Half\n")
    assert [method for method, _, _ in script.calls] == ["SendMessage", "GetTask", "GetTask"]


async def test_polling_that_fails_three_times_is_given_up() -> None:
    script = Script([{"result": MessageToDict(task("SUBMITTED"))}, 502, 502, 502], streaming=False)
    async with serving_app(script.app) as url:
        got = await run(url)
    assert got.code == 1
    assert "the task may still be running (task t1, context c1)\n" in got.err


async def test_a_stream_that_answers_a_question_may_begin_with_the_question() -> None:
    asking = task("INPUT_REQUIRED", "Which?")
    script = Script([[asking, update("WORKING"), update("COMPLETED", "Red it is.")]])
    async with serving_app(script.app) as url:
        got = await run(url, "red", task="t1", context="c1")
    assert (got.code, got.out) == (0, f"Red it is.\n{FACTS}")
    _, params, _ = script.calls[0]
    assert (params["message"]["taskId"], params["message"]["contextId"]) == ("t1", "c1")
    assert params["message"]["parts"] == [{"text": "red"}]


async def test_a_task_that_needs_authentication_is_exit_3() -> None:
    async with serving_app(Script([[update("AUTH_REQUIRED", "Log in")]]).app) as url:
        got = await run(url)
    assert (got.code, got.err) == (3, "a2a-canvas: Task needs authentication: Log in\n")


async def test_a_task_id_that_is_a_shell_command_comes_quoted() -> None:
    event = pb.TaskStatusUpdateEvent(task_id="x; rm -rf ~", status=status("INPUT_REQUIRED", "Which?"))
    async with serving_app(Script([[pb.StreamResponse(status_update=event)]]).app) as url:
        got = await run(url)
    assert got.out.endswith(f"""Answer with: a2a-canvas send --task 'x; rm -rf ~' … --url {url}\n""")


async def test_the_way_to_answer_is_named_as_the_program_was_called() -> None:
    for program in ("a2a-canvas", ".venv/bin/a2a-canvas", "python -m a2a_canvas"):
        async with serving_app(Script([[task("INPUT_REQUIRED", "Which?")]]).app) as url:
            got = await run(url, program=program)
        assert got.out.endswith(f"Answer with: {program} send --task t1 … --url {url}\n")


async def test_escape_sequences_of_a_server_do_not_reach_the_screen() -> None:
    spoken = [written("\x1b[2Jtext\x9b1m\n"), update("FAILED", "\x1b]0;title\x07no")]
    async with serving_app(Script([spoken]).app) as url:
        plain = await run(url)
    assert "\x1b" not in plain.out + plain.err
    assert "\x9b" not in plain.out
    async with serving_app(Script([spoken]).app) as url:
        lines = await run(url, json=True)
    assert "\x1b" not in lines.out
    assert "\x9b" not in lines.out


async def test_a_reader_that_goes_away_ends_it_quietly() -> None:
    class Gone(StringIO):
        def write(self, _: str) -> int:
            raise BrokenPipeError

    async with serving_app(sdk_app(jsonrpc)) as url:
        with pytest.raises(BrokenPipeError):  # which `main` answers with exit code 1
            await run(url, out=Gone())


async def test_output_that_cannot_be_written_is_not_blamed_on_the_server() -> None:
    class Full(StringIO):
        def write(self, _: str) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    async with serving_app(sdk_app(jsonrpc)) as url:
        got = await run(url, out=Full(), json=True)
    assert got.code == 1
    assert got.err.startswith("a2a-canvas: The output cannot be written: No space left on device (task ")


# ------------------------------------------------------------------ no such server


async def test_without_a_server_there_is_one_line() -> None:
    url = unused_url()
    got = await run(url)
    assert (got.code, got.out, got.err.splitlines()[0]) == (1, "", f"a2a-canvas: No server answers at {url}")


async def test_what_is_no_address_is_one_line() -> None:
    for url in ("example", "ftp://127.0.0.1", "http://127.0.0.1:port"):
        got = await run(url)
        assert (got.code, got.out, got.err.count("\n")) == (1, "", 1)
        assert " address" in got.err


async def test_a_server_without_a_card_or_with_a_wrong_one_is_one_line() -> None:
    wrong: list[tuple[Any, int, str]] = [
        ("no", 404, "No agent card at URL: HTTP 404"),
        (["no"], 200, "The agent card at URL is not valid: "),
        ({"name": 7}, 200, "The agent card at URL is not valid: "),
        (
            card("http://x", "PIGEON"),
            200,
            "The agent offers no supported transport (its card lists: PIGEON)",
        ),
        ({"name": "empty"}, 200, "The agent offers no supported transport (its card lists: none)"),
    ]
    for content, code, line in wrong:
        route = card_route(content, code)
        async with serving_app(lambda _, route=route: Starlette(routes=[route])) as url:  # type: ignore[misc]
            got = await run(url)
        assert (got.code, got.out, got.err.count("\n")) == (1, "", 1)
        assert got.err.startswith("a2a-canvas: " + line.replace("URL", url))


async def test_a_card_that_leads_nowhere_is_one_line() -> None:
    nowhere = unused_url()
    async with serving_app(lambda _: Starlette(routes=[card_route(card(nowhere))])) as url:
        got = await run(url)
    assert (got.code, got.err) == (
        1,
        f"a2a-canvas: The agent's card leads to {nowhere}, where no server answers: "
        "its server sets the address with A2A_CANVAS_PUBLIC_URL\n",
    )


async def test_answers_that_are_no_a2a_are_one_line() -> None:
    answers: list[tuple[Any, str]] = [
        (500, "The server answered HTTP 500\n"),
        ([], "The server's answer ended without a task and without a message\n"),
        ({"error": {"code": -32603, "message": "broken\nhere"}}, "The server refused: broken here\n"),
        (
            {"error": {"code": 7, "message": "odd"}},
            "The server refused: odd\n",
        ),
        ({"result": {"task": 7}}, "The server's answer cannot be used: "),
    ]
    for answer, line in answers:
        async with serving_app(Script([answer]).app) as url:
            got = await run(url)
        assert (got.code, got.out, got.err.count("\n")) == (1, "", 1)
        assert got.err.startswith("a2a-canvas: " + line)


REFUSED = "Request limit reached (2 per minute). Try again in 68 s."
HOW = "(credentials are sent with --token, --header or A2A_CANVAS_TOKEN)"


@pytest.mark.parametrize(
    ("status", "line"), [(429, f"The server refused: {REFUSED}"), (401, f"The server refused: {REFUSED} {HOW}")]
)
@pytest.mark.parametrize("verb", [["send", "go"], ["contexts"], ["tasks"], ["watch", "t1"], ["cancel", "t1"]])
async def test_what_a_server_says_to_a_refused_request_is_shown(status: int, line: str, verb: list[str]) -> None:
    async def answer(_: Request) -> Response:
        return JSONResponse({"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": REFUSED}}, status)

    def app(url: str) -> ASGIApp:
        return Starlette(routes=[card_route(card(url)), Route("/", answer, methods=["POST"])])

    async with serving_app(app) as url:
        got = await typed(*verb, "--url", url)
    assert (got.code, got.out, got.err) == (1, "", f"a2a-canvas: {line}\n")


# -------------------------------------------------------------------- pure pieces


@given(st.lists(st.sampled_from([task(), update("WORKING", "x"), written("a"), written("b", append=True)])))
@settings(max_examples=examples(50))
def test_ids_once_known_are_never_forgotten(responses: list[pb.StreamResponse]) -> None:
    seen = SeenTask()
    for response in responses:
        seen = fold(seen, response)
        assert (seen.task_id, seen.context_id) == ("t1", "c1")
    has_artifact = any(response.HasField("artifact_update") for response in responses)
    assert seen.artifacts == ((("r1", "report.md"),) if has_artifact else ())


# ------------------------------------------------------------------ what is typed


async def said(*arguments: str, stdin: str | bytes = "") -> tuple[Result, list[dict[str, Any]]]:
    """The result, and the parts of the message that the server got."""
    script = Script([[task(), written("one\n"), update("COMPLETED", "Done.")]])
    async with serving_app(script.app) as url:
        got = await typed("send", "--url", url, *arguments, stdin=stdin)
    return got, script.calls[0][1]["message"]["parts"] if script.calls else []


async def test_words_need_no_quotation_marks_and_a_dash_is_the_standard_input() -> None:
    assert (await said("write", "a haiku", "--", "-1"))[1] == [{"text": "write a haiku -1"}]
    assert (await said("-", stdin="from a pipe\n"))[1] == [{"text": "from a pipe"}]
    assert (await said("-", stdin=b"\xff"))[0].err.startswith("a2a-canvas: The standard input is not UTF-8 text")
    nothing = "a2a-canvas: There is nothing to send: type a message, pipe one in, or use chat\n"
    assert (await said())[0] == Result(2, "", nothing)


def test_what_is_piped_is_sent_below_the_words(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("a\nb\n")
    with open(tmp_path / "notes") as piped:
        assert typed_text(["explain", "this"], piped) == "explain this\n\na\nb"


async def test_images_pdfs_and_text_are_attached(tmp_path: Path) -> None:
    files = {"a.png": b"\x89PNG", "b.PDF": b"%PDF", "c.py": b"x = 1\n", "d": "é".encode()}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    _, parts = await said("look", *(word for name in files for word in ("--attach", str(tmp_path / name))))
    kinds = [(part["filename"], part["mediaType"]) for part in parts[1:]]
    assert kinds == [
        ("a.png", "image/png"),
        ("b.PDF", "application/pdf"),
        ("c.py", "text/x-python"),
        ("d", "text/plain"),
    ]


@pytest.mark.parametrize(
    ("name", "size", "why"),
    [
        ("none.txt", None, "cannot be attached: No such file or directory"),
        (
            "a.zip",
            10,
            "cannot be attached: it is neither an image (PNG, JPEG, GIF, WebP), nor a PDF, nor text in UTF-8",
        ),
        ("a.jpg", MAX_IMAGE + 1, "has 3.7 MB; the limit for an image is 3.7 MB"),
        ("a.pdf", MAX_ATTACHED + 1, "The attached files have 7.0 MB; the limit is 7.0 MB"),
    ],
)
async def test_a_file_that_cannot_be_attached_is_one_line(
    tmp_path: Path, name: str, size: int | None, why: str
) -> None:
    if size is not None:
        (tmp_path / name).write_bytes(b"\xff" * size)
    got, parts = await said("look", "--attach", str(tmp_path / name))
    assert (got.code, got.out, got.err.count("\n"), parts) == (2, "", 1, [])
    assert why in got.err


async def test_the_last_conversation_with_a_server_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    script = Script([[update("COMPLETED", "One.")], [update("COMPLETED", "Two.")]])
    async with serving_app(script.app) as url:
        none = await typed("send", "-c", "more", "--url", url)
        await typed("send", "go", "--url", url)
        await typed("send", "-c", "more", "--url", url)
    assert (none.code, none.err) == (
        2,
        f"a2a-canvas: There is no last conversation with {url}: send without -c starts one\n",
    )
    for command in (["send", "-c", "more"], ["chat", "-c"]):
        elsewhere = await typed(*command, "--url", "http://127.0.0.1:1")
        assert (elsewhere.code, elsewhere.err.splitlines()[1:]) == (
            2,
            [f"The last conversation is with {url}. To use that server: export A2A_CANVAS_URL={url}"],
        )
    assert [call["message"].get("contextId", "") for _, call, _ in script.calls] == ["", "c1"]


def test_the_last_server_is_that_of_the_newest_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for url in ("a", "b", "a"):
        remember(url, f"context of {url}")
    assert (last_server(), last_context("b")) == ("a", "context of b")


@pytest.mark.parametrize("state", ["no JSON", '["c1"]', None])
async def test_a_state_that_cannot_be_read_or_written_fails_no_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str | None
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file = tmp_path / "a2a-canvas" / "contexts.json"
    file.parent.mkdir() if state else file.parent.write_text("a file where the folder should be")
    if state:
        file.write_text(state)
    assert (await said("go"))[0].code == 0


async def test_the_artifact_is_written_to_a_file(tmp_path: Path) -> None:
    got, _ = await said("go", "-o", str(tmp_path / "x.md"))
    assert got.out.endswith(f"Wrote {tmp_path}/x.md (4 B)\n")
    assert (tmp_path / "x.md").read_text() == "one\n"
    await said("go", "-o", str(tmp_path))
    assert (tmp_path / "report.md").read_text() == "one\n"


async def test_a_file_in_a_folder_that_is_not_there_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    file = tmp_path / "none" / "x.md"
    got = await typed("send", "go", "-o", str(file), "--url", unused_url())
    assert (got.code, got.err) == (2, f"a2a-canvas: {file} cannot be written: there is no folder {file.parent}\n")


async def test_quiet_prints_the_artifact_alone_or_the_reply() -> None:
    assert (await said("go", "--quiet"))[0] == Result(0, "one\n", "")
    async with serving_app(Script([[update("COMPLETED", "Just words.")]]).app) as url:
        assert await typed("send", "go", "--quiet", "--url", url) == Result(0, "Just words.\n", "")
