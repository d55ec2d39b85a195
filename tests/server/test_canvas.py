"""Edits of a selection, over the whole application: DESIGN.md sections 4 (third walk) and 7, docs/canvas.md."""

import asyncio
from itertools import pairwise
from typing import Any

import grpc
import grpc.aio
import pytest
from a2a.types import a2a_pb2 as pb
from a2a.types.a2a_pb2_grpc import A2AServiceStub
from a2a.utils.errors import UnsupportedOperationError
from google.protobuf.json_format import MessageToDict, MessageToJson

from a2a_canvas.server.agent.model import ModelRequest, ModelText
from tests.server.app_server import TURN, Served, Stream, Way, asking, every_way, said, text_of
from tests.server.canvas_client import (
    AGENTSTACK,
    CANVAS,
    CODE,
    LOOP,
    POOLS,
    SCRIPT,
    WORDS,
    Doc,
    activating,
    canvas_of,
    folded,
    made,
    names,
    phases,
    say,
    selected,
    utf16,
    watching,
    with_metadata,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

EMOJI = "😀 Café 👩‍👩‍👧 one two\r\nthree 🎉 four\n"
COMPLETED, REJECTED = pb.TASK_STATE_COMPLETED, pb.TASK_STATE_REJECTED


@pytest.fixture(scope="module")
def app_options() -> dict[str, Any]:
    return {"script": SCRIPT}


def told_of(request: ModelRequest) -> str:
    """What the model is told, all of it."""
    content = [item for message in request.messages for item in message.content]
    return "\n".join(item.text for item in content if isinstance(item, ModelText))


def rejection_of(task: pb.Task) -> dict[str, Any]:
    metadata: dict[str, Any] = MessageToDict(task.status.message.metadata)
    return metadata


# ------------------------------------------------------------------------- the examples


@every_way
@pytest.mark.parametrize("quote", ["def fetch(url):", "def fetch(url):\n"])
async def test_a_function_is_made_async_by_its_def_line_and_nothing_else_changes(
    served: Served, way: Way, quote: str
) -> None:
    doc = await made(served, CODE, "fetch.py", "text/x-python")
    task = await doc.run(doc.edit("Make this async.", selected(CODE, quote, text=quote), baseVersion=1), way)
    assert task.status.state == COMPLETED
    changed = CODE.replace("def fetch(url):", "async def fetch(url):", 1)
    assert text_of(task) == changed
    assert await doc.read() == (2, changed)
    assert await doc.versions() == [("agent", 0), ("agent", 1)]


@every_way
async def test_a_loop_becomes_one_expression_by_its_two_lines(served: Served, way: Way) -> None:
    doc = await made(served, LOOP, "squares.py", "text/x-python")
    task = await doc.run(doc.edit("Write this as one expression.", {"lineStart": 3, "lineEnd": 4}), way)
    assert task.status.state == COMPLETED
    lines = LOOP.splitlines(keepends=True)
    assert text_of(task) == "".join([*lines[:2], "squares = [item * item for item in items]\n", *lines[4:]])


@every_way
async def test_a_sentence_of_markdown_becomes_more_detailed(served: Served, way: Way) -> None:
    doc = await made(served, POOLS, "pools.md", "text/markdown")
    task = await doc.run(doc.edit("Make this sentence more detailed.", "The tide comes in."), way)
    more = "Twice a day the tide comes in, and the pools fill with **cold, clear** water."
    assert text_of(task) == POOLS.replace("The tide comes in.", more)
    artifact = await doc.now()
    assert (artifact["name"], artifact["parts"][0]["mediaType"]) == ("pools.md", "text/markdown")


@every_way
async def test_a_selection_and_an_artifact_win_over_any_wording_of_the_message(served: Served, way: Way) -> None:
    doc = await made(served, WORDS)
    task = await doc.run(doc.edit("Please write a poem in a new artifact, not here.", "two"), way)
    assert text_of(task) == WORDS.replace("two", "Roses are red")
    assert [artifact.artifact_id for artifact in task.artifacts] == ["doc"]
    assert served.model.requests[-1].edit is not None


@every_way
async def test_no_selection_means_conversation(served: Served, way: Way) -> None:
    doc = await made(served, WORDS)
    task = await doc.run(asking("Please write a poem about line 1 of doc.", context=doc.context), way)
    assert said(task.status) == "Roses are red, said in conversation."
    assert served.model.requests[-1].edit is None
    assert await doc.read() == (1, WORDS)


async def test_what_the_user_looks_at_reaches_the_model_as_a_note_and_changes_nothing(served: Served) -> None:
    doc = await made(served, WORDS)
    selection = selected(WORDS, "five", text="five")
    looking = {CANVAS: {"artifactId": "doc", "baseVersion": 1, "selection": selection}}
    task = await doc.run(with_metadata(doc.context, "make it shorter", looking))
    assert said(task.status) == "Which one?"
    told = told_of(served.model.requests[-1])
    note = '[The user is looking at artifact "doc", version 1; selected there, utf16 offsets 20-24: "five"]'
    assert told.endswith(f"{note}\nmake it shorter")
    assert await doc.read() == (1, WORDS)


async def test_the_model_is_shown_the_passage_in_its_surroundings_and_a_later_conversation_what_was_done(
    served: Served,
) -> None:
    doc = await made(served, "a" * 300 + WORDS + "z" * 300)
    await doc.run(doc.edit("say 5", "five"))
    (passage,) = (request.edit for request in served.model.requests if request.edit)
    assert (len(passage.before), passage.selected, len(passage.after)) == (320, "five", 324)
    assert (passage.name, passage.instruction) == ("doc.txt", "say 5")
    await say(doc, "make it shorter")
    told = told_of(served.model.requests[-1])
    assert "[Of a passage selected in artifact" in told
    assert "Edited doc.txt at line 2: version 2 is saved." in told


@every_way
async def test_an_answer_without_text_changes_nothing_and_the_mark_deletes(served: Served, way: Way) -> None:
    doc = await made(served, WORDS)
    task = await doc.run(doc.edit("think", "two"), way)
    assert task.status.state == pb.TASK_STATE_FAILED
    assert "returned no text, so nothing was changed" in said(task.status)
    assert len([request for request in served.model.requests if request.edit]) == 2
    assert await doc.read() == (1, WORDS)
    stream = await doc.stream(doc.edit("drop it", "two"), CANVAS, way=way).rest()
    assert names(stream) == ["submitted", "working", "start", "complete", "replaced", "completed"]
    assert await doc.read() == (2, WORDS.replace("two", ""))


# ----------------------------------------------------------------------- how it is told


@every_way
async def test_a_client_without_the_extension_sees_one_clean_replacement_and_no_word_of_ours(
    served: Served, way: Way
) -> None:
    doc = await made(served, WORDS)
    stream = await doc.stream(doc.edit("say first and second", "two"), way=way).rest()
    assert names(stream) == ["submitted", "working", "replaced", "completed"]
    (change,) = stream.updates()
    assert change.last_chunk
    assert [part.text for part in change.artifact.parts] == [WORDS.replace("two", "first and second")]
    assert said(stream.task.status) == "Edited doc.txt at line 1: version 2 is saved."
    # The user's own message comes back as it was sent.
    assert CANVAS in MessageToJson(stream.seen[0].task.history[0])
    stream.seen[0].task.ClearField("history")
    assert "urn:a2a-canvas" not in "".join(MessageToJson(event) for event in stream.seen)


@every_way
@pytest.mark.transports
async def test_a_client_with_the_extension_sees_the_chunks_at_their_place_then_the_whole(
    served: Served, way: Way
) -> None:
    doc = await made(served, WORDS)
    stream = await doc.stream(doc.edit("say first and second", "two", baseVersion=1), CANVAS, way=way).rest()
    chunks = ["chunk"] * 4
    assert names(stream) == ["submitted", "working", "start", *chunks, "complete", "replaced", "completed"]
    start, *written, complete = phases(stream)
    assert start == {
        "id": start["id"],
        "phase": "start",
        "artifactId": "doc",
        "selection": {"start": 4, "end": 7},
        "unit": "utf16",
        "strategy": "replace",
        "baseVersion": 1,
    }
    assert {chunk["id"] for chunk in written} == {start["id"]}
    assert all(chunk["selection"] == start["selection"] for chunk in written)
    assert "".join(chunk["chunk"] for chunk in written) == complete["updatedContent"] == "first and second"
    assert complete["written"] == {"start": 4, "end": 20}
    landed = complete["selection"]
    whole = WORDS[: int(landed["start"])] + complete["updatedContent"] + WORDS[int(landed["end"]) :]
    assert text_of(stream.task) == whole == WORDS.replace("two", "first and second")
    (change,) = (event for event in stream.seen if event.HasField("artifact_update"))
    assert {"artifactVersion": 2, "author": "agent"}.items() <= canvas_of(change).items()


@every_way
@pytest.mark.parametrize("uris", [(CANVAS,), (TURN, CANVAS)], ids=["canvas", "both"])
async def test_every_event_says_its_epoch_and_generation_in_order(
    served: Served, way: Way, uris: tuple[str, ...]
) -> None:
    doc = await made(served, WORDS)
    stream = await doc.stream(doc.edit("say first and second", "two"), *uris, way=way).rest()
    payloads = [getattr(event, event.WhichOneof("payload") or "") for event in stream.seen]
    fields = [MessageToDict(payload.metadata) for payload in payloads]
    orders = [{(own["epoch"], own["generation"]) for own in each.values()} for each in fields]
    assert all(len(order) == 1 for order in orders)
    assert all(max(before) <= max(after) for before, after in pairwise(orders))
    assert set().union(*fields) == set(uris)


async def test_turn_events_carry_an_edit_too_and_none_of_it_as_reply_text(served: Served) -> None:
    doc = await made(served, LOOP, "squares.py", "text/x-python")
    stream = await doc.stream(doc.edit("As one expression.", {"lineStart": 3, "lineEnd": 4}), TURN).rest()
    kinds = [kind for kind, _ in stream.turn_events()]
    edit = [kind.removeprefix("artifact_partial_update_") for kind in kinds if kind.startswith("artifact_partial")]
    assert (edit[0], edit[-1], set(edit[1:-1])) == ("start", "complete", {"chunk"})
    assert "thinking" in kinds
    assert not {"assistant", "text_delta", "final_message_start"} & set(kinds)
    assert kinds.count("llm_call_completed") == 1
    assert kinds[-2:] == ["completed", "stream_end"]


async def test_who_joins_during_an_edit_gets_its_beginning_too_and_then_knows_what_all_know(served: Served) -> None:
    doc = await made(served, WORDS)
    first = doc.stream(doc.edit("slowly say 0123456789abcdef", "five"), CANVAS)
    task_id = (await first.next()).task.id
    joined = [first]
    texts = []
    for step in range(3):
        if step:
            served.gate.let(1)
        await served.gate.reached.wait()
        for uris in ((CANVAS,), (TURN, CANVAS)):
            watcher = watching(served, task_id, *uris)
            (edit,) = canvas_of(await watcher.next())["openEdits"]
            assert edit == {
                "id": edit["id"],
                "artifactId": "doc",
                "selection": {"start": 20, "end": 24},
                "unit": "utf16",
                "strategy": "replace",
                "baseVersion": 1,
                "text": edit["text"],
            }
            joined.append(watcher)
        texts.append(edit["text"])
    assert texts == ["0123", "01234567", "0123456789ab"]
    served.gate.open()
    for watcher in joined:
        await watcher.rest()
    known = [folded(watcher.seen).seen() for watcher in joined]
    assert known == [known[0]] * len(joined)
    artifacts, state, versions, edits = known[0]
    assert artifacts == {"doc": (WORDS.replace("five", "0123456789abcdef"), "doc.txt")}
    assert (state, versions, edits) == (COMPLETED, {"doc": {"artifactVersion": 2, "author": "agent"}}, {})


async def test_who_joins_with_turn_events_alone_gets_the_beginning_too(served: Served) -> None:
    doc = await made(served, WORDS)
    task = await doc.run(doc.edit("slowly say 0123456789", "five", now=True))
    await served.gate.reached.wait()
    late = watching(served, task.id, TURN)
    (edit,) = MessageToDict((await late.next()).task.metadata)[TURN]["openEdits"]
    served.gate.open()
    await late.rest()
    chunks = [data["chunk"] for kind, data in late.turn_events() if kind == "artifact_partial_update_chunk"]
    assert edit["text"]
    assert edit["text"] + "".join(chunks) == "0123456789"


async def test_get_task_says_the_open_edits_to_whom_it_concerns(served: Served) -> None:
    doc = await made(served, WORDS)
    task = await doc.run(doc.edit("slowly say 0123456789", "five", now=True))
    await served.gate.reached.wait()
    request = pb.GetTaskRequest(id=task.id)
    client = served.client()
    assert [edit["text"] for edit in canvas_of(await client.get_task(request, context=activating(CANVAS)))["openEdits"]]
    assert not (await client.get_task(request)).HasField("metadata")
    stream = watching(served, task.id)
    await stream.next()
    served.gate.open()
    await stream.rest()
    done = canvas_of(await client.get_task(request, context=activating(CANVAS)))
    assert done["openEdits"] == []
    assert done["artifacts"] == {"doc": {"artifactVersion": 2, "author": "agent"}}


# ------------------------------------------------------------------------------ places


@pytest.mark.parametrize(
    ("strategy", "text", "written"),
    [("insert_before", "One new two three.", (4, 8)), ("insert_after", "One twonew  three.", (7, 11))],
)
async def test_an_insertion_leaves_what_is_selected_and_stands_before_or_after_it(
    served: Served, strategy: str, text: str, written: tuple[int, int]
) -> None:
    doc = await made(served, "One two three.")
    stream = await doc.stream(doc.edit("say new ", "two", strategy=strategy), CANVAS).rest()
    assert text_of(stream.task) == text
    complete = phases(stream)[-1]
    assert complete["written"] == {"start": written[0], "end": written[1]}
    assert complete["updatedContent"] == text[4 : 4 + len("two") + len("new ")]


@pytest.mark.parametrize("strategy", ["replace", "insert_before", "insert_after"])
@pytest.mark.parametrize("at", [0, 4, len(WORDS)])
async def test_an_empty_selection_is_a_place_to_insert_at(served: Served, strategy: str, at: int) -> None:
    doc = await made(served, WORDS)
    task = await doc.run(doc.edit("say new ", {"start": at, "end": at}, strategy=strategy))
    assert text_of(task) == f"{WORDS[:at]}new {WORDS[at:]}"


@every_way
@pytest.mark.parametrize("unit", ["utf16", "codepoint"])
async def test_both_units_name_the_same_place_behind_emoji(served: Served, way: Way, unit: str) -> None:
    doc = await made(served, EMOJI)
    selection = selected(EMOJI, "🎉 four", unit=unit, text="🎉 four")
    assert (selection["start"] == EMOJI.index("🎉")) == (unit == "codepoint")
    stream = await doc.stream(doc.edit("say 4 🎈🎈", selection), CANVAS, way=way).rest()
    assert text_of(stream.task) == EMOJI.replace("🎉 four", "4 🎈🎈")
    start, *_, complete = phases(stream)
    assert start["unit"] == unit
    assert start["selection"] == {"start": selection["start"], "end": selection["end"]}
    long = len("4 🎈🎈") if unit == "codepoint" else utf16("4 🎈🎈")
    assert complete["written"] == {"start": selection["start"], "end": selection["start"] + long}


async def test_without_a_unit_offsets_count_utf16(served: Served) -> None:
    doc = await made(served, EMOJI)
    selection = selected(EMOJI, "two")
    del selection["unit"]
    assert text_of(await doc.run(doc.edit("say 2", selection))) == EMOJI.replace("two", "2")


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ({"lineStart": 2}, "a\r\nx\r\nc"),
        ({"lineStart": 1, "lineEnd": 2}, "x\r\nc"),
        ({"lineStart": 2, "lineEnd": 3}, "a\r\nx"),
        ({"lineStart": 2, "lineEnd": 2, "start": 3, "end": 4}, "a\r\nx\r\nc"),
        ({"lineStart": 2, "lineEnd": 3, "start": 3, "end": 6}, "a\r\nx\r\nc"),
        ({"lineStart": 2, "lineEnd": 2, "start": 3, "end": 6}, "a\r\nx\r\nc"),
    ],
    ids=str,
)
async def test_lines_alone_name_a_place_and_agree_with_offsets(
    served: Served, lines: dict[str, Any], text: str
) -> None:
    doc = await made(served, "a\r\nb\r\nc")
    assert text_of(await doc.run(doc.edit("say x", lines))) == text


async def test_other_parts_the_name_and_the_types_stay(served: Served) -> None:
    doc = await made(served, "")
    doc = Doc(served, doc.context, "One two three.\n")
    await say(doc, "mix")
    before = await doc.now()
    task = await doc.run(doc.edit("say 2", "two"))
    assert task.status.state == COMPLETED
    after = await doc.now()
    texts = [part for part in before["parts"] if "text" in part]
    assert [part["text"] for part in texts] == ["One two three.\n"]
    texts[0]["text"] = "One 2 three.\n"
    assert after == before | {"version": before["version"] + 1}


# -------------------------------------------------------------------- the agentstack way


@every_way
@pytest.mark.parametrize("uris", [(), (AGENTSTACK,), (AGENTSTACK, CANVAS)], ids=len)
async def test_agentstack_metadata_is_an_edit_whatever_is_activated(
    served: Served, way: Way, uris: tuple[str, ...]
) -> None:
    doc = await made(served, EMOJI)
    start = utf16(EMOJI[: EMOJI.index("three")])
    given = {"start_index": start, "end_index": start + 5, "description": "say 3", "artifact_id": "doc"}
    stream = await doc.stream(with_metadata(doc.context, "say 3", {AGENTSTACK: given}), *uris, way=way).rest()
    assert text_of(stream.task) == EMOJI.replace("three", "3")
    told = ["start", "chunk", "complete"] if CANVAS in uris else []
    assert names(stream) == ["submitted", "working", *told, "replaced", "completed"]


async def test_our_own_metadata_wins_over_agentstacks(served: Served) -> None:
    doc = await made(served, WORDS)
    ours = {"op": "edit", "artifactId": "doc", "selection": selected(WORDS, "two")}
    theirs = {"start_index": 0, "end_index": 3, "description": "say 1", "artifact_id": "doc"}
    task = await doc.run(with_metadata(doc.context, "say 2", {CANVAS: ours, AGENTSTACK: theirs}))
    assert text_of(task) == WORDS.replace("two", "2")


# --------------------------------------------------------------------- the work of others


@every_way
async def test_a_quote_is_found_again_after_the_artifact_moved_on(served: Served, way: Way) -> None:
    doc = await made(served, WORDS)
    await doc.run(doc.operation("put", text="Zero.\n" + WORDS))
    stream = await doc.stream(
        doc.edit("say 5", selected(WORDS, "five", text="five"), baseVersion=1), CANVAS, way=way
    ).rest()
    assert await doc.read() == (3, "Zero.\n" + WORDS.replace("five", "5"))
    assert phases(stream)[-1]["selection"] == {"start": 26, "end": 30}


async def test_equal_quotes_are_told_apart_by_what_stands_around_them(served: Served) -> None:
    text = "".join(f"item {number}: todo\n" for number in range(10))
    doc = await made(served, text)
    await doc.run(doc.operation("put", text="A new beginning, of some length.\n" + text))
    start = text.index("todo", text.index("item 4"))
    selection = {"start": start, "end": start + 4, "text": "todo"}
    task = await doc.run(doc.edit("say done", selection, baseVersion=1))
    assert text_of(task).splitlines()[5:6] == ["item 4: done"]
    assert text_of(task).count("done") == 1


async def test_two_agents_edit_different_places_from_the_same_base_one_after_the_other(served: Served) -> None:
    doc = await made(served, WORDS)
    first = doc.edit("say a much longer second word", selected(WORDS, "two", text="two"), baseVersion=1)
    second = doc.edit("say 5", selected(WORDS, "five", text="five"), baseVersion=1)
    assert [(await doc.run(request)).status.state for request in (first, second)] == [COMPLETED] * 2
    both = WORDS.replace("two", "a much longer second word").replace("five", "5")
    assert await doc.read() == (3, both)
    assert await doc.versions() == [("agent", 0), ("agent", 1), ("agent", 2)]


async def test_two_agents_edit_different_places_at_the_same_time(served: Served) -> None:
    doc = await made(served, WORDS)
    streams = [
        doc.stream(doc.edit(f"slowly say {word} it is", selected(WORDS, word, text=word), baseVersion=1), CANVAS)
        for word in ("two", "five")
    ]
    for stream in streams:
        while "chunk" not in names(stream):
            await stream.next()
    assert await doc.read() == (1, WORDS)
    served.gate.open()
    served.gate.let(1)  # for the second of them
    await asyncio.gather(*(stream.rest() for stream in streams))
    assert [stream.task.status.state for stream in streams] == [COMPLETED] * 2
    assert await doc.read() == (3, WORDS.replace("two", "two it is").replace("five", "five it is"))
    assert [names(stream).count("abort") for stream in streams] == [0, 0]


async def test_an_edit_lands_where_its_passage_has_moved_to_while_it_was_written(served: Served) -> None:
    doc = await made(served, WORDS)
    slow = doc.stream(doc.edit("slowly say the fifth", selected(WORDS, "five", text="five")), CANVAS)
    while "chunk" not in names(slow):
        await slow.next()
    assert (await doc.run(doc.edit("say the second", "two"))).status.state == COMPLETED
    served.gate.open()
    await slow.rest()
    assert await doc.read() == (3, WORDS.replace("two", "the second").replace("five", "the fifth"))
    start, *_, complete = phases(slow)
    assert (start["selection"]["start"], complete["selection"]["start"]) == (20, 20 + len("the second") - len("two"))


async def test_a_person_types_elsewhere_while_one_of_equal_lines_is_rewritten(served: Served) -> None:
    rows = "# Tasks\n\n- open\n- open\n- open\n\nThe end.\n"
    doc = await made(served, rows)
    slow = doc.stream(doc.edit("slowly say - done", {"lineStart": 4}), CANVAS)
    while "chunk" not in names(slow):
        await slow.next()
    for n, text in enumerate((rows.replace("Tasks", "My tasks"), rows.replace("The end", "That is all")), 1):
        put = await doc.run(doc.operation("put", text=text, baseVersion=1, merge=True))
        assert (put.status.state, (await doc.read())[0]) == (COMPLETED, n + 1)
    served.gate.open()
    await slow.rest()
    assert slow.task.status.state == COMPLETED
    assert await doc.read() == (4, "# My tasks\n\n- open\n- done\n- open\n\nThat is all.\n")


@every_way
async def test_a_second_edit_of_the_same_place_is_rejected_and_told_the_current_version(
    served: Served, way: Way
) -> None:
    doc = await made(served, WORDS)
    selection = selected(WORDS, "five", text="five")
    assert (await doc.run(doc.edit("say 5", selection, baseVersion=1), way)).status.state == COMPLETED
    task = await doc.run(doc.edit("say V", selection, baseVersion=1), way)
    assert task.status.state == REJECTED
    assert "version 1" in said(task.status)
    assert "version 2" in said(task.status)
    assert rejection_of(task) == {CANVAS: {"artifactId": "doc", "artifactVersion": 2}}
    found = await served.client(*way).get_task(pb.GetTaskRequest(id=task.id))
    assert rejection_of(found) == rejection_of(task)
    stream = await doc.stream(doc.edit("say V", selection, baseVersion=1), CANVAS, way=way).rest()
    assert (names(stream)[-1], phases(stream)) == ("rejected", [])
    assert {"artifactId": "doc", "artifactVersion": 2}.items() <= canvas_of(stream.seen[-1]).items()
    assert await doc.read() == (2, WORDS.replace("five", "5"))
    assert len(served.model.requests) - 2 == 1  # two for the artifact; the rejected ones were not asked for


async def test_two_agents_at_the_same_place_at_the_same_time_one_lands_and_the_other_is_rejected(
    served: Served,
) -> None:
    doc = await made(served, WORDS)
    streams = [
        doc.stream(doc.edit(f"slowly say {word} of them", selected(WORDS, "five", text="five"), baseVersion=1), CANVAS)
        for word in ("cinq", "fünf")
    ]
    for stream in streams:
        while "chunk" not in names(stream):
            await stream.next()
    served.gate.open()
    served.gate.let(1)  # for the second of them
    await asyncio.gather(*(stream.rest() for stream in streams))
    landed, lost = sorted(streams, key=lambda stream: stream.task.status.state)
    assert (landed.task.status.state, lost.task.status.state) == (COMPLETED, REJECTED)
    assert names(lost)[-3:] == ["abort", "replaced", "rejected"]
    assert rejection_of(lost.task) == {CANVAS: {"artifactId": "doc", "artifactVersion": 2}}
    assert text_of(lost.task) == text_of(landed.task) == (await doc.read())[1]
    assert (await doc.read())[0] == 2


async def test_while_a_conversation_writes_the_artifact_an_edit_of_it_is_told_to_try_again(served: Served) -> None:
    doc = await made(served, WORDS)
    writing = Stream(served.client().send_message(asking("slowly append Ten.", context=doc.context)))
    await writing.next()
    served.gate.let(1)
    while not (await doc.now())["open"]:
        served.gate.reached.clear()
        served.gate.let(1)
        await served.gate.reached.wait()
    task = await doc.run(doc.edit("say 2", "two"))
    assert task.status.state == REJECTED
    assert "being written" in said(task.status)
    assert rejection_of(task) == {CANVAS: {"artifactId": "doc", "artifactVersion": 1, "busy": True}}
    served.gate.open()
    await writing.rest()
    assert await doc.read() == (2, WORDS + "Ten.")


# ------------------------------------------------------------------ cancels and breaks


@every_way
async def test_a_cancel_in_the_middle_leaves_the_artifact_as_it_was_and_tells_all_watchers(
    served: Served, way: Way
) -> None:
    doc = await made(served, WORDS)
    sender = doc.stream(doc.edit("slowly say 0123456789", "five"), CANVAS, way=way)
    task_id = (await sender.next()).task.id
    while "chunk" not in names(sender):
        await sender.next()
    plain, late = watching(served, task_id, way=way), watching(served, task_id, CANVAS, way=way)
    for watcher in (plain, late):
        await watcher.next()
    request = pb.CancelTaskRequest(id=task_id)
    canceled = await served.client(*way).cancel_task(request, context=activating(CANVAS))
    assert canceled.status.state == pb.TASK_STATE_CANCELED
    assert (
        canceled.metadata
        == (await served.client(*way).get_task(pb.GetTaskRequest(id=task_id), context=activating(CANVAS))).metadata
    )
    for watcher in (sender, plain, late):
        await watcher.rest()
    assert names(sender)[-3:] == names(late)[-3:] == ["abort", "replaced", "canceled"]
    assert names(plain) == ["working", "replaced", "canceled"]
    assert [text_of(watcher.task) for watcher in (sender, plain, late)] == [WORDS] * 3
    assert folded(late.seen).seen() == folded(sender.seen).seen()
    assert await doc.read() == (1, WORDS)
    assert served.model.speaking == 0


@pytest.mark.parametrize("times", [1, 2])
async def test_a_model_that_breaks_in_the_middle_is_asked_again(served: Served, times: int) -> None:
    doc = await made(served, WORDS)
    stream = await doc.stream(doc.edit(f"break {times} times, then say 0123456789", "five"), CANVAS).rest()
    tries = ["start", "chunk", "chunk", "abort"] * times
    whole = ["start", "chunk", "chunk", "chunk", "complete"]
    assert names(stream) == ["submitted", "working", *tries, *whole, "replaced", "completed"]
    assert len({edit["id"] for edit in phases(stream)}) == times + 1
    assert await doc.read() == (2, WORDS.replace("five", "0123456789"))


async def test_a_model_that_breaks_three_times_fails_the_task_and_changes_nothing(served: Served) -> None:
    doc = await made(served, WORDS)
    stream = await doc.stream(doc.edit("break 3 times, then say 0123456789", "five"), CANVAS).rest()
    tries = ["start", "chunk", "chunk", "abort"] * 3
    assert names(stream) == ["submitted", "working", *tries, "replaced", "failed"]
    assert said(stream.task.status) == "The model is overloaded. Try again in a few minutes."
    assert text_of(stream.task) == WORDS
    assert await doc.read() == (1, WORDS)


async def test_an_error_that_would_come_again_fails_the_task_at_once(served: Served) -> None:
    doc = await made(served, WORDS)
    stream = await doc.stream(doc.edit("fail", "five"), CANVAS).rest()
    assert names(stream) == ["submitted", "working", "start", "chunk", "abort", "replaced", "failed"]
    assert await doc.read() == (1, WORDS)


async def test_a_client_without_the_extension_sees_no_flicker_when_a_model_breaks(served: Served) -> None:
    doc = await made(served, WORDS)
    stream = await doc.stream(doc.edit("break 2 times, then say 0123456789", "five")).rest()
    assert names(stream) == ["submitted", "working", "replaced", "completed"]


async def test_an_edit_takes_no_further_messages_and_goes_on(served: Served) -> None:
    doc = await made(served, WORDS)
    task = await doc.run(doc.edit("slowly say 0123456789", "five", now=True))
    await served.gate.reached.wait()
    with pytest.raises(UnsupportedOperationError):
        await doc.run(asking("say more", context=doc.context, task=task.id))
    stream = watching(served, task.id)
    await stream.next()
    served.gate.open()
    await stream.rest()
    assert text_of(stream.task) == WORDS.replace("five", "0123456789")


# ------------------------------------------------------------- edits in a conversation


async def until_written(served: Served, task_id: str) -> None:
    """Let the model write until some text of an edit is there."""
    request, client = pb.GetTaskRequest(id=task_id), served.client()
    while True:
        await served.gate.reached.wait()
        told = canvas_of(await client.get_task(request, context=activating(CANVAS)))
        if any(edit["text"] for edit in told["openEdits"]):
            return
        served.gate.let(1)


def without_labels(stream: Stream) -> list[str]:
    return [name for name in names(stream) if name != "working"]


@every_way
async def test_an_edit_by_the_models_tool_streams_to_who_knows_canvas_and_is_one_replacement_to_others(
    served: Served, way: Way
) -> None:
    doc = await made(served, WORDS)
    stream = await doc.stream(
        asking("change five to the fifth of them all", context=doc.context), CANVAS, way=way
    ).rest()
    start, *chunks, complete = phases(stream)
    assert without_labels(stream) == [
        "submitted",
        "start",
        *["chunk"] * len(chunks),
        "complete",
        "replaced",
        "completed",
    ]
    assert len(chunks) > 1
    assert "".join(edit["chunk"] for edit in chunks) == complete["updatedContent"] == "the fifth of them all"
    assert (start["selection"], start["baseVersion"]) == ({"start": 20, "end": 24}, 1)
    changed = WORDS.replace("five", "the fifth of them all")
    assert text_of(stream.task) == changed
    assert folded(stream.seen).versions == {"doc": {"artifactVersion": 2, "author": "agent"}}
    plain = await doc.stream(asking("change six to 6", context=doc.context), way=way).rest()
    assert without_labels(plain) == ["submitted", "replaced", "completed"]
    assert said(plain.task.status) == "Changed."
    assert "urn:a2a-canvas" not in "".join(MessageToJson(event) for event in plain.seen)
    assert await doc.read() == (3, changed.replace("six", "6"))


async def test_who_joins_during_an_edit_by_the_tool_gets_its_beginning_too(served: Served) -> None:
    doc = await made(served, WORDS)
    sender = doc.stream(asking("slowly change five to the fifth of them all", context=doc.context), CANVAS)
    task_id = (await sender.next()).task.id
    await until_written(served, task_id)
    late = watching(served, task_id, CANVAS)
    (edit,) = canvas_of(await late.next())["openEdits"]
    assert "the fifth of them all".startswith(edit["text"])
    served.gate.open()
    for watcher in (sender, late):
        await watcher.rest()
    assert folded(late.seen).seen() == folded(sender.seen).seen()
    assert await doc.read() == (2, WORDS.replace("five", "the fifth of them all"))


async def test_a_cancel_during_an_edit_by_the_tool_leaves_the_artifact_as_it_was(served: Served) -> None:
    doc = await made(served, WORDS)
    sender = doc.stream(asking("slowly change five to the fifth of them all", context=doc.context), CANVAS)
    task_id = (await sender.next()).task.id
    await until_written(served, task_id)
    await served.client().cancel_task(pb.CancelTaskRequest(id=task_id))
    await sender.rest()
    assert names(sender)[-3:] == ["abort", "replaced", "canceled"]
    assert text_of(sender.task) == WORDS
    assert await doc.read() == (1, WORDS)


# -------------------------------------------------------------------------- activation


def body(doc: Doc) -> dict[str, Any]:
    request: dict[str, Any] = MessageToDict(doc.edit("say 2", "two"))
    return request


@pytest.mark.parametrize("path", ["/", "/rest/message:stream"])
@pytest.mark.parametrize("uris", [(CANVAS,), (AGENTSTACK,), (AGENTSTACK, CANVAS), (CANVAS, TURN)], ids=len)
async def test_http_says_in_its_header_what_was_activated(served: Served, path: str, uris: tuple[str, ...]) -> None:
    doc = await made(served, WORDS)
    envelope = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": body(doc)}
    response = await served.http.post(
        path,
        json=envelope if path == "/" else body(doc),
        headers={"A2A-Version": "1.0", "A2A-Extensions": f"urn:unknown, {', '.join(uris)}"},
    )
    assert response.headers["A2A-Extensions"] == ", ".join(sorted(uris))
    assert ('"phase": "start"' in response.text or '"phase":"start"' in response.text) == (CANVAS in uris)


@pytest.mark.parametrize("uris", [(CANVAS,), (AGENTSTACK,), (AGENTSTACK, CANVAS)], ids=len)
async def test_grpc_says_in_its_initial_metadata_what_was_activated(served: Served, uris: tuple[str, ...]) -> None:
    doc = await made(served, WORDS)
    async with grpc.aio.insecure_channel(served.grpc) as channel:
        metadata = [("a2a-extensions", f"urn:unknown, {', '.join(uris)}")]
        call = A2AServiceStub(channel).SendStreamingMessage(doc.edit("say 2", "two"), metadata=metadata)
        assert dict(await call.initial_metadata())["a2a-extensions"] == ", ".join(sorted(uris))
        assert ("updatedContent" in str([event async for event in call])) == (CANVAS in uris)


# ------------------------------------------------------------------------ suggestions


@every_way
async def test_a_suggested_edit_streams_to_a_suggestion_that_can_be_accepted(served: Served, way: Way) -> None:
    doc = await made(served, WORDS)
    stream = await doc.stream(doc.edit("say 2", "two", mode="suggest"), CANVAS, way=way).rest()
    events = [fields["edit"] for fields in map(canvas_of, stream.seen) if "edit" in fields]
    assert (events[0]["mode"], events[-1]["phase"]) == ("suggest", "suggested")
    assert (await doc.read())[0] == 1
    accepted = await doc.run(doc.operation("accept", annotationId=events[-1]["annotationId"]), way)
    assert accepted.status.state == COMPLETED
    assert await doc.read() == (2, WORDS.replace("two", "2"))


async def test_a_client_without_extensions_is_told_of_the_suggestion(served: Served) -> None:
    doc = await made(served, WORDS)
    task = await doc.run(doc.edit("say 2", "two", mode="suggest"))
    assert "".join(part.text for part in task.status.message.parts) == (
        "Suggested a change to line 1 of doc.txt (suggestion 1)."
    )
    assert list(task.artifacts) == []


async def test_where_agents_suggest_a_message_and_an_edit_end_in_suggestions(served: Served) -> None:
    doc = await made(served, WORDS)
    patched = await served.http.patch(f"/artifacts/{doc.context}", json={"agentsSuggest": True})
    assert patched.json()["agentsSuggest"] is True
    await doc.run(doc.edit("say 2", "two"))
    await say(doc, f"make doc doc.txt text/plain\n{WORDS.replace('five', '5')}")
    assert await doc.read() == (1, WORDS)
    accepted = await doc.run(doc.operation("accept-all", by="agent"))
    assert accepted.status.state == COMPLETED
    assert await doc.read() == (2, WORDS.replace("two", "2").replace("five", "5"))


REWRITTEN = "one 2 three 4 and so on, in other words than those that were there"


async def where_agents_suggest(served: Served) -> Doc:
    doc = await made(served, WORDS)
    await served.http.patch(f"/artifacts/{doc.context}", json={"agentsSuggest": True})
    return doc


def edit_text(stream: Stream) -> str:
    """The text that the one edit of a stream shows so far: `old[:start] + chunks + old[end:]`."""
    started, *others = phases(stream)
    place = started["selection"]
    grown = "".join(each["chunk"] for each in others if each["phase"] == "chunk")
    return WORDS[: int(place["start"])] + grown + WORDS[int(place["end"]) :]


@every_way
async def test_where_agents_suggest_a_rewrite_is_seen_as_it_grows_and_is_no_change_of_the_artifact(
    served: Served, way: Way
) -> None:
    doc = await where_agents_suggest(served)
    writing = Stream(
        served.client(*way).send_message(
            asking(f"slowly rewrite {REWRITTEN}", context=doc.context), context=activating(CANVAS)
        )
    )
    task_id = (await writing.next()).task.id
    served.gate.let(31)
    while "chunk" not in names(writing):
        await writing.next()
    assert REWRITTEN.startswith(edit_text(writing))
    plain, late = watching(served, task_id, way=way), watching(served, task_id, CANVAS, way=way)
    for watcher in (plain, late):
        await watcher.next()
    served.gate.open()
    for watcher in (writing, plain, late):
        await watcher.rest()
    started, *_, ended = phases(writing)
    assert (started["mode"], ended["phase"]) == ("suggest", "suggested")
    assert edit_text(writing) == REWRITTEN
    assert folded(late.seen).seen() == folded(writing.seen).seen()
    for stream in (writing, plain, late):
        assert not any(event.HasField("artifact_update") for event in stream.seen)
    assert await doc.read() == (1, WORDS)
    await doc.run(doc.operation("accept-all", by="agent"))
    assert await doc.read() == (2, REWRITTEN)


async def test_a_rewrite_that_is_canceled_is_taken_back_and_suggests_nothing(served: Served) -> None:
    doc = await where_agents_suggest(served)
    request = asking(f"slowly rewrite {REWRITTEN}", context=doc.context)
    writing = Stream(served.client().send_message(request, context=activating(CANVAS)))
    task_id = (await writing.next()).task.id
    served.gate.let(31)
    while "chunk" not in names(writing):
        await writing.next()
    await served.client().cancel_task(pb.CancelTaskRequest(id=task_id), context=activating(CANVAS))
    await writing.rest()
    assert names(writing)[-2:] == ["abort", "canceled"]
    listed = await served.http.get(f"/artifacts/{doc.context}/{doc.artifact_id}/annotations")
    assert (listed.json()["total"], await doc.read()) == (0, (1, WORDS))
