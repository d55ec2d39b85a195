"""`script:FILE.yaml`: a model that says what a file tells it to, and goes on where the conversation stands."""

import asyncio
import itertools
import json

import pytest

from a2a_canvas.server.agent.edit.edit_prompt import edit_request
from a2a_canvas.server.agent.model import (
    LLM,
    NOT_ASKED,
    UNANSWERED,
    Attachment,
    BlockStart,
    BlockStop,
    EditPrompt,
    InputDelta,
    MessageStart,
    MessageStop,
    ModelError,
    ModelMessage,
    ModelRequest,
    ModelText,
    NothingToChange,
    SignatureDelta,
    StopReasonDelta,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolResult,
    ToolUse,
)
from a2a_canvas.server.agent.models.provider_errors import FOR_USERS
from a2a_canvas.server.agent.models.script import ScriptedModel, ScriptError

SCRIPT = """
rules:
  - match: {text: '^write (?P<n>\\d+) of (?P<what>\\w+)'}
    rounds:
      - thinking: "I plan {n} {what} {other}."
        text: "Here it comes."
        tools:
          - name: artifact_update
            input:
              append: false
              artifact: {artifact_id: "{what}", parts: [{kind: text, text: {repeat: "{what} ", times: "{n}"}}]}
          - {name: artifact_list}
        chunk: "{n}"
      - tools: [{name: ask_user, input: {question: "Enough?"}}]
      - text: "Done with {what}."
  - match: {text: hello, message_id: '^m-(?P<id>.*)$'}
    rounds: [{text: "Hello, {id}."}]
  - match: {text: '^decline'}
    rounds: [{tools: [{name: decline_task, input: {reason: no}}]}, {text: never}]
  - match: {text: '^once'}
    rounds: [{tools: [{name: artifact_list}]}]
  - match: {text: hello}
    rounds: [{text: "Hello, you."}]
"""


def user(*content, message_id=""):
    return ModelMessage("user", tuple(ModelText(c) if isinstance(c, str) else c for c in content), message_id)


def assistant(*content):
    return ModelMessage("assistant", tuple(ModelText(c) if isinstance(c, str) else c for c in content))


def call(name, number=0):
    return ToolUse(f"{name}-{number}", name, {})


def done(name, number=0, content="ok", is_error=False):
    return ToolResult(f"{name}-{number}", content, is_error)


@pytest.fixture
def model(tmp_path):
    def load(text=SCRIPT, **seams):
        file = tmp_path / "s.yaml"
        file.write_text(text, encoding="utf-8")
        numbers = itertools.count(1)
        return ScriptedModel(file, **{"new_id": lambda: f"id{next(numbers)}", **seams})

    return load


async def ask(llm, *messages):
    return [event async for event in llm.stream(ModelRequest("", messages))]


def text_of(events):
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def calls_of(events):
    inputs = {e.llm_index: "" for e in events if isinstance(e, BlockStart) and e.kind == "tool_use"}
    for event in events:
        if isinstance(event, InputDelta):
            inputs[event.llm_index] += event.partial_json
    names = {e.llm_index: e.name for e in events if isinstance(e, BlockStart)}
    return [(names[index], json.loads(written)) for index, written in inputs.items()]


FIRST = user("write 3 of tea")
BOTH_CALLS = assistant(Thinking("…"), "Here it comes.", call("artifact_update"), call("artifact_list"))
BOTH_RESULTS = user(done("artifact_update"), done("artifact_list"))
QUESTION = assistant(call("ask_user"))
ANSWER = user(done("ask_user", content="yes"))


# ------------------------------------------------------------------ one answer


async def test_a_round_is_said_in_the_order_thinking_text_tools(model) -> None:
    events = await ask(model(), FIRST)
    kinds = [kind for kind, _ in itertools.groupby(map(type, events))]
    thinking = [BlockStart, ThinkingDelta, SignatureDelta, BlockStop]
    tool = [BlockStart, InputDelta, BlockStop]
    assert kinds == [
        MessageStart,
        *thinking,
        BlockStart,
        TextDelta,
        BlockStop,
        *tool,
        *tool,
        StopReasonDelta,
        MessageStop,
    ]
    assert [e.llm_index for e in events if isinstance(e, BlockStart)] == [0, 1, 2, 3]
    assert events[-1].stop_reason == events[-2].stop_reason == "tool_use"
    assert events[-1].usage.output_tokens > 0


async def test_groups_are_filled_into_strings_and_numbers_and_other_braces_stay(model) -> None:
    events = await ask(model(), FIRST)
    thinking = [event.text for event in events if isinstance(event, ThinkingDelta)]
    assert "".join(thinking) == "I plan 3 tea {other}."
    assert {len(piece) for piece in thinking[:-1]} == {3}
    parts = [{"kind": "text", "text": "tea tea tea "}]
    update = {"append": False, "artifact": {"artifact_id": "tea", "parts": parts}}
    assert calls_of(events) == [("artifact_update", update), ("artifact_list", {})]


async def test_every_request_gets_fresh_tool_ids(model) -> None:
    llm = model()
    ids = [e.tool_use_id for _ in range(2) for e in await ask(llm, FIRST) if isinstance(e, BlockStart)]
    assert [one for one in ids if one] == ["id1", "id2", "id3", "id4"]


async def test_a_script_says_what_it_is(model) -> None:
    llm: LLM = model()
    assert (llm.name, llm.thinking) == ("script:s.yaml", "delta")


async def test_the_first_rule_that_matches_wins(model) -> None:
    assert text_of(await ask(model(), user("hello", message_id="m-7"))) == "Hello, 7."
    assert text_of(await ask(model(), user("hello", message_id="7"))) == "Hello, you."
    assert text_of(await ask(model(), user("oh", "hello"))) == "Hello, you."


async def test_without_a_rule_the_user_reads_a_sentence_and_the_log_has_the_cause(model) -> None:
    with pytest.raises(ModelError, match="No rule of the script matches a message of 8 characters") as caught:
        await ask(model(), user("what now"))
    assert caught.value.reason == FOR_USERS["refused"]
    assert not caught.value.retryable


async def test_a_value_that_cannot_be_used_is_the_operators_concern(model) -> None:
    text = "rules: [{match: {text: '(?P<n>.*)'}, rounds: [{text: Hi, delay: '{n}'}]}]"
    with pytest.raises(ModelError, match="The script cannot be played: ") as caught:
        await ask(model(text), user("soon"))
    assert caught.value.reason == FOR_USERS["other"]


@pytest.mark.parametrize(
    ("rounds", "reason"),
    [
        ("{text: {repeat: a, times: '{n}'}}", "a whole number of at least 0 is needed, not 'many'"),
        ("{chunk: '{n}'}", "a whole number of at least 1 is needed, not 'many'"),
        ("{delay: '{n}'}", "a number of seconds of at least 0 is needed, not 'many'"),
        ("{error: {status: 500, after: '{n}'}}", "a whole number of at least 0 is needed, not 'many'"),
        ("{tools: [{name: a, input: {x: [{repeat: a, times: '{n}'}]}}]}", "not 'many'"),
    ],
)
async def test_a_message_that_fills_in_no_number_fails_the_call_for_good(model, rounds, reason) -> None:
    llm = model(f"rules: [{{match: {{text: '^(?P<n>.*)$'}}, rounds: [{rounds}]}}]")
    with pytest.raises(ModelError) as caught:
        await ask(llm, user("many"))
    assert reason in str(caught.value)
    assert not caught.value.retryable


async def test_a_long_text_comes_whole(model) -> None:
    llm = model('rules: [{match: {text: ""}, rounds: [{text: {repeat: "0123456789", times: 128000}}]}]')
    events = await ask(llm, user("go"))
    assert text_of(events) == "0123456789" * 128_000
    assert sum(isinstance(event, TextDelta) for event in events) == 64_000


def test_a_broken_script_is_refused_when_it_is_loaded(model) -> None:
    with pytest.raises(ScriptError, match=r"s\.yaml:1: "):
        model("rules: 5")


# ------------------------------------------------------- what comes next


async def test_the_next_round_follows_the_results(model) -> None:
    events = await ask(model(), FIRST, BOTH_CALLS, BOTH_RESULTS)
    assert calls_of(events) == [("ask_user", {"question": "Enough?"})]


async def test_the_answer_to_ask_user_goes_on_with_the_next_round(model) -> None:
    turn = (FIRST, BOTH_CALLS, BOTH_RESULTS, QUESTION)
    assert text_of(await ask(model(), *turn, ANSWER)) == "Done with tea."
    assert text_of(await ask(model(), *turn, user(*ANSWER.content, "hello"))) == "Done with tea."


ANSWERS = """
rules:
  - match: {text: '^ask about (?P<what>[a-z]+)'}
    rounds:
      - tools: [{name: ask_user, input: {question: "Colour?"}}]
      - text: "Thank you."
    answers:
      - match: {text: '^more'}
        rounds: [{tools: [{name: ask_user, input: {question: "Another colour?"}}]}, {text: "Enough."}]
      - match: {text: '^(?P<colour>red|blue)$'}
        rounds: [{text: "A {colour} {what}."}]
      - match: {text: '^no'}
        rounds: [{tools: [{name: ask_user, input: {question: "Sure?"}}]}, {text: "Well."}]
        answers: [{match: {text: '^yes'}, rounds: [{text: "Gone."}]}]
  - match: {text: 'red|more'}
    rounds: [{text: "Another rule."}]
"""


def answered(*answers: str) -> list[ModelMessage]:
    """The conversation after so many answers."""
    asked = ((assistant(call("ask_user", n)), user(done("ask_user", n, answer))) for n, answer in enumerate(answers))
    return [user("ask about house"), *itertools.chain.from_iterable(asked)]


@pytest.mark.parametrize(
    ("answers", "follows"),
    [
        (["red"], "A red house."),
        (["green"], "Thank you."),
        (["more"], "ask: Another colour?"),
        (["more", "more"], "ask: Another colour?"),
        (["more", "more", "blue"], "A blue house."),
        (["more", "green"], "Enough."),
        (["no"], "ask: Sure?"),
        (["no", "yes"], "Gone."),
        (["no", "red"], "Well."),
        ([NOT_ASKED], "Thank you."),
    ],
    ids=str,
)
async def test_the_answer_to_a_question_chooses_what_follows(tmp_path, answers, follows) -> None:
    (tmp_path / "answers.yaml").write_text(ANSWERS)
    events = await ask(ScriptedModel(tmp_path / "answers.yaml"), *answered(*answers))
    questions = ["ask: " + given["question"] for name, given in calls_of(events)]
    assert [*questions, text_of(events)] == ([follows, ""] if questions else [follows])


async def test_after_the_rounds_of_an_answer_a_new_message_begins_a_new_turn(tmp_path) -> None:
    (tmp_path / "answers.yaml").write_text(ANSWERS)
    events = await ask(ScriptedModel(tmp_path / "answers.yaml"), *answered("red"), assistant("A red."), user("more?"))
    assert text_of(events) == "Another rule."


async def test_after_a_broken_stream_only_the_calls_that_were_not_made_are_left(model) -> None:
    broken_off = assistant(Thinking("…"), "Here it comes.", call("artifact_update"))
    events = await ask(model(), FIRST, broken_off, user(done("artifact_update")))
    assert events[1] == BlockStart(0, "tool_use", "id1", "artifact_list")
    assert calls_of(events) == [("artifact_list", {})]
    rest = (assistant(call("artifact_list", 2)), user(done("artifact_list", 2)))
    events = await ask(model(), FIRST, broken_off, user(done("artifact_update")), *rest)
    assert calls_of(events) == [("ask_user", {"question": "Enough?"})]


async def test_a_call_that_failed_was_made(model) -> None:
    failed = user(done("artifact_update", is_error=True), done("artifact_list"))
    assert calls_of(await ask(model(), FIRST, BOTH_CALLS, failed))[0][0] == "ask_user"


async def test_asked_again_when_all_is_said_the_model_ends_its_turn_without_a_word(model) -> None:
    events = await ask(model(), user("once"), assistant(call("artifact_list")), user(done("artifact_list")))
    assert [type(event) for event in events] == [MessageStart, StopReasonDelta, MessageStop]
    assert events[-1].stop_reason == "end_turn"


async def test_a_new_message_begins_a_new_turn(model) -> None:
    earlier = (FIRST, BOTH_CALLS, BOTH_RESULTS, QUESTION, ANSWER, assistant("Done with tea."))
    assert text_of(await ask(model(), *earlier, user("hello"))) == "Hello, you."
    assert len(calls_of(await ask(model(), *earlier, user("write 5 of tea")))) == 2


async def test_a_message_without_results_takes_over_from_the_turn_at_work(model) -> None:
    assert text_of(await ask(model(), FIRST, assistant("Here…"), user("hello"))) == "Hello, you."


async def test_a_message_that_comes_with_results_goes_with_the_turn_at_work(model) -> None:
    along = user(*BOTH_RESULTS.content, "hello")
    assert calls_of(await ask(model(), FIRST, BOTH_CALLS, along))[0][0] == "ask_user"


async def test_a_message_that_comes_with_the_last_results_begins_a_turn(model) -> None:
    along = user(done("artifact_list"), "hello")
    assert text_of(await ask(model(), user("once"), assistant(call("artifact_list")), along)) == "Hello, you."


async def test_a_declined_turn_is_over(model) -> None:
    declined = (user("decline it"), assistant(call("decline_task")))
    assert text_of(await ask(model(), *declined, user(done("decline_task"), "hello"))) == "Hello, you."
    refused = user(done("decline_task", is_error=True), "hello")
    assert text_of(await ask(model(), *declined, refused)) == "never"


async def test_a_message_after_a_task_that_ended_unanswered_begins_a_turn(model) -> None:
    abandoned = user(done("ask_user", content=UNANSWERED, is_error=True), "hello")
    assert text_of(await ask(model(), FIRST, BOTH_CALLS, BOTH_RESULTS, QUESTION, abandoned)) == "Hello, you."


async def test_files_that_come_with_the_answer_to_ask_user_belong_to_it(model) -> None:
    answer = user(*ANSWER.content, Attachment("image/png", content=b"."))
    assert text_of(await ask(model(), FIRST, BOTH_CALLS, BOTH_RESULTS, QUESTION, answer)) == "Done with tea."


async def test_an_earlier_message_without_a_rule_does_no_harm(model) -> None:
    assert text_of(await ask(model(), user("what now"), assistant("?"), user("hello"))) == "Hello, you."


async def test_a_conversation_without_a_users_message_matches_nothing(model) -> None:
    with pytest.raises(ModelError, match="No rule"):
        await ask(model())


# ------------------------------------------------------------------- errors


def failing(error, more=""):
    return f"rules: [{{match: {{text: ''}}, rounds: [{{text: abcdef, chunk: 2, error: {error}}}{more}]}}]"


async def take_until_it_breaks(llm, *messages):
    events = []

    async def take():
        async for event in llm.stream(ModelRequest("", messages)):
            events.append(event)

    with pytest.raises(ModelError) as caught:
        await take()
    return events, caught.value


@pytest.mark.parametrize(
    ("after", "seen"),
    [
        (0, []),
        (1, [MessageStart(), BlockStart(0, "text"), TextDelta(0, "ab")]),
        (3, [MessageStart(), BlockStart(0, "text"), *(TextDelta(0, t) for t in ("ab", "cd", "ef"))]),
        (9, [MessageStart(), BlockStart(0, "text"), *(TextDelta(0, t) for t in ("ab", "cd", "ef")), BlockStop(0)]),
    ],
)
async def test_an_error_comes_after_so_many_deltas(model, after, seen) -> None:
    events, error = await take_until_it_breaks(model(failing(f"{{status: 529, after: {after}}}")), user("go"))
    assert events == seen
    assert str(error) == "The model answered 529 (overloaded)."


@pytest.mark.parametrize(
    ("status", "retryable", "reason"),
    [
        (400, False, "The model answered 400 (bad request)."),
        (401, False, "The model answered 401 (unauthorized)."),
        (408, True, "The model answered 408 (request timeout)."),
        (409, True, "The model answered 409 (conflict)."),
        (429, True, "The model answered 429 (too many requests)."),
        (500, True, "The model answered 500 (internal server error)."),
        (599, True, "The model answered 599."),
        (200, False, "The model answered 200 (ok)."),
    ],
)
async def test_the_status_says_whether_to_try_again(model, status, retryable, reason) -> None:
    _, error = await take_until_it_breaks(model(failing(f"{{status: {status}}}")), user("go"))
    assert (error.retryable, str(error)) == (retryable, reason)


async def test_only_the_first_tries_fail(model) -> None:
    llm = model(failing("{status: 529, times: 2}"))
    await take_until_it_breaks(llm, user("go"))
    await take_until_it_breaks(llm, user("go"))
    assert text_of(await ask(llm, user("go"))) == "abcdef"
    assert text_of(await ask(llm, user("go"))) == "abcdef"


async def test_each_message_has_its_own_tries(model) -> None:
    llm = model(failing("{status: 529}"))
    await take_until_it_breaks(llm, user("go", message_id="m1"))
    await take_until_it_breaks(llm, user("go", message_id="m2"))
    assert text_of(await ask(llm, user("go", message_id="m1"))) == "abcdef"
    await take_until_it_breaks(llm, user("go", message_id="m1"), assistant("abcdef"), user("go", message_id="m3"))


async def test_a_restarted_server_counts_the_tries_anew(model) -> None:
    await take_until_it_breaks(model(failing("{status: 529}")), user("go"))
    await take_until_it_breaks(model(failing("{status: 529}")), user("go"))


async def test_the_tries_that_are_kept_in_memory_are_bounded(model) -> None:
    llm = model(failing("{status: 529, after: 0}"))
    for number in range(1001):
        await take_until_it_breaks(llm, user("go", message_id=f"m{number}"))
    assert text_of(await ask(llm, user("go", message_id="m1"))) == "abcdef"
    await take_until_it_breaks(llm, user("go", message_id="m0"))


async def test_with_times_0_nothing_fails(model) -> None:
    assert text_of(await ask(model(failing("{status: 529, times: 0}")), user("go"))) == "abcdef"


# --------------------------------------------------------------------- pace


async def test_the_delay_of_the_round_stands_between_its_deltas(model) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    await ask(
        model("rules: [{match: {text: ''}, rounds: [{text: abcdef, chunk: 2, delay: 1.5}]}]", sleep=sleep), user("go")
    )
    assert slept == [1.5, 1.5]


async def test_without_a_delay_other_tasks_still_get_their_turn(model) -> None:
    llm = model("rules: [{match: {text: ''}, rounds: [{text: {repeat: x, times: 50000}, chunk: 1}]}]")
    turns: list[str] = []

    async def listen(name: str) -> None:
        async for event in llm.stream(ModelRequest("", (user("go"),))):
            if isinstance(event, TextDelta):
                turns.append(name)

    await asyncio.gather(listen("a"), listen("b"))
    assert turns.count("a") == turns.count("b") == 50_000
    assert turns.index("b") < 50_000, "the second began before the first was done"


async def test_closing_the_stream_early_leaves_nothing_behind(model) -> None:
    llm = model("rules: [{match: {text: ''}, rounds: [{text: abcdef, chunk: 1, delay: 1000}]}]")
    stream = llm.stream(ModelRequest("", (user("go"),)))
    assert await anext(stream) == MessageStart()
    await stream.aclose()
    assert await anext(stream, None) is None
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_canceled_task_leaves_the_delay_at_once(model) -> None:
    waiting = asyncio.Event()

    async def sleep(seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    llm = model("rules: [{match: {text: ''}, rounds: [{text: abcdef, chunk: 1, delay: 1}]}]", sleep=sleep)
    task = asyncio.create_task(ask(llm, user("go")))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# -------------------------------------------------------------------- edits

EDITS = """
rules:
  - match: {text: async, selection: '^(?P<indent> *)def (?P<rest>.*)'}
    rounds:
      - {thinking: "A def.", text: "{indent}async def {rest}", tools: [{name: artifact_list}], chunk: 4}
      - {text: never}
  - match: {text: '^up (?P<n>\\d)$'}
    rounds: [{text: "Going up {n}.", error: {status: 529, after: 1}}]
  - match: {selection: '^$'}
    rounds: [{}]
  - match: {message_id: '^m-'}
    rounds: [{text: "A message."}]
"""


def edit(instruction, selected, message_id=""):
    passage = EditPrompt("a.py", "python", "before", selected, "after", instruction, "replace")
    return edit_request(passage, message_id)


async def answer_to(llm, request):
    return [event async for event in llm.stream(request)]


async def test_an_edit_takes_the_first_round_of_its_rule_without_its_calls(model) -> None:
    events = await answer_to(model(EDITS), edit("Make it async", "  def f():"))
    assert text_of(events) == "  async def f():"
    assert [event.kind for event in events if isinstance(event, BlockStart)] == ["thinking", "text"]
    assert {len(event.text) for event in events if isinstance(event, TextDelta)} == {4}
    assert events[-1].stop_reason == "end_turn"


async def test_a_rule_with_a_selection_is_for_edits_alone(model) -> None:
    with pytest.raises(ModelError, match="No rule"):
        await ask(model(EDITS), user("async def f():"))
    assert text_of(await ask(model(EDITS), user("async", message_id="m-1"))) == "A message."
    assert text_of(await answer_to(model(EDITS), edit("async", "x = 1", "m-1"))) == "A message."


async def test_the_text_of_an_edit_is_its_instruction_and_nothing_around_it(model) -> None:
    with pytest.raises(ModelError, match="a message of 6 characters") as caught:
        await answer_to(model(EDITS), edit("before", "up 1"))
    assert "selection" not in str(caught.value)


async def test_an_edit_without_a_text_says_nothing(model) -> None:
    events = await answer_to(model(EDITS), edit("Go", ""))
    assert [type(event) for event in events] == [MessageStart, StopReasonDelta, MessageStop]


async def test_an_edit_breaks_off_as_any_answer_does(model) -> None:
    llm = model(EDITS)
    with pytest.raises(ModelError, match="529"):
        await answer_to(llm, edit("up 1", "x"))
    assert text_of(await answer_to(llm, edit("up 1", "x"))) == "Going up 1."


# ------------------------------------------------------ once, together, what is looked at

WRITES = """
rules:
  - match: {text: help}
    once: true
    rounds: [{text: "All of it."}]
  - match: {text: help}
    rounds: [{text: "See above."}]
  - match: {text: '\\bplan\\b'}
    together: true
    rounds: [{text: "I plan.", write: [{name: plan.md, text: Plan}]}, {text: "Planned."}]
  - match: {text: 'list of (?P<what>\\w+)'}
    together: true
    rounds: [{text: "I list.", write: [{name: "{what}.md", text: List}]}, {text: "Listed {what}."}]
  - match: {text: '^where'}
    rounds: [{text: "There."}]
  - match: {text: shorter}
    change: shorter
"""


async def test_a_rule_with_once_matches_one_message_of_a_conversation(model) -> None:
    assert text_of(await ask(model(WRITES), user("help"))) == "All of it."
    assert text_of(await ask(model(WRITES), user("help"), assistant("All of it."), user("help"))) == "See above."


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a plan", ["plan.md"]),
        ("two documents: a list of tea and a plan", ["tea.md", "plan.md"]),
        ("a plan, a list of tea; a list of milk", ["plan.md", "tea.md"]),
        ("a plan and more", ["plan.md"]),
    ],
)
async def test_rules_with_together_write_in_one_round_what_a_message_asks_for(model, text, written) -> None:
    llm = model(WRITES)
    calls = calls_of(await ask(llm, user(text)))
    assert [given["artifact"]["name"] for _, given in calls] == written


async def test_at_the_end_they_say_what_each_of_them_says(model) -> None:
    llm, asked = model(WRITES), user("a list of tea and a plan")
    calls = assistant(call("artifact_update", 1), call("artifact_update", 2))
    results = user(done("artifact_update", 1), done("artifact_update", 2))
    assert text_of(await ask(llm, asked, calls, results)) == "Listed tea. Planned."


async def test_the_note_of_what_is_looked_at_is_no_part_of_the_text(model) -> None:
    note = '[The user is looking at artifact "tea", version 2; selected there, lines 1-2: "a"]'
    assert text_of(await ask(model(WRITES), user(note, "where is it?"))) == "There."


async def test_a_change_changes_the_selection_of_an_edit(model) -> None:
    prompt = EditPrompt("a.md", "markdown", "", "Tea is always hot. Milk is not.\n", "", "shorter", "replace")
    assert text_of(await ask_edit(model(WRITES), prompt)) == "Tea is always hot.\n"
    same = EditPrompt("a.md", "markdown", "", "Tea.", "", "shorter", "replace")
    with pytest.raises(NothingToChange, match="I found nothing to change in this passage"):
        await ask_edit(model(WRITES), same)


async def ask_edit(llm, prompt):
    return [event async for event in llm.stream(edit_request(prompt, "m"))]
