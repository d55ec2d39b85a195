"""What of a run becomes a document."""

import json
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.tool_sources.agui_agents.documents import (
    LONG,
    DocumentChange,
    DocumentRuleError,
    Documents,
    LongAnswer,
    document_rules,
    with_documents,
)

STATE = document_rules({"state.draft.text": "report.md"})
TOOL = document_rules({"tool.write.content": "report.md"})


def folded(writes: list[DocumentChange], text: str = "") -> str:
    for write in writes:
        text = text + write.text if write.append else write.text
    return text


def test_a_states_text_is_appended_to_or_replaced() -> None:
    documents = Documents(STATE, {"report.md": "Old."})
    texts = ["Old.", "Old. New.", "Other.", "Other."]
    writes = [documents.of_state({"draft": {"text": text}}) for text in texts]
    assert writes == [
        [],
        [DocumentChange("report.md", " New.", append=True)],
        [DocumentChange("report.md", "Other.", append=False)],
        [],
    ]


@pytest.mark.parametrize("state", [None, {}, {"draft": 7}, {"draft": {"text": None}}, [1]])
def test_a_state_without_the_text_changes_nothing(state) -> None:
    assert Documents(STATE, {"report.md": "Old."}).of_state(state) == []


@given(st.text(), st.lists(st.integers(0, 200)))
def test_a_tools_argument_becomes_the_document_however_it_is_cut(text: str, places: list[int]) -> None:
    given = json.dumps({"title": text, "content": text, "more": {"content": "no"}})
    ends = sorted(min(place, len(given)) for place in places)
    documents = Documents(TOOL, {"report.md": "Old."})
    documents.begin_call("c", "write")
    writes = [
        write
        for start, end in zip([0, *ends], [*ends, len(given)], strict=True)
        for write in documents.add_input("c", given[start:end])
    ]
    assert folded(writes, "Old.") == text
    assert [write.append for write in writes] == [False, *[True] * (len(writes) - 1)]


def test_an_input_that_is_not_json_and_another_tool_write_nothing_more() -> None:
    documents = Documents(TOOL, {})
    documents.begin_call("c", "write")
    documents.begin_call("d", "read")
    assert documents.add_input("c", '{"content": "a"]') == documents.add_input("c", '"b"}') == []
    assert documents.add_input("d", '{"content": "a"}') == []


def test_the_state_to_send_has_the_texts_of_the_documents() -> None:
    state = {"draft": {"text": "Old."}}
    assert with_documents(state, STATE, {"report.md": "Edited."}) == {"draft": {"text": "Edited."}}
    assert state == {"draft": {"text": "Old."}}
    assert with_documents(None, STATE, {"report.md": "Edited."}) is None


@pytest.mark.parametrize("source", ["document", "state", "state.", "tool.write", "tool..content", "state..a"])
def test_a_declaration_that_is_none_is_an_error(source: str) -> None:
    with pytest.raises(DocumentRuleError, match="names no document"):
        document_rules({source: "report.md"})


def test_an_answer_is_a_reply_up_to_its_last_short_line_and_then_a_document() -> None:
    lines = [f"Line {number}\n" for number in range(LONG + 2)]
    answer = LongAnswer("agent")
    assert [answer.feed(line) for line in lines[:LONG]] == lines[:LONG]
    assert answer.feed(lines[LONG]) == DocumentChange("agent.md", "".join(lines[: LONG + 1]), append=False)
    assert answer.feed(lines[LONG + 1]) == DocumentChange("agent.md", lines[LONG + 1], append=True)


@given(st.lists(st.text("a \n", max_size=12), max_size=30))
def test_an_answer_is_long_by_the_lines_between_its_first_and_last_text_however_it_is_cut(pieces: list[str]) -> None:
    answer = LongAnswer("agent")
    for piece, text in zip(pieces, accumulate(pieces), strict=True):
        is_long = text.strip().count("\n") >= LONG
        assert answer.feed(piece) == (DocumentChange("agent.md", text, append=False) if is_long else piece)
        if is_long:
            return
        assert answer.text == text
