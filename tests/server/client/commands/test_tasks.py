"""`tasks`, `contexts`, `watch` and `cancel`, as they are typed, against the whole application on loopback."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.client.commands.send import send
from a2a_canvas.server.client.conversation.invocation import Invocation, await_command
from a2a_canvas.server.client.screen.display import clean
from tests.loopback import serving_app
from tests.server.app_server import Served, asking, sent, serving
from tests.server.canvas_client import CANVAS, with_metadata
from tests.server.client.client_harness import BREAK, Result, Screen, Script, typed, update

SCRIPT = """
rules:
  - match: {text: "^write$"}
    rounds:
      - tools:
          - name: artifact_update
            input:
              append: false
              last_chunk: true
              artifact: {artifact_id: r1, name: report.md, parts: [{kind: text, text: "# T\\n"}]}
      - {text: "Written."}
  - match: {text: "^ask$"}
    rounds: [{tools: [{name: ask_user, input: {question: "Which colour?"}}]}]
  - match: {text: "^hang$"}
    rounds: [{text: "Half of it", chunk: 4, delay: 1}]
  - match: {text: "."}
    rounds: [{text: "Fine."}]
"""
JSONRPC = ("JSONRPC", "1.0")


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    script = tmp_path / "script.yaml"
    script.write_text(SCRIPT)
    async with serving(script, grpc=False) as served:
        served.gate.open()
        yield served


async def ask(served: Served, text: str, context: str) -> str:
    """The id of the task."""
    return (await sent(served, JSONRPC, asking(text, context=context, now=text == "hang"))).id


async def at(served: Served, *arguments: str) -> Result:
    return await typed(*arguments, "--url", served.url)


def rows(result: Result) -> list[list[str]]:
    assert result.err == ""
    return [line.split() for line in result.out.splitlines()[1:]]


async def test_tasks_are_listed_by_state_and_context_the_newest_first(served: Served) -> None:
    done, asked = await ask(served, "write", "one"), await ask(served, "ask", "two")
    listed = rows(await at(served, "tasks"))
    assert [(row[0], row[1], row[-2], row[-1]) for row in listed] == [
        (asked, "input-required", "two", "ask"),
        (done, "completed", "one", "write"),
    ]
    assert [row[0] for row in rows(await at(served, "tasks", "--state", "completed"))] == [done]
    assert [row[0] for row in rows(await at(served, "tasks", "--context", "tw"))] == [asked]
    assert [row[0] for row in rows(await at(served, "tasks", "--limit", "1"))] == [asked]
    told = json.loads((await at(served, "tasks", "--json")).out)
    assert [task["id"] for task in told["tasks"]] == [asked, done]


async def test_contexts_are_listed_with_their_first_request(served: Served) -> None:
    for text, context in (("write", "one"), ("more", "one"), ("hello", "two")):
        await ask(served, text, context)
    listed = rows(await at(served, "contexts"))
    assert [(row[0], row[1], row[2], row[-1]) for row in listed] == [
        ("two", "1", "completed", "hello"),
        ("one", "2", "completed", "write"),
    ]
    told = json.loads((await at(served, "contexts", "--json", "--limit", "1")).out)
    assert [context["contextId"] for context in told["contexts"]] == ["two"]
    assert (await at(served, "tasks", "--state", "failed")).err == "There are no such tasks.\n"


async def test_the_lines_of_all_conversations_are_searched_for_words(served: Served) -> None:
    for context in ("one", "two"):
        await ask(served, "write", context)
    assert rows(await at(served, "contexts", "--text", "# t")) == [
        [context, "report.md", "1", "#", "T"] for context in ("two", "one")
    ]
    told = json.loads((await at(served, "contexts", "--text", "t", "--json", "--limit", "1")).out)
    assert [(each["contextId"], each["lines"]) for each in told["found"]] == [("two", [{"line": 1, "text": "# T"}])]
    nothing = await at(served, "contexts", "--text", "elsewhere")
    assert (nothing.out, nothing.err) == ("", "No line of your documents has all these words.\n")


async def test_an_undo_that_was_rejected_is_not_the_state_of_a_conversation(served: Served) -> None:
    await ask(served, "write", "one")
    undone = await sent(served, JSONRPC, with_metadata("one", "undo", {CANVAS: {"op": "undo", "artifactId": "r1"}}))
    assert undone.status.state == pb.TASK_STATE_REJECTED
    assert [row[:3] for row in rows(await at(served, "contexts"))] == [["one", "2", "completed"]]


async def test_a_conversation_that_began_with_a_file_is_listed_with_its_name(served: Served) -> None:
    put = {CANVAS: {"op": "put", "artifactId": "z", "text": "Stripes.", "name": "zebra-notes.md"}}
    await sent(served, JSONRPC, with_metadata("zoo", "put", put))
    [context] = (await served.http.get("/artifacts")).json()["contexts"]
    [row] = rows(await at(served, "contexts"))
    assert (row[0], row[-1]) == ("zoo", context["request"]) == ("zoo", "zebra-notes.md")


async def test_a_long_request_is_cut_and_no_column_is_left_out(served: Served) -> None:
    await ask(served, "x" * 300_000, "one")
    [[context, count, state, *_, request]] = rows(await at(served, "contexts"))
    assert (context, count, state, request) == ("one", "1", "completed", "x" * 200)
    [[_, state, *_, context, request]] = rows(await at(served, "tasks"))
    assert (state, context, request) == ("completed", "one", f"{'x' * 199}…")


async def test_tasks_that_wait_for_a_login_can_be_listed(served: Served) -> None:
    assert (await at(served, "tasks", "--state", "auth-required")).err == "There are no such tasks.\n"


async def test_a_task_is_watched_to_its_end_by_its_id_or_its_context(served: Served) -> None:
    task = await ask(served, "write", "one")
    for which in (task, task[:8], "one", "on"):
        got = await at(served, "watch", which)
        assert (got.code, got.err) == (0, "")
        assert got.out.endswith(f"Written.\ncontext   one\ntask      {task}\nartifact  r1  report.md\n")
    assert "# T\n" in got.out


async def test_a_conversation_that_is_watched_is_not_the_last_one(served: Served) -> None:
    await ask(served, "write", "old")
    await at(served, "send", "hello", "--context", "new")
    await at(served, "watch", "old")
    await at(served, "send", "-c", "more")
    told = json.loads((await at(served, "contexts", "--json")).out)
    assert [(each["contextId"], len(each["tasks"])) for each in told["contexts"]] == [("new", 2), ("old", 1)]


async def test_a_task_that_runs_is_followed_over_breaks_of_the_connection() -> None:
    task = {"id": "t1", "contextId": "c1", "status": {"state": "TASK_STATE_WORKING"}}
    listed = {"result": {"tasks": [task], "totalSize": 1, "pageSize": 1}}
    script = Script([listed, [update("WORKING", "Half"), BREAK], [update("COMPLETED", "Done.")]])
    async with serving_app(script.app) as url:
        got = await typed("watch", "t1", "--url", url)
    assert (got.code, got.out) == (0, "Done.\ncontext   c1\ntask      t1\n")
    assert got.err.splitlines() == ["Half", "Connection lost, trying again (1 of 6)…"]


async def test_a_task_is_canceled_by_the_beginning_of_its_id(served: Served) -> None:
    served.gate.close()
    task = await ask(served, "hang", "one")
    assert await at(served, "cancel", task[:8]) == Result(0, f"Canceled: {task}\n", "")
    again = await at(served, "cancel", task)
    assert (again.code, again.out) == (1, "")
    assert task in again.err


async def test_an_id_that_is_none_is_answered_with_those_that_there_are(served: Served) -> None:
    await ask(served, "write", "garden")
    got = await at(served, "watch", "gardem")
    assert (got.code, got.out) == (2, "")
    assert got.err == "a2a-canvas: There is no task or context 'gardem'. Did you mean garden?\n"


async def test_a_message_goes_to_the_conversation_and_task_whose_ids_begin_as_typed(served: Served) -> None:
    first = json.loads((await at(served, "send", "ask", "--json")).out.splitlines()[0])["task"]
    context, task = first["contextId"], first["id"]
    await at(served, "send", "red", "--context", context[:8], "--task", task[:8])
    await at(served, "send", "more", "--context", context[:8])
    await at(served, "send", "more", "--context", "garden")
    told = json.loads((await at(served, "contexts", "--json")).out)
    assert [(each["contextId"], len(each["tasks"])) for each in told["contexts"]] == [("garden", 1), (context, 2)]


async def test_a_task_to_answer_that_is_none_is_told_with_the_nearest(served: Served) -> None:
    task = await ask(served, "ask", "garden")
    near = f"{task[:7]}{'0' if task[7] != '0' else '1'}"
    got = await at(served, "send", "red", "--task", near)
    assert (got.code, got.out) == (2, "")
    assert got.err == f"a2a-canvas: There is no task '{near}'. There are: {task[:8]}\n"


async def test_a_name_that_is_no_conversation_begins_one_and_says_so(served: Served) -> None:
    await ask(served, "hello", "garden")
    notes = []
    for context in ("garden", "gardem", "x"):
        err = Screen(tty=True)
        invocation = Invocation(served.url, out=Screen(), err=err)
        assert await await_command(invocation, send(invocation, ("hello",), context)) == 0
        notes += [line for line in err.getvalue().splitlines() if "Starting" in line]
    assert [clean(re.sub(r"\x1b\[\d*m", "", note)) for note in notes] == [
        "Starting a new conversation: gardem. Did you mean garden?",
        "Starting a new conversation: x",
    ]


async def test_the_last_conversation_goes_on_when_the_task_that_was_left_has_ended(served: Served) -> None:
    served.gate.close()
    first, then = Screen("Half"), Screen("still running")
    invocation = Invocation(served.url, out=first, err=Screen())
    sending = asyncio.create_task(await_command(invocation, send(invocation, ("hang",))))
    await first.written.wait()
    sending.cancel()
    assert await sending == 130
    invocation = Invocation(served.url, out=(out := Screen()), err=then)
    going_on = asyncio.create_task(await_command(invocation, send(invocation, ("more",), go_on=True)))
    await then.written.wait()
    served.gate.open()
    assert await going_on == 0
    assert "Half of it\n" in out.getvalue()
    [context] = json.loads((await at(served, "contexts", "--json")).out)["contexts"]
    assert f"Fine.\ncontext   {context['contextId']}\ntask      {context['tasks'][0]}\n" in out.getvalue()
    assert "The last task is still running: your message will be sent when it ends." in then.getvalue()


async def test_a_task_that_has_ended_is_not_canceled(served: Served) -> None:
    task = await ask(served, "write", "one")
    got = await at(served, "cancel", task)
    over = f"a2a-canvas: The task has ended: {task}\nHow it ended: a2a-canvas watch {task} --url {served.url}\n"
    assert got == Result(1, "", over)


async def test_a_server_that_lists_no_tasks_is_one_line() -> None:
    unknown = {"error": {"code": -32601, "message": "Method not found"}}
    async with serving_app(Script([unknown]).app) as url:
        got = await typed("tasks", "--url", url)
    assert got == Result(1, "", "a2a-canvas: The server does not list its tasks\n")
