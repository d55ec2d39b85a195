"""`POST /canvas/stream` over the whole application: AG-UI's `RunAgentInput`, the older request, and A2A beside them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from a2a.types import a2a_pb2 as pb

from tests.node_tools import missing
from tests.server.agui_client import PATH, Json, Run, Thread, agent, shown
from tests.server.app_server import (
    SCRIPT,
    SERVER_STOPPED,
    Served,
    Stream,
    asking,
    history_of,
    serving,
    stoppable,
    text_of,
)
from tests.server.canvas_client import AGENTSTACK, CANVAS, CODE, LOOP, POOLS, WORDS, selected
from tests.server.canvas_client import SCRIPT as CANVAS_SCRIPT
from tests.server.protocols.agui.agui_verifier import CLIENTS, HERE, verify

pytestmark = pytest.mark.asyncio(loop_scope="module")

SLOW = "0123456789" * 10
RUNS: list[Run] = []
"""All runs that a test has read to their end."""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the models of both files say."""
    path = tmp_path_factory.mktemp("scripts") / "both.yaml"
    path.write_text(SCRIPT.read_text() + CANVAS_SCRIPT.read_text().partition("rules:\n")[2])
    return path


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def server(script: Path) -> AsyncIterator[Served]:
    async with serving(script, grpc=False) as running:
        yield running
    if not missing(CLIENTS, within=HERE):
        verify(*(run.seen for run in RUNS))


@pytest.fixture
def thread(served: Served) -> Any:
    """A thread whose runs are held against AG-UI's own checkers when all tests of this file are done."""
    thread = Thread(served)
    yield thread
    RUNS.extend(run for run in thread.runs if run.seen and run.end["type"] in ("RUN_FINISHED", "RUN_ERROR"))


async def test_agui_s_own_checkers_are_there_to_judge_the_runs_of_this_file() -> None:
    verify()


async def made(thread: Thread, text: str, name: str = "doc.txt", media_type: str = "text/plain") -> Run:
    """The artifact `doc`, written by the agent."""
    run = await thread.run(f"make doc {name} {media_type}\n{text}")
    assert run.outcome == "success"
    return run


def editing(selection: Json, **fields: Any) -> Json:
    """The forwarded props of an edit of `doc`."""
    return {CANVAS: {"op": "edit", "artifactId": "doc", "selection": selection, **fields}}


def operation(op: str, **fields: Any) -> Json:
    return {CANVAS: {"op": op, "artifactId": "doc", **fields}}


def contents(*texts: str, kind: str = "text", title: str = "", language: str = "") -> list[Json]:
    name = "code" if kind == "code" else "fullMarkdown"
    told = {"type": kind, "title": title, "language": language}
    return [{"index": index, **told, name: text} for index, text in enumerate(texts, 1)]


def one(text: str, **fields: Any) -> Json:
    """An artifact of one version, as the older request has it."""
    return {"currentIndex": 1, "contents": contents(text, **fields)}


async def tasks(served: Served, context: str) -> list[pb.Task]:
    """The tasks of a context, newest first, as A2A lists them."""
    return list((await served.client().list_tasks(pb.ListTasksRequest(context_id=context))).tasks)


async def refused(served: Served, body: Any, status: int = 400, **request: Any) -> Json:
    """The error of an answer in A2A's REST form."""
    request = request or {"json": body}
    response = await served.http.post(PATH, **request)
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    error: Json = response.json()["error"]
    assert error["code"] == status
    assert error["details"][0]["domain"] == "a2a-protocol.org"
    return error


# ------------------------------------------------------------------------ the examples


EXAMPLES = [
    ("Make this async.", CODE, "fetch.py", "code", "def fetch(url):", "async def fetch(url):"),
    ("Write this as one expression.", LOOP, "squares.py", "code", LOOP[LOOP.index("for"):LOOP.index("\nprint")],
     "squares = [item * item for item in items]"),
    ("Make this sentence more detailed.", POOLS, "pools.md", "text", "The tide comes in.",
     "Twice a day the tide comes in, and the pools fill with **cold, clear** water."),
    ("Please write a poem in a new artifact, not here.", WORDS, "words.txt", "text", "two", "Roses are red"),
]  # fmt: skip
examples = pytest.mark.parametrize(
    ("instruction", "text", "name", "kind", "quote", "new"), EXAMPLES, ids=["async", "loop", "sentence", "wording"]
)


def partial_update(run: Run) -> tuple[Json, str, Json]:
    """Start, joined chunks and completion of the one edit that a run has told of."""
    (start,) = run.of("artifact_partial_update_start")
    (complete,) = run.of("artifact_partial_update_complete")
    chunks = run.of("artifact_partial_update_chunk")
    assert all(chunk["selection"] == start["selection"] for chunk in chunks)
    assert not run.of("assistant")
    assert not run.of("artifact_partial_update_abort")
    return start, "".join(chunk["chunk"] for chunk in chunks), complete


@examples
async def test_an_edit_of_a_selection_changes_it_and_nothing_else(
    thread: Thread, instruction: str, text: str, name: str, kind: str, quote: str, new: str
) -> None:
    await made(thread, text, name)
    selection = selected(text, quote, text=quote)
    run = await thread.run(instruction, forwardedProps=editing(selection, baseVersion=1))
    assert run.outcome == "success"
    start, written, complete = partial_update(run)
    landed = {"start": selection["start"], "end": selection["end"]}
    assert (start["selection"], start["strategy"], complete["selection"]) == (landed, "replace", landed)
    assert written == complete["updatedContent"] == new
    assert run.text("doc") == text.replace(quote, new, 1)
    assert shown(run, "doc") == await thread.artifact("doc")
    assert [version["author"] for version in shown(run, "doc")["versions"]] == ["agent", "agent"]


@examples
async def test_so_it_does_in_the_older_request(
    thread: Thread, instruction: str, text: str, name: str, kind: str, quote: str, new: str
) -> None:
    start, first = text.index(quote), text[: text.index(quote)].count("\n") + 1
    lines = {"lineStart": first, "lineEnd": first + quote.count("\n")}
    run = await thread.older(
        instruction,
        artifact=one(text, kind=kind, title=name, language="klingon"),
        selectedText={"start": start, "end": start + len(quote), "text": quote, **lines},
    )
    assert run.outcome == "success"
    assert partial_update(run)[1] == new
    assert run.state["artifactAction"] == "partial_update"
    changed = text.replace(quote, new, 1)
    expected = contents(text, changed, kind=kind, title=name, language="klingon")
    assert run.older == {"currentIndex": 2, "contents": expected}
    assert shown(run, "canvas") == await thread.artifact("canvas")
    assert [version["author"] for version in shown(run, "canvas")["versions"]] == ["user", "agent"]
    assert len(await tasks(thread.served, thread.id)) == 1


@pytest.mark.parametrize("body", ["AG-UI", "older"])
async def test_no_selection_means_conversation(thread: Thread, body: str) -> None:
    await made(thread, WORDS)
    message = "Please write a poem about line 1 of doc."
    run = await (thread.older(message) if body == "older" else thread.run(message))
    assert run.said == ["Roses are red, said in conversation."]
    assert run.outcome == "success"
    assert await thread.artifact("doc") == shown(run, "doc")
    assert run.text("doc") == WORDS
    assert thread.served.model.requests[-1].edit is None


async def test_what_the_user_looks_at_is_told_and_changes_nothing(thread: Thread) -> None:
    await made(thread, WORDS)
    looking = {CANVAS: {"artifactId": "doc", "selection": selected(WORDS, "two", text="two")}}
    run = await thread.run("make it shorter", forwardedProps=looking)
    assert (run.said, run.text("doc")) == (["Which one?"], WORDS)


async def test_agentstack_metadata_is_an_edit(thread: Thread) -> None:
    await made(thread, WORDS)
    given = {"start_index": 4, "end_index": 7, "description": "say 2", "artifact_id": "doc"}
    assert (await thread.run("say 2", forwardedProps={AGENTSTACK: given})).text("doc") == WORDS.replace("two", "2")


async def test_put_with_a_name_makes_an_artifact_that_is_not_there(thread: Thread) -> None:
    put = await thread.run("mine", forwardedProps=operation("put", text="one", name="doc.txt"))
    assert (put.text("doc"), put.said) == ("one", ["Saved doc.txt as version 1."])
    assert shown(put, "doc") == await thread.artifact("doc")


async def test_put_without_a_text_stores_the_files_of_its_message(thread: Thread) -> None:
    image = {"type": "image", "source": {"type": "data", "value": "iVBORw0KGgo=", "mimeType": "image/png"}}
    words = {"type": "text", "text": "my picture"}
    put = await thread.run([words, image], forwardedProps=operation("put", name="picture"))
    assert put.said == ["Saved picture as version 1."]
    assert put.state["artifacts"]["doc"]["parts"][0]["kind"] == "file"
    assert shown(put, "doc") == await thread.artifact("doc")


async def test_put_with_merge_keeps_both_changes_or_says_where_they_touch(thread: Thread) -> None:
    await made(thread, "one two")
    await thread.run("mine", forwardedProps=operation("put", text="one 2"))
    merged = await thread.run("mine", forwardedProps=operation("put", text="1 two", baseVersion=1, merge=True))
    assert (merged.text("doc"), merged.said) == ("1 2", ["Merged with version 2: version 3 is saved."])
    refused = await thread.run("mine", forwardedProps=operation("put", text="uno two", baseVersion=1, merge=True))
    place = {"start": 0, "end": 3, "base": "one", "current": "1", "yours": "uno"}
    assert refused.of("rejected") == [{"artifactId": "doc", "artifactVersion": 3, "conflicts": [place]}]


async def test_comments_and_suggestions_are_runs_whose_changes_are_custom_events(thread: Thread) -> None:
    await made(thread, "one two")
    asked = len(thread.served.model.requests)
    place = {"start": 0, "end": 3, "text": "one"}
    body = thread.body("Why one?", forwardedProps=operation("annotate", selection=place))
    comment = await thread.ran(body)
    [changed] = comment.of("annotations")
    [annotation] = changed["annotations"]
    assert (changed["artifactId"], changed["removed"]) == ("doc", [])
    assert (annotation["kind"], annotation["state"], annotation["thread"][0]["text"]) == ("comment", "open", "Why one?")
    assert comment.of("operation_result") == [{"artifactId": "doc", "annotationIds": [annotation["annotationId"]]}]
    assert comment.kinds[-4:] == ["completed", "stream_end", "operation_result", "RUN_FINISHED"]
    again = await thread.ran(body)
    assert again.of("operation_result") == comment.of("operation_result")

    suggested = await thread.run("Shorter", forwardedProps=operation("annotate", selection=place, replacement="1"))
    [id_] = suggested.of("operation_result")[0]["annotationIds"]
    accepted = await thread.run("yes", forwardedProps=operation("accept", annotationId=id_))
    assert (accepted.text("doc"), accepted.outcome) == ("1 two", "success")
    result = {"artifactId": "doc", "artifactVersion": 2, "accepted": [id_], "stale": [], "conflicts": []}
    assert accepted.of("operation_result") == [result]
    [changed] = accepted.of("annotations")
    assert [(each["annotationId"], each["state"]) for each in changed["annotations"]] == [(id_, "accepted")]
    assert shown(accepted, "doc") == await thread.artifact("doc")

    withdrawn = await thread.run("x", forwardedProps=operation("withdraw", annotationId=annotation["annotationId"]))
    assert withdrawn.of("annotations") == [
        {"artifactId": "doc", "annotations": [], "removed": [annotation["annotationId"]]}
    ]
    late = await thread.run("yes", forwardedProps=operation("accept", annotationId=id_))
    assert (late.outcome, len(late.of("annotations"))) == ("rejected", 0)
    assert len(thread.served.model.requests) == asked


async def test_put_undo_and_redo_are_runs_that_end_at_once(thread: Thread) -> None:
    await made(thread, "one")
    put = await thread.run("mine", forwardedProps=operation("put", text="two", baseVersion=1))
    assert (put.text("doc"), put.state["artifacts"]["doc"]["author"]) == ("two", "user")
    undone = await thread.run("back", forwardedProps=operation("undo"))
    assert (undone.text("doc"), undone.said) == ("one", ["Undone: doc.txt is at version 1 again."])
    redone = await thread.run("again", forwardedProps=operation("redo"))
    assert (redone.text("doc"), redone.outcome) == ("two", "success")
    assert shown(redone, "doc") == await thread.artifact("doc")
    nothing = await thread.run("again", forwardedProps=operation("redo"))
    assert nothing.outcome == "rejected"
    assert nothing.of("rejected") == [{"artifactId": "doc", "artifactVersion": 2}]
    assert thread.served.model.requests[2:] == []


async def test_files_and_context_reach_the_model(thread: Thread) -> None:
    image = {"type": "image", "source": {"type": "data", "value": "iVBORw0KGgo=", "mimeType": "image/png"}}
    run = await thread.run(
        [{"type": "text", "text": "Please write a poem."}, image], context=[{"description": "Name", "value": "Ann"}]
    )
    assert run.outcome == "success"
    told = thread.served.model.requests[0].messages[-1].content
    assert [type(content).__name__ for content in told] == ["ModelText", "ModelText", "Attachment"]
    assert told[0].text == "[Name: Ann]"  # type: ignore[union-attr]


# ---------------------------------------------------------------------- a run is a task


async def test_a_run_is_a_task_of_its_thread_that_a2a_lists(thread: Thread) -> None:
    run = await thread.run("write report", message_id="m")
    (task,) = await tasks(thread.served, thread.id)
    assert (task.id, task.context_id) == (run.task_id, thread.id) == (run.task_id, run.state["contextId"])
    assert task.status.state == pb.TASK_STATE_COMPLETED
    got = await thread.served.client().get_task(pb.GetTaskRequest(id=task.id))
    assert history_of(got)[0] == ("user", "write report")
    assert got.history[0].message_id == "m"
    assert text_of(got) == run.text("report")
    assert run.said[-1] == "I wrote report."
    assert run.seen[0] == {
        "type": "RUN_STARTED",
        "threadId": thread.id,
        "runId": run.end["runId"],
        "protocolVersion": "1.0",
    }


async def test_a2a_and_agui_read_the_same_bytes_of_one_task_at_the_same_time(thread: Thread) -> None:
    served = thread.served
    async with thread.opened(thread.body("slowly notes")) as run:
        await run.until("STATE_SNAPSHOT")
        watcher = Stream(served.client().subscribe(pb.SubscribeToTaskRequest(id=run.task_id)))
        await watcher.next()
        served.gate.let(13)
        await served.gate.reached.wait()
        so_far = (await thread.artifact("notes"))["text"]
        await watcher.until_text(len(so_far))
        while run.state["artifacts"] == {} or len(run.text("notes")) < len(so_far):
            await run.next()
        assert run.text("notes") == text_of(watcher.task) == so_far
        assert 0 < len(so_far) < len(SLOW)
        assert run.state["artifacts"]["notes"]["open"]
        served.gate.open()
        await asyncio.gather(run.rest(), watcher.rest())
    assert run.text("notes").encode() == text_of(watcher.task).encode() == SLOW.encode()
    assert shown(run, "notes") == await thread.artifact("notes")
    assert watcher.task.status.state == pb.TASK_STATE_COMPLETED


async def test_a_task_that_a2a_has_begun_goes_on_in_the_thread_of_that_context(thread: Thread) -> None:
    events = thread.served.client().send_message(asking("write report", context=thread.id))
    stream = await Stream(events).rest()
    run = await thread.run("just say it")
    assert run.text("report") == text_of(stream.task)
    assert len(await tasks(thread.served, thread.id)) == 2


async def test_a_cancel_over_a2a_ends_the_run_as_cancelled(thread: Thread) -> None:
    served = thread.served
    async with thread.opened(thread.body("slowly notes")) as run:
        await run.until("TOOL_CALL_START")
        await served.client().cancel_task(pb.CancelTaskRequest(id=run.task_id))
        await run.rest()
    assert (run.outcome, run.state["phase"]) == ("cancelled", "canceled")
    assert run.kinds[-3:] == ["completed", "stream_end", "RUN_FINISHED"]
    assert served.model.speaking == 0


async def test_a_cancelled_edit_is_aborted_and_the_artifact_as_it_was(thread: Thread) -> None:
    await made(thread, WORDS)
    edit = editing(selected(WORDS, "five"))
    async with thread.opened(thread.body("slowly say 0123456789", forwardedProps=edit)) as run:
        await run.until("artifact_partial_update_chunk")
        await thread.served.client().cancel_task(pb.CancelTaskRequest(id=run.task_id))
        await run.rest()
    assert len(run.of("artifact_partial_update_abort")) == 1
    assert (run.outcome, run.text("doc")) == ("cancelled", WORDS)
    assert shown(run, "doc") == await thread.artifact("doc")


@pytest.mark.parametrize(
    ("message", "code", "text"),
    [("decline", "rejected", "Not this."), ("fail", "failed", "Try again in other words")],
)
async def test_a_task_that_fails_or_is_declined_is_a_run_error_with_its_sentence(
    thread: Thread, message: str, code: str, text: str
) -> None:
    run = await thread.run(message)
    assert (run.end["type"], run.end["code"]) == ("RUN_ERROR", code)
    assert text in run.end["message"]


async def test_a_run_that_is_sent_again_joins_its_task(thread: Thread) -> None:
    body = thread.body("slowly notes")
    async with thread.opened(body) as first:
        await first.until("TOOL_CALL_START")
        async with thread.opened(body) as second:
            await second.until("STATE_SNAPSHOT")
            thread.served.gate.open()
            await asyncio.gather(first.rest(), second.rest())
    third = await thread.ran(body)
    assert {run.task_id for run in (first, second, third)} == {first.task_id}
    assert [run.text("notes") for run in (first, second, third)] == [SLOW] * 3
    assert len(await tasks(thread.served, thread.id)) == 1


async def test_a_new_run_with_the_same_last_message_is_a_new_task(thread: Thread) -> None:
    first = await thread.run("just say it", message_id="m")
    second = await thread.run("just say it", message_id="m")
    assert first.task_id != second.task_id
    assert len(await tasks(thread.served, thread.id)) == 2


async def test_an_edit_that_is_sent_again_is_made_once(thread: Thread) -> None:
    await made(thread, WORDS)
    body = thread.body("say 2", forwardedProps=editing(selected(WORDS, "two"), baseVersion=1))
    runs = [await thread.ran(body) for _ in range(2)]
    assert runs[0].task_id == runs[1].task_id
    assert [run.text("doc") for run in runs] == [WORDS.replace("two", "2")] * 2
    assert (await thread.artifact("doc"))["version"] == 2


# --------------------------------------------------------------------------- questions


def resume(interrupt: str, status: str = "resolved", **fields: Any) -> Json:
    return {"resume": [{"interruptId": interrupt, "status": status, **fields}]}


async def question(thread: Thread, message: str = "ask", **ids: str) -> Run:
    """A run that ends with a question."""
    run = await thread.run(message, **ids)
    (interrupt,) = run.end["outcome"]["interrupts"]
    assert interrupt == {"id": run.task_id, "reason": "input_required", "message": run.said[-1]}
    return run


@pytest.mark.parametrize("way", ["resume", "AG-UI", "older"])
async def test_a_question_interrupts_the_run_and_is_answered_by_resume_or_by_what_is_said_next(
    thread: Thread, way: str
) -> None:
    asked = await question(thread)
    match way:
        case "resume":
            run = await thread.run("not this", **resume(asked.task_id, payload="Blue"))
        case "AG-UI":
            run = await thread.run("Blue")
        case _:
            run = await thread.older("Blue")
    assert (run.task_id, run.outcome, run.said[-1]) == (asked.task_id, "success", "As you like it.")
    (task,) = await tasks(thread.served, thread.id)
    got = await thread.served.client().get_task(pb.GetTaskRequest(id=task.id))
    assert ("user", "Blue") in history_of(got)
    assert ("user", "not this") not in history_of(got)


async def test_an_answer_may_bring_own_changes_along(thread: Thread) -> None:
    asked = await question(thread)
    run = await thread.older("Blue", artifact=one("mine", title="X"))
    assert (run.task_id, run.outcome, run.said[-1]) == (asked.task_id, "success", "As you like it.")
    assert run.older == one("mine", title="X")
    assert shown(run, "canvas") == await thread.artifact("canvas")


async def test_a_cancelled_interrupt_cancels_its_task(thread: Thread) -> None:
    asked = await question(thread)
    run = await thread.run("", **resume(asked.task_id, "cancelled"))
    assert (run.task_id, run.outcome) == (asked.task_id, "cancelled")
    again = await thread.run("", **resume(asked.task_id, "cancelled"))
    assert again.outcome == "cancelled"


async def test_a_question_that_is_asked_again_by_its_own_run_is_not_answered_by_it(thread: Thread) -> None:
    body = thread.body("ask")
    first, second = await thread.ran(body), await thread.ran(body)
    assert (second.task_id, second.outcome, second.said) == (first.task_id, "interrupt", ["Which colour?"])
    assert len(thread.served.model.requests) == 1


@pytest.mark.parametrize("named", [True, False])
async def test_an_answer_that_is_sent_again_joins_the_task_that_it_has_ended(thread: Thread, named: bool) -> None:
    asked = await question(thread)
    body = thread.body("Blue", **(resume(asked.task_id, payload="Blue") if named else {}))
    runs = [await thread.ran(body) for _ in range(2)]
    assert [(run.task_id, run.outcome, run.said[-1]) for run in runs] == [
        (asked.task_id, "success", "As you like it.")
    ] * 2
    assert len(thread.served.model.requests) == 2


async def test_an_edit_does_not_answer_the_question_and_leaves_it_open(thread: Thread) -> None:
    await made(thread, WORDS)
    asked = await question(thread)
    edit = await thread.run("say 2", forwardedProps=editing(selected(WORDS, "two")))
    assert edit.task_id != asked.task_id
    assert edit.text("doc") == WORDS.replace("two", "2")
    assert (await thread.run("Blue")).task_id == asked.task_id


async def test_a_draft_is_closed_before_the_question_and_goes_on_after_it(thread: Thread) -> None:
    asked = await question(thread, "draft then ask")
    assert not asked.state["artifacts"]["draft"]["open"]
    run = await thread.run("Yes")
    assert (run.text("draft"), run.said[-1]) == ("one two", "Drafted.")
    assert shown(run, "draft") == await thread.artifact("draft")


@pytest.mark.parametrize("status", ["resolved", "cancelled"])
async def test_an_interrupt_that_is_unknown_or_of_another_thread_is_refused(thread: Thread, status: str) -> None:
    unknown = thread.body("", **resume("nothing", status, payload="x"))
    assert "nothing" in (await refused(thread.served, unknown, 404))["message"]
    asked = await question(thread)
    other = Thread(thread.served).body("", **resume(asked.task_id, status, payload="x"))
    assert asked.task_id in (await refused(thread.served, other))["message"]
    (task,) = await tasks(thread.served, thread.id)
    assert task.status.state == pb.TASK_STATE_INPUT_REQUIRED


async def test_an_interrupt_of_a_task_that_has_ended_cannot_be_answered(thread: Thread) -> None:
    done = await thread.run("just say it")
    error = await refused(thread.served, thread.body("", **resume(done.task_id, payload="x")))
    assert done.task_id in error["message"]
    cancelled = await thread.run("", **resume(done.task_id, "cancelled"))
    assert (cancelled.outcome, cancelled.said) == ("success", ["All in one piece."])


# ---------------------------------------------------------------------- the older request


async def test_the_contents_of_an_unknown_artifact_become_its_versions(thread: Thread) -> None:
    given = contents("a", "b", "c", kind="code", title="x.py", language="Python 3")
    run = await thread.older("make it shorter", artifact={"currentIndex": 2, "contents": given})
    assert run.older == {"currentIndex": 2, "contents": given}
    assert run.state["artifactAction"] is None
    assert shown(run, "canvas") == await thread.artifact("canvas")
    numbers = [(version["number"], version["parent"]) for version in shown(run, "canvas")["versions"]]
    assert numbers == [(1, 0), (2, 1), (3, 2)]
    step = {"artifactId": "canvas"}
    undone = await thread.run("back", forwardedProps={CANVAS: {"op": "undo", **step}})
    assert (undone.text("canvas"), undone.outcome) == ("a", "success")
    redone = [await thread.run("on", forwardedProps={CANVAS: {"op": "redo", **step}}) for _ in range(2)]
    assert [run.text("canvas") for run in redone] == ["b", "c"]


async def test_an_artifact_that_comes_back_as_it_was_shown_is_not_stored_again(thread: Thread) -> None:
    first = await thread.older("make it shorter", artifact=one("a", title="X"))
    second = await thread.older("make it shorter", artifact=first.older)
    assert second.older == first.older
    assert (await thread.artifact("canvas"))["version"] == 1


async def test_an_artifact_that_the_agent_has_made_is_the_threads_canvas(thread: Thread) -> None:
    made_by_agent = await thread.older("write report")
    assert [content["title"] for content in made_by_agent.older["contents"]] == ["report.md"]
    text = made_by_agent.older["contents"][0]["fullMarkdown"]
    run = await thread.older("say Bye", selectedText={"start": text.index("Hello"), "end": text.index(",")})
    assert run.older["contents"][1]["fullMarkdown"] == text.replace("Hello", "Bye")
    assert run.outcome == "success"


async def test_the_threads_canvas_stays_the_first_whatever_is_written_later(thread: Thread) -> None:
    first = await thread.older("write report")
    text = first.older["contents"][0]["fullMarkdown"]
    await thread.run("write other")
    assert (await thread.older("make it shorter")).older == first.older
    edit = await thread.older("say Bye", selectedText={"start": text.index("Hello"), "end": text.index(",")})
    assert edit.older["contents"][1]["fullMarkdown"] == text.replace("Hello", "Bye")
    assert shown(edit, "other") == await thread.artifact("other")
    assert (await thread.artifact("other"))["version"] == 1


async def test_another_title_renames_it_even_if_another_artifact_has_that_name(thread: Thread) -> None:
    first = await thread.older("write report")
    await thread.run("write other")
    mine = {**first.older["contents"][0], "title": "other.md", "fullMarkdown": "Mine"}
    run = await thread.older("make it shorter", artifact={"currentIndex": 1, "contents": [mine]})
    assert run.older["contents"] == [first.older["contents"][0], {**mine, "index": 2}]
    assert (run.text("report"), run.state["artifacts"]["report"]["name"]) == ("Mine", "other.md")
    assert (await thread.artifact("other"))["version"] == 1


async def test_own_changes_are_stored_before_the_agent_sees_them_and_can_be_selected_in(thread: Thread) -> None:
    first = await thread.older("make it shorter", artifact=one("one two", title="X"))
    mine = {**first.older["contents"][0], "fullMarkdown": "one two three"}
    run = await thread.older(
        "say 3", artifact={"currentIndex": 1, "contents": [mine]},
        selectedText={"start": 8, "end": 13, "text": "three"},
    )  # fmt: skip
    texts = [content["fullMarkdown"] for content in run.older["contents"]]
    assert (texts, run.older["currentIndex"]) == (["one two", "one two three", "one two 3"], 3)
    authors = [version["author"] for version in shown(run, "canvas")["versions"]]
    assert authors == ["user", "user", "agent"]


async def put_by_others(thread: Thread, text: str) -> None:
    await thread.run("theirs", forwardedProps={CANVAS: {"op": "put", "artifactId": "canvas", "text": text}})


async def test_an_own_change_of_a_client_that_is_behind_takes_nothing_of_others_back(thread: Thread) -> None:
    first = await thread.older("make it shorter", artifact=one("one\n\ntwo", title="X"))
    await put_by_others(thread, "1\n\ntwo")
    mine = {**first.older["contents"][0], "fullMarkdown": "one\n\n2"}
    run = await thread.older("make it shorter", artifact={"currentIndex": 1, "contents": [mine]})
    assert run.outcome == "success"
    assert run.older == {"currentIndex": 3, "contents": contents("one\n\ntwo", "1\n\ntwo", "1\n\n2", title="X")}


async def test_an_edit_of_a_client_that_is_behind_takes_nothing_of_others_back(thread: Thread) -> None:
    first = await thread.older("make it shorter", artifact=one("one two", title="X"))
    await put_by_others(thread, "zero, one two")
    selection = {"start": 4, "end": 7, "text": "two"}
    run = await thread.older("say 2", artifact=first.older, selectedText=selection)
    assert (run.outcome, run.text("canvas")) == ("success", "zero, one 2")


async def test_an_edit_of_an_older_version_branches_from_it_if_its_sender_knows_the_newest(thread: Thread) -> None:
    first = await thread.older("make it shorter", artifact=one("one two", title="X"))
    await put_by_others(thread, "zero, one two")
    known = await thread.older("make it shorter", artifact=first.older)
    selection = {"start": 4, "end": 7, "text": "two"}
    run = await thread.older("say 2", artifact={**known.older, "currentIndex": 1}, selectedText=selection)
    assert (run.outcome, run.text("canvas")) == ("success", "one 2")
    assert run.older == {"currentIndex": 3, "contents": contents("one two", "zero, one two", "one 2", title="X")}
    assert [version["parent"] for version in shown(run, "canvas")["versions"]] == [0, 1, 1]
    on = {**run.older, "currentIndex": 2}
    restored = await thread.older("make it shorter", artifact=on)
    assert (restored.outcome, restored.text("canvas")) == ("success", "zero, one two")
    back = await thread.older("make it shorter", artifact={**restored.older, "currentIndex": 1})
    assert (back.text("canvas"), back.older["currentIndex"]) == ("one two", back.older["currentIndex"])


@pytest.mark.parametrize("place", ["top", "state"])
@pytest.mark.parametrize("ids", [True, False])
async def test_a_selection_beside_messages_is_edited(thread: Thread, place: str, ids: bool) -> None:
    about = {"artifact": one("one two", title="X"), "selectedText": {"start": 4, "end": 7, "text": "two"}}
    said = {"role": "user", "content": "say 2"} | ({"id": "m"} if ids else {})
    body = {"thread_id": thread.id, "run_id": "r", "messages": [said], "action": "quick", "model": "m", "agent": "a"}
    run = await thread.ran(body | (about if place == "top" else {"state": about}))
    assert (run.outcome, run.text("canvas")) == ("success", "one 2")


async def test_a_request_without_a_thread_begins_one(thread: Thread) -> None:
    run = await thread.ran({"message": "just say it"})
    assert run.outcome == "success"
    assert run.state["contextId"] == run.of("RUN_STARTED")[0]["threadId"]


async def test_the_thread_of_an_older_client_gets_one_message_for_a_run(thread: Thread) -> None:
    run = await thread.older("tools")
    assert len({each["content"] for each in run.of("assistant")}) > 1, "the CUSTOM events show all rounds"
    assert run.said == [run.of("completed")[0]["content"]]


async def test_a_run_id_that_is_sent_again_joins_the_run_while_it_runs(thread: Thread) -> None:
    body = thread.older_body("slowly notes", run_id="run-1")
    async with thread.opened(body) as run:
        await thread.served.gate.reached.wait()
        async with thread.opened(body) as late:
            await late.until("STATE_SNAPSHOT")
            thread.served.gate.open()
            await asyncio.gather(run.rest(), late.rest())
    assert run.task_id == late.task_id
    assert run.older == late.older
    assert len(await tasks(thread.served, thread.id)) == 1


async def test_a_run_id_that_is_sent_again_changes_nothing_again(thread: Thread) -> None:
    await thread.older("make it shorter", artifact=one("one", title="X"))
    body = thread.older_body("make it shorter", run_id="run-1", artifact=one("two", title="X"))
    first, again = await thread.ran(body), await thread.ran(body)
    assert (again.task_id, again.older) == (first.task_id, first.older)
    assert [each.of("RUN_STARTED")[0]["runId"] for each in (first, again)] == ["run-1"] * 2
    assert first.older == {"currentIndex": 2, "contents": contents("one", "two", title="X")}


async def test_another_message_or_another_run_id_is_another_run(thread: Thread) -> None:
    first = await thread.older("just say it", run_id="run-1")
    others = [
        await thread.older(text, run_id=run_id) for text, run_id in (("think", "run-1"), ("just say it", "run-2"))
    ]
    assert len({run.task_id for run in (first, *others)}) == 3


async def test_while_the_agent_writes_the_canvas_its_draft_is_no_change_of_the_user(thread: Thread) -> None:
    served = thread.served
    async with thread.opened(thread.older_body("slowly notes")) as writing:
        await writing.until("TOOL_CALL_START")
        served.gate.let(13)
        await served.gate.reached.wait()
        while not writing.state["artifact"]:
            await writing.next()
        draft = json.loads(json.dumps(writing.older))
        said = await thread.older("make it shorter", artifact=draft)
        assert said.outcome == "success"
        selection = {"start": 0, "end": 1}
        edit = await thread.older("say X", artifact=draft, selectedText=selection)
        assert (edit.outcome, "being written" in edit.end["message"]) == ("rejected", True)
        served.gate.open()
        await writing.rest()
    (written,) = writing.older["contents"]
    assert SLOW in (written.get("code"), written.get("fullMarkdown"))
    assert (await thread.artifact("notes"))["version"] == 1


# -------------------------------------------------------------------- what is refused


PROPS = f"forwardedProps.{CANVAS}"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"forwardedProps": editing({"start": 0, "end": 99})}, f"{PROPS}.selection.end"),
        ({"forwardedProps": editing({"start": 0, "end": 3, "text": "two"}, baseVersion=1)}, f"{PROPS}.selection.text"),
        ({"forwardedProps": editing({"start": 0, "end": 3}, baseVersion=7)}, f"{PROPS}.baseVersion"),
        ({"forwardedProps": {CANVAS: {"op": "undo", "artifactId": "none"}}}, f"{PROPS}.artifactId"),
        ({"forwardedProps": {CANVAS: {"op": "eat", "artifactId": "doc"}}}, f"{PROPS}.op"),
        ({"forwardedProps": {CANVAS: []}}, PROPS),
        ({"context": 5}, "context"),
        ({"messages": []}, "messages"),
    ],
)
async def test_bad_input_is_told_by_its_field_and_leaves_no_task(thread: Thread, fields: Json, field: str) -> None:
    await made(thread, WORDS)
    error = await refused(thread.served, thread.body("say 2") | fields)
    assert error["status"] == "INVALID_ARGUMENT"
    assert error["message"].startswith(field)
    assert error["details"][1]["fieldViolations"][0]["field"] == field
    assert len(await tasks(thread.served, thread.id)) == 1
    assert (await thread.artifact("doc"))["text"] == WORDS


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"selectedText": {"start": 0, "end": 99}}, "selectedText.end"),
        ({"selectedText": {"start": 3, "end": 0}}, "selectedText.end"),
        ({"selectedText": {"lineStart": 9}}, "selectedText.lineStart"),
        ({"artifact": one("one two"), "selectedText": {"start": 0, "end": 3, "text": "two"}}, "selectedText.text"),
        ({"artifact": one("changed"), "selectedText": {"start": 0, "end": 3, "text": "one"}}, "selectedText.text"),
        ({"artifact": {"currentIndex": 2, "contents": contents("a", "b")}}, "artifact.currentIndex"),
        ({"artifact": {"currentIndex": 1, "contents": []}}, "artifact.contents"),
    ],
)
async def test_so_it_is_in_the_older_request_and_nothing_is_stored(thread: Thread, fields: Json, field: str) -> None:
    await thread.older("make it shorter", artifact=one("one two"))
    error = await refused(thread.served, thread.older_body("say 2", **fields))
    assert error["message"].startswith(field)
    assert error["details"][1]["fieldViolations"][0]["field"] == field
    assert len(await tasks(thread.served, thread.id)) == 1
    assert (await thread.artifact("canvas"))["version"] == 1


SELECTED = {"start": 0, "end": 3, "text": "one"}
ANSWER = {"interruptId": "i", "status": "resolved", "payload": "yes"}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"state": {"selectedText": "one"}}, "selectedText"),
        ({"state": {"selectedText": "one", "artifact": one("one two")}}, "selectedText"),
        ({"resume": [ANSWER], "selectedText": SELECTED}, "selectedText"),
        ({"resume": [ANSWER], "state": {"selectedText": SELECTED}}, "state.selectedText"),
        ({"forwardedProps": {CANVAS: {"op": "undo", "artifactId": "doc"}}, "selectedText": SELECTED}, "selectedText"),
        ({"forwardedProps": editing({"start": 0, "end": 3}), "state": {"selectedText": "one"}}, "state.selectedText"),
    ],
)
async def test_a_selection_is_edited_or_refused_and_never_ignored(thread: Thread, fields: Json, field: str) -> None:
    await made(thread, WORDS)
    error = await refused(thread.served, thread.body("say 2") | fields)
    assert error["details"][1]["fieldViolations"][0]["field"] == field
    assert len(await tasks(thread.served, thread.id)) == 1
    assert (await thread.artifact("doc"))["text"] == WORDS


async def test_a_selection_that_an_unknown_artifact_does_not_have_makes_none(thread: Thread) -> None:
    body = thread.older_body("say 2", artifact=one("one"), selectedText={"start": 0, "end": 9})
    assert (await refused(thread.served, body))["message"].startswith("selectedText.end")
    assert await tasks(thread.served, thread.id) == []
    assert (await thread.served.http.get(f"/artifacts/{thread.id}")).status_code == 404


JSON_BODY = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("content", "headers", "says"),
    [
        (b"{}", {"Content-Type": "text/plain"}, "Content-Type"),
        (b"{}", {}, "Content-Type"),
        (b"", JSON_BODY, "not JSON"),
        (b"[]", JSON_BODY, "one JSON object"),
        (b"{}", JSON_BODY, "threadId"),
        (b'{"message": "\xff"}', JSON_BODY, "UTF-8"),
        (b'{"message": "\\ud800"}', JSON_BODY, "half of a"),
        (b"[" * 200_000, JSON_BODY, "Nested deeper"),
        (b'{"message": NaN}', JSON_BODY, "NaN"),
        (b'{"message": "a", "message": "b"}', JSON_BODY, "same key twice"),
    ],
    ids=["type", "no type", "empty", "list", "nothing", "utf-8", "surrogate", "deep", "nan", "twice"],
)
async def test_what_is_no_json_object_is_refused_as_in_a2as_rest_binding(
    served: Served, content: bytes, headers: Json, says: str
) -> None:
    error = await refused(served, None, content=content, headers=headers)
    assert says in error["message"]


async def test_a_long_past_may_stand_in_the_request(thread: Thread) -> None:
    past = [{"id": str(number), "role": "user", "content": "x"} for number in range(9_999)]
    body = thread.body("just say it")
    run = await thread.ran(body | {"messages": past + body["messages"], "state": {"any": ["thing"]}})
    assert run.outcome == "success"
    (task,) = await tasks(thread.served, thread.id)
    got = await thread.served.client().get_task(pb.GetTaskRequest(id=task.id))
    assert history_of(got)[0] == ("user", "just say it")


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_another_method_is_405_in_the_same_form(served: Served, method: str) -> None:
    response = await served.http.request(method, PATH)
    assert (response.status_code, response.headers["allow"]) == (405, "POST")
    assert response.json()["error"]["code"] == 405


async def test_the_answer_is_an_event_stream_that_nobody_keeps_or_holds_back(thread: Thread) -> None:
    async with thread.opened(thread.body("just say it")) as run:
        await run.rest()
    headers = run.response.headers
    assert headers["content-type"].startswith("text/event-stream")
    assert (headers["cache-control"], headers["x-accel-buffering"]) == ("no-store", "no")


# ------------------------------------------------------------------------------ settings


def thinks(run: Run) -> bool:
    """Whether anything in a run tells of the model's thinking."""
    named = [kind for kind in run.kinds if kind.startswith("REASONING") or kind == "thinking"]
    return bool(named) or any(block["type"] == "thinking" for block in run.of("text_block_start"))


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def other_server(script: Path) -> AsyncIterator[Served]:
    chosen = {"expose_thinking": False, "on_disconnect": "cancel", "max_body_bytes": 4096}
    async with serving(script, grpc=False, **chosen) as running:
        yield running


@pytest.fixture
def other(server: Served, other_server: Served) -> Any:
    """A thread of a server with other settings."""
    other_server.gate.close()
    thread = Thread(other_server)
    yield thread
    RUNS.extend(run for run in thread.runs if run.seen and run.end["type"] in ("RUN_FINISHED", "RUN_ERROR"))


async def test_thinking_is_reasoning_and_the_turns_own_events(thread: Thread) -> None:
    run = await thread.run("think")
    assert "".join(event["delta"] for event in run.of("REASONING_MESSAGE_CONTENT")) == "ab abc"
    assert "".join(value["content"] for value in run.of("thinking")) == "ab abc"
    assert [block["type"] for block in run.of("text_block_start")] == ["thinking", "text"]


async def test_so_it_is_in_an_edit(thread: Thread) -> None:
    await made(thread, LOOP)
    run = await thread.run("As one expression.", forwardedProps=editing({"lineStart": 3, "lineEnd": 4}))
    assert "".join(value["content"] for value in run.of("thinking")) == "A comprehension."


@pytest.mark.parametrize("message", ["think", "tools"])
async def test_nothing_tells_of_thinking_if_it_is_not_exposed(other: Thread, message: str) -> None:
    run = await other.run(message)
    assert not thinks(run)
    begun = {block["index"] for block in (*run.of("text_block_start"), *run.of("tool_use_start"))}
    assert {block["index"] for block in run.of("content_block_stop")} == begun
    assert run.outcome == "success"


async def test_nor_does_it_to_who_joins_while_the_model_thinks(other: Thread) -> None:
    body = other.body("think and hang")
    async with other.opened(body) as run:
        await other.served.gate.reached.wait()
        async with other.opened(body) as late:
            await late.until("STATE_SNAPSHOT")
            other.served.gate.open()
            await asyncio.gather(run.rest(), late.rest())
    for each in (run, late):
        assert not thinks(each)
        assert "Deep." not in json.dumps(each.seen)
        assert each.said == ["Half of the reply"]


async def test_a_client_that_goes_away_does_not_stop_its_task(thread: Thread) -> None:
    async with thread.opened(thread.body("slowly notes")) as run:
        await run.until("TOOL_CALL_START")
    watcher = Stream(thread.served.client().subscribe(pb.SubscribeToTaskRequest(id=run.task_id)))
    await watcher.next()
    thread.served.gate.open()
    await watcher.rest()
    assert (watcher.task.status.state, text_of(watcher.task)) == (pb.TASK_STATE_COMPLETED, SLOW)


async def test_it_takes_its_task_with_it_if_the_operator_wants_it_so(other: Thread) -> None:
    async with other.opened(other.body("slowly notes")) as run:
        await run.until("TOOL_CALL_START")
        watcher = Stream(other.served.client().subscribe(pb.SubscribeToTaskRequest(id=run.task_id)))
        await watcher.next()
    await watcher.rest()
    assert watcher.task.status.state == pb.TASK_STATE_CANCELED
    assert other.served.model.speaking == 0


async def test_a_client_that_has_read_its_run_to_the_end_takes_nothing_with_it(other: Thread) -> None:
    asked = await other.run("ask")
    run = await other.run("Blue")
    assert (run.task_id, run.outcome) == (asked.task_id, "success")


async def test_a_body_over_the_limit_is_413(other: Thread) -> None:
    assert "4096" in (await refused(other.served, other.body("x" * 5000), 413))["message"]


@pytest.mark.parametrize("body", ["AG-UI", "older"])
async def test_the_servers_stop_ends_the_run_with_its_reason_and_the_answer_is_complete(body: str) -> None:
    async with stoppable() as (server, running, served):
        thread = Thread(served)
        sent = thread.body("slowly notes") if body == "AG-UI" else thread.older_body("slowly notes")
        async with thread.opened(sent) as run:
            await run.until("TOOL_CALL_START")
            server.should_exit = True
            await run.rest()
        await running
    assert run.end == {"type": "RUN_ERROR", "message": SERVER_STOPPED, "code": "failed"}
    RUNS.append(run)


# --------------------------------------------------------------------- AG-UI's own client


async def test_agui_s_own_client_has_the_conversation_and_the_artifact_in_the_end(thread: Thread) -> None:
    found = await agent(thread, "write report", "ask", "resume:Blue", "just say it")
    said = [
        message["content"] for message in found["messages"] if message["role"] == "assistant" and "content" in message
    ]
    assert said == ["I wrote report.", "Which colour?", "As you like it.", "All in one piece."]
    report = found["state"]["artifacts"]["report"]
    assert "".join(part["text"] for part in report["parts"]) == (await thread.artifact("report"))["text"]
    assert len(await tasks(thread.served, thread.id)) == 3


def conversation(found: Json) -> list[tuple[str, str]]:
    """(role, text) of all messages that have a text, except the results of calls."""
    return [
        (message["role"], message["content"])
        for message in found["messages"]
        if message.get("content") and message["role"] != "tool"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("tools", "The end."),
        ("break once", "Once and for all."),
        ("silent", "Done; no artifact was changed."),
        ("think", "Thought."),
    ],
)
async def test_agui_s_own_client_ends_a_turn_with_one_reply(thread: Thread, text: str, reply: str, client: str) -> None:
    found = await agent(thread, "just say it", text, client=client)
    shown = [(role, said) for role, said in conversation(found) if role != "reasoning"]
    assert shown == [
        ("user", "just say it"),
        ("assistant", "All in one piece."),
        ("user", text),
        ("assistant", reply),
    ]
    said = [message["id"] for message in found["messages"] if message["role"] == "user"]
    assert said == ["said-0", "said-1"]


@pytest.mark.parametrize("client", CLIENTS)
async def test_agui_s_own_client_keeps_the_calls_their_results_and_the_thinking_of_a_turn(
    thread: Thread, client: str
) -> None:
    found = await agent(thread, "think", "tools", client=client)
    kept = [message["role"] for message in found["messages"]]
    first = ["user", "reasoning", "assistant"]
    rounds = ["reasoning", "assistant", "tool", "tool", "assistant", "tool", "reasoning", "assistant"]
    assert kept == [*first, "user", *rounds]
    calls = [call for message in found["messages"] for call in message.get("toolCalls", ())]
    results = [message["toolCallId"] for message in found["messages"] if message["role"] == "tool"]
    assert [call["id"] for call in calls] == results
    assert [call["function"]["name"] for call in calls] == ["artifact_list", "artifact_read", "artifact_list"]
    assert json.loads(calls[1]["function"]["arguments"]) == {"artifact_id": "missing"}
    thoughts = [message["content"] for message in found["messages"] if message["role"] == "reasoning"]
    assert thoughts == ["ab abc", "Plan.", "Now."]


@pytest.mark.parametrize("client", CLIENTS)
async def test_agui_s_own_client_keeps_a_question_and_what_was_said_with_it(thread: Thread, client: str) -> None:
    found = await agent(thread, "draft then ask", "resume:Yes", "just say it", client=client)
    assert conversation(found) == [
        ("user", "draft then ask"),
        ("assistant", "Let me draft."),
        ("assistant", "More?"),
        ("assistant", "Drafted."),
        ("user", "just say it"),
        ("assistant", "All in one piece."),
    ]
