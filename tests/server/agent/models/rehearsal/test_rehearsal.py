"""The rehearsal model plays its script at the pace of a model, and is open about what it is."""

import asyncio
import itertools
import json
import re
import shlex

import pytest

from a2a_canvas.server.agent.model import (
    LLM,
    BlockStart,
    EditPrompt,
    InputDelta,
    MessageStart,
    MessageStop,
    ModelMessage,
    ModelRequest,
    ModelText,
    NothingToChange,
    TextDelta,
    ToolResult,
    ToolSpec,
    ToolUse,
)
from a2a_canvas.server.agent.models.rehearsal import NOTICE, START_NOTICE
from a2a_canvas.server.agent.models.rehearsal.rehearsal import SCRIPT, Rehearsal
from a2a_canvas.tools.registry import TOOLS
from tests.extreme_values import deep

HAIKU = "write a haiku about rain"
NO_RULE = "I have no rule for that"


def user(*content: object) -> ModelMessage:
    return ModelMessage("user", tuple(ModelText(c) if isinstance(c, str) else c for c in content))


def assistant(*content: object) -> ModelMessage:
    return ModelMessage("assistant", tuple(ModelText(c) if isinstance(c, str) else c for c in content))


async def said(*messages: ModelMessage, edit: EditPrompt | None = None, model: LLM | None = None) -> str:
    model = model or Rehearsal(delay=0)
    events = [event async for event in model.stream(ModelRequest("", messages, edit=edit))]
    return "".join(event.text for event in events if isinstance(event, TextDelta))


async def calls(*messages: ModelMessage) -> list[tuple[str, object]]:
    events = [event async for event in Rehearsal(delay=0).stream(ModelRequest("", messages))]
    names = [event.name for event in events if isinstance(event, BlockStart) and event.kind == "tool_use"]
    written = "".join(event.partial_json for event in events if isinstance(event, InputDelta))
    return list(zip(names, [json.loads(written)] if written else [], strict=True))


WROTE = assistant(ToolUse("t", "artifact_update", {}))


def test_who_starts_the_server_is_told_how_to_get_a_real_model() -> None:
    assert "not a language model" in START_NOTICE
    assert "ANTHROPIC_API_KEY" in START_NOTICE
    assert "--model" in START_NOTICE


def test_the_first_reply_says_how_to_get_a_real_model() -> None:
    assert "not a language model" in NOTICE
    assert "ANTHROPIC_API_KEY" in NOTICE
    assert "--model ollama:" in NOTICE


def test_who_reads_a_reply_may_have_no_terminal() -> None:
    words = SCRIPT.read_text()
    said = re.findall(r"^\s*(?:- )?(?:text|say|question|reason): .*", words, re.MULTILINE)
    assert not [line for line in said if re.search(r"a2a-canvas [a-z]|--model|ANTHROPIC", line)]


async def test_the_first_reply_after_a_start_alone_says_that_this_is_no_language_model() -> None:
    model = Rehearsal(delay=0)
    first = await said(user("hi"), model=model)
    assert first.startswith("Hello")
    assert first.endswith(NOTICE)
    assert NOTICE not in await said(user("hi"), assistant(first), user("hi"), model=model)
    assert NOTICE not in await said(user("another conversation"), model=model)
    assert NOTICE in await said(user("after a restart"))


async def test_the_notice_ends_the_last_text_of_a_turn_not_what_is_said_before_a_call() -> None:
    model = Rehearsal(delay=0)
    assert NOTICE not in await said(user(HAIKU), model=model)
    assert NOTICE in await said(user(HAIKU), WROTE, user(ToolResult("t", "ok")), model=model)


@pytest.mark.parametrize(("text", "name"), [("ask me my name", "ask_user"), ("decline this", "decline_task")])
async def test_the_notice_ends_a_question_or_refusal_that_comes_first(text: str, name: str) -> None:
    [(called, given)] = await calls(user(text))
    assert called == name
    assert NOTICE in str(given)


async def test_an_answer_is_used() -> None:
    asked = assistant(ToolUse("q", "ask_user", {"question": "Name?"}))
    reply = await said(user("ask me my name"), asked, user(ToolResult("q", "Kim")))
    assert reply == f"You answered: Kim\n\n{NOTICE}"


async def test_the_help_comes_once_in_a_conversation() -> None:
    model = Rehearsal(delay=0)
    first = await said(user("what can you do?"), model=model)
    assert "**Versions:**" in first
    again = await said(user("what can you do?"), assistant(first), user("help"), model=model)
    assert again == "I am still the same script: the list of what I can do is further up in this conversation."


async def test_without_a_rule_it_tells_once_what_to_try() -> None:
    first = await said(user("mumble"))
    assert first.startswith("I am a script")
    assert (await said(user("mumble"), assistant(first), user("mumble"))).startswith(NO_RULE)


@pytest.mark.parametrize("message", [user(), user(""), user("x" * 100_000)])
async def test_every_message_has_an_answer(message: ModelMessage) -> None:
    assert await said(message)


async def test_a_message_that_comes_while_it_works_is_what_it_works_on_next() -> None:
    [(name, given)] = await calls(user(HAIKU), WROTE, user(ToolResult("t", "ok"), "write a haiku about snow"))
    assert (name, given["artifact"]["artifact_id"]) == ("artifact_update", "snow")


async def test_a_failed_call_ends_the_turn_with_what_the_tool_said() -> None:
    failed = user(ToolResult("t", "the disk is full", is_error=True))
    assert await said(user(HAIKU), WROTE, failed) == "That did not work: the disk is full"


def edit(selected: str, instruction: str, language: str = "markdown") -> EditPrompt:
    return EditPrompt("a.md", language, "", selected, "", instruction, "replace")


@pytest.mark.parametrize(
    ("instruction", "new"),
    [
        ("make it shorter", "Tea is hot and good.\n"),
        ("longer", "Tea is hot and good. Coffee isn't. An example helps here: one place, one day, one person.\n"),
        ("more formal, please", "Tea is hot and good. Coffee is not.\n"),
        ("change it to upper case", "TEA IS HOT AND GOOD. COFFEE ISN'T.\n"),
        ("replace tea by milk", "Milk is hot and good. Coffee isn't.\n"),
        ('rename "coffee" to "cocoa"', "Tea is hot and good. Cocoa isn't.\n"),
        ('remove the word "hot and "', "Tea is good. Coffee isn't.\n"),
        ('change it to "Hi."', "Hi.\n"),
        ('add "And more."', "Tea is hot and good. Coffee isn't. And more.\n"),
        ("delete it", "<delete/>"),
        ("“Hello.”", "Hello.\n"),
    ],
)
async def test_a_selection_is_edited_by_the_verbs_for_documents(instruction: str, new: str) -> None:
    assert await said(user(instruction), edit=edit("Tea is hot and good. Coffee isn't.\n", instruction)) == new


@pytest.mark.parametrize(
    ("instruction", "selected", "new"),
    [
        ("formal", "It was a lot of work. Lots of it.", "It was a great deal of work. A great deal of it."),
        ("formal", "Nobody asked for it, maybe.", "No one requested it, perhaps."),
        ("formal", "Hey Kim, I can't try to fix it right now!", "Dear Kim, I cannot attempt to fix it at present."),
        ("simpler", "It demonstrated that he requires numerous tools.", "It showed that he needs many tools."),
        ("simpler", "Commenced. Required. Utilizing it.", "Started. Needed. Using it."),
        (
            "simpler",
            "One last cup, and the train, and it left; it rained.",
            "One last cup, and the train. And it left. It rained.",
        ),
        ("friendlier", "Dear Kim,\n\nI am glad that it is not late.", "Hi Kim,\n\nI'm glad that it's not late."),
        ("fix the grammar", "1. mix e.g. salt etc. with it. then wait", "1. mix e.g. salt etc. with it. Then wait"),
        ("fix the grammar", "i dont eat a egg or an banana.", "I don't eat an egg or a banana."),
        ("fix the grammar", "He had had tea, and so  so did did I .", "He had had tea, and so did I."),
    ],
)
async def test_words_are_exchanged_for_others(instruction: str, selected: str, new: str) -> None:
    assert await said(user(instruction), edit=edit(selected, instruction)) == new


async def test_what_is_inserted_knows_what_is_around_it() -> None:
    instruction = "add a section on milk"
    prompt = EditPrompt("a.md", "markdown", "# Tea\n\n", "", "It is hot.\n", instruction, "insert_before")
    assert (await said(user(instruction), edit=prompt)).startswith("## Milk\n\n[What milk has to do with “Tea”, in")


async def test_functions_become_async() -> None:
    prompt = edit("    def f(x):\n        return x\n", "make this function async", "python")
    assert await said(user("make this function async"), edit=prompt) == "    async def f(x):\n        return x\n"


@pytest.mark.parametrize(
    ("instruction", "reason"),
    [
        ("translate to German", "I cannot translate"),
        ("make it rhyme", NO_RULE),
        ("a haiku about rain, please", NO_RULE),
        ("replace milk by water", "I found nothing to change in this passage"),
        ("undo that", "I found nothing to change in this passage"),
    ],
)
async def test_an_edit_that_it_cannot_make_is_answered_with_a_sentence(instruction: str, reason: str) -> None:
    with pytest.raises(NothingToChange, match=reason) as answered:
        await said(user(instruction), edit=edit("Tea.\n", instruction))
    assert re.search("so nothing is changed|^I found nothing to change", str(answered.value))


# -------------------------------------------------------------------- streaming


async def test_it_streams_in_small_pieces_with_fresh_ids() -> None:
    ids = map("id{}".format, itertools.count())
    llm: LLM = Rehearsal(delay=0, new_id=lambda: next(ids))
    assert (llm.name, llm.thinking) == ("rehearsal", "delta")
    runs = [[event async for event in llm.stream(ModelRequest("", (user(HAIKU),)))] for _ in range(2)]
    assert max(len(event.partial_json) for event in runs[0] if isinstance(event, InputDelta)) == 6
    assert [e.tool_use_id for run in runs for e in run if isinstance(e, BlockStart) and e.name] == ["id0", "id1"]
    assert isinstance(runs[0][-1], MessageStop)


async def test_it_keeps_the_pace_of_a_model() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    events = [event async for event in Rehearsal(sleep=sleep).stream(ModelRequest("", (user(HAIKU),)))]
    assert set(slept) == {0.02}
    assert len(slept) > 30
    assert events[0] == MessageStart()


async def test_closing_the_stream_early_leaves_nothing_behind() -> None:
    stream = Rehearsal(delay=1000).stream(ModelRequest("", (user(HAIKU),)))
    assert await anext(stream) == MessageStart()
    await stream.aclose()
    assert await anext(stream, None) is None
    assert asyncio.all_tasks() == {asyncio.current_task()}


# ---------------------------------------------------------------------------- the agent's tools

TIDES = ToolSpec("high_water", "", {"properties": {"port": {"type": "string"}, "days": {}}, "required": ["port"]})
ASKED = user("call high_water port=Brest days=3")
CALLED = assistant(ToolUse("t", "high_water", {}))


async def with_tools(*messages: ModelMessage, model: LLM | None = None) -> tuple[str, dict[str, object]]:
    """What it says, and the input of what it calls."""
    tools = (TIDES, *(ToolSpec(tool.name, "", {}) for tool in TOOLS))
    model = model or Rehearsal(delay=0)
    events = [event async for event in model.stream(ModelRequest("", messages, tools))]
    written = "".join(event.partial_json for event in events if isinstance(event, InputDelta))
    return "".join(event.text for event in events if isinstance(event, TextDelta)), json.loads(written or "{}")


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("call high_water port=Brest", {"port": "Brest"}),
        ("Please call high_water port='Le Havre' days=3", {"port": "Le Havre", "days": 3}),
        ("call high_water port=5", {"port": "5"}),
        ('call high_water {"port": "Brest"}', {"port": "Brest"}),
    ],
)
async def test_a_tool_of_the_agent_is_called_by_its_name(text: str, given: dict[str, object]) -> None:
    assert await with_tools(user(text)) == ("", given)


async def test_the_reply_is_what_the_tool_returned() -> None:
    said, _ = await with_tools(ASKED, CALLED, user(ToolResult("t", "At five.")))
    assert said == f"At five.\n\n{NOTICE}"
    failed, _ = await with_tools(ASKED, CALLED, user(ToolResult("t", "No port.", is_error=True)))
    assert failed == "That did not work: No port."


@pytest.mark.parametrize(
    ("outcome", "reply"),
    [
        (ToolResult("t", "At five."), f"At five.\n\n{NOTICE}"),
        (ToolResult("t", "Not approved.", is_error=True), "That did not work: Not approved."),
        (ToolResult("t", "No boat. Do without it, or tell the user.", is_error=True), "That did not work: No boat."),
    ],
)
async def test_what_the_user_has_answered_to_a_tool_is_no_message_of_its_own(outcome: ToolResult, reply: str) -> None:
    answer = (ModelText('[A tool asked the user: "May I?" The answer:]', note=True), ModelText("yes", note=True))
    assert (await with_tools(ASKED, CALLED, user(outcome, *answer)))[0] == reply


@pytest.mark.parametrize("given", ["Brest", "{", "'a", f'{{"port": {deep(100_000)}}}'], ids=lambda given: given[:9])
async def test_a_call_that_cannot_be_read_is_told_how_it_would_be(given: str) -> None:
    said, called = await with_tools(user(f"call high_water {given}"))
    assert "“call high_water port=…”" in said
    assert not called


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("call hi_water port=Brest", "There is no tool hi_water; did you mean high_water?"),
        ("call high_waters", "There is no tool high_waters; did you mean high_water?"),
        ("call me tomorrow", ""),
    ],
)
async def test_a_tool_that_it_nearly_has_is_asked_about(text: str, reply: str) -> None:
    said, given = await with_tools(user(text))
    assert ("did you mean" in said, said.startswith(reply), given) == (bool(reply), True, {})


@pytest.mark.parametrize(
    ("pairs", "call"),
    [
        ("port=Saint Malo", "'call high_water port=\"Saint Malo\"'"),
        ("port=Saint Malo days=3", "'call high_water port=\"Saint Malo\" days=3'"),
        ('port=a"b c', "'call high_water port=\"ab c\"'"),
    ],
)
async def test_quotes_that_a_shell_has_taken_are_told(pairs: str, call: str) -> None:
    said, given = await with_tools(user(f"call high_water {pairs}"))
    assert f"send {call}\n" in said
    assert not given
    [words] = shlex.split(call)
    assert (await with_tools(user(words)))[1]["port"] == shlex.split(words)[2].removeprefix("port=")


@pytest.mark.parametrize("text", ["what time is it, and when is high water in Brest?", "hi", "qwertz"])
async def test_its_first_reply_and_each_without_a_rule_says_how_to_call_the_tools(text: str) -> None:
    how = "I call one if you say so: “call high_water port=…”."
    model = Rehearsal(delay=0)
    first, _ = await with_tools(user(text), model=model)
    assert how in first
    assert "high_water" not in await said(user(text))
    later, _ = await with_tools(user("hi"), assistant(first), user(text), model=model)
    assert (how in later) is (text == "qwertz")
    assert NOTICE not in later
