"""`artifact_update`: the law (a call that streams leaves what the whole call leaves), and what bad input does."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.store.artifact_store import ArtifactStore
from a2a_canvas.store.changes import AppendParts, Change, ReplaceParts
from a2a_canvas.store.errors import ArtifactNotFound, ArtifactTooLarge, MediaTypeConflict
from a2a_canvas.store.evented import EventedArtifactStore
from a2a_canvas.store.memory import InMemoryArtifactStore
from a2a_canvas.store.models import (
    AppliedChange,
    Artifact,
    DataPart,
    FilePart,
    Limits,
    Part,
    TextPart,
    Version,
    text_part,
)
from a2a_canvas.tools.artifact_read import artifact_read
from a2a_canvas.tools.artifact_update import artifact_update
from a2a_canvas.tools.tool import Done, Failed, Outcome, ToolStream
from tests.property_examples import examples
from tests.store.artifact_builders import JSON, StockClient, appending, by, replacing, result, text
from tests.tools.tool_calls import call, cut, dumped, fragments, shuffled, workspace

UPDATE = artifact_update
State = tuple[Artifact, tuple[Version, ...]] | None


async def standing(store: ArtifactStore, artifact_id: str = "a") -> State:
    ref = by("t1", artifact_id)
    try:
        return await store.get(ref), await store.versions(ref)
    except ArtifactNotFound:
        return None


def update(*parts: dict[str, Any], append: bool = False, **rest: Any) -> dict[str, Any]:
    """A call with its properties in the order of the schema."""
    head = {name: rest.pop(name) for name in ("last_chunk",) if name in rest}
    return {"append": append, **head, "artifact": {"artifact_id": "a", **rest, "parts": list(parts)}}


def words(content: str, **rest: Any) -> dict[str, Any]:
    return {"kind": "text", "text": content, **rest}


def file(content: bytes, **rest: Any) -> dict[str, Any]:
    return {"kind": "file", "file": {"bytes": b64encode(content).decode(), **rest}}


def data(value: Any, **rest: Any) -> dict[str, Any]:
    return {"kind": "data", "data": value, **rest}


# ------------------------------------------------------------------------- the oracle: the call as one change


def as_part(part: dict[str, Any]) -> Part:
    metadata = part.get("metadata") or {}
    match part["kind"]:
        case "text":
            return text_part(part["text"], part.get("mimeType", ""), metadata)
        case "data":
            size = len(json.dumps(part["data"]))
            return DataPart(part["data"], metadata=metadata, size=size)
        case _:
            given_file = dict(part["file"])
            content = given_file.pop("content", None)
            return FilePart(
                content,
                given_file.get("uri", ""),
                given_file.get("name", ""),
                given_file.get("mimeType", ""),
                metadata,
            )


def as_change(whole: dict[str, Any]) -> Change:
    kind = AppendParts if whole["append"] else ReplaceParts
    artifact = whole["artifact"]
    parts = tuple(as_part(part) for part in artifact["parts"])
    return kind(parts, artifact.get("name"), artifact.get("description"), whole.get("last_chunk", False))


def encoded(content: dict[str, Any]) -> dict[str, Any]:
    return {
        "bytes" if name == "content" else name: b64encode(value).decode() if name == "content" else value
        for name, value in content.items()
    }


def as_input(whole: dict[str, Any]) -> dict[str, Any]:
    """The same with the files' content in base64, as a model writes it."""
    parts = [
        {name: encoded(value) if name == "file" else value for name, value in part.items()}
        for part in whole["artifact"]["parts"]
    ]
    return {**whole, "artifact": {**whole["artifact"], "parts": parts}}


# ------------------------------------------------------------------------------------------- any call, any cut

STRINGS = st.text('ab\\"/\n\té€😀\u2028\x7f{}[],:', max_size=6)
METADATA = st.none() | st.dictionaries(STRINGS, JSON, max_size=2)
MEDIA_TYPES = st.sampled_from(["", "text/plain", "text/plain", "text/markdown"])
TEXT = st.fixed_dictionaries(
    {"kind": st.just("text"), "text": STRINGS}, optional={"mimeType": MEDIA_TYPES, "metadata": METADATA}
)
NAMED = {"name": STRINGS, "mimeType": st.just("image/png")}
FILES = st.fixed_dictionaries({"content": st.binary(max_size=4)}, optional=NAMED) | st.fixed_dictionaries(
    {"uri": st.just("https://example.org/é")}, optional=NAMED
)
FILE = st.fixed_dictionaries({"kind": st.just("file"), "file": FILES}, optional={"metadata": METADATA})
DATA = st.fixed_dictionaries({"kind": st.just("data"), "data": JSON}, optional={"metadata": METADATA})
NAMES = st.none() | STRINGS
CALLS = st.fixed_dictionaries(
    {
        "append": st.booleans(),
        "artifact": st.fixed_dictionaries(
            {"artifact_id": st.just("a"), "parts": st.lists(TEXT | TEXT | FILE | DATA, min_size=1, max_size=4)},
            optional={"name": NAMES, "description": NAMES, "note": st.just({"append": True})},
        ),
    },
    optional={"last_chunk": st.booleans(), "comment": st.just(["parts"])},
)
BEFORE = st.sampled_from(
    [
        (),
        (replacing("A", name="n"),),
        (replacing("A", description="d", last_chunk=True),),
        (AppendParts((FilePart(b"x"), text("A", media_type="text/plain", metadata={"a": 1}))),),
        (replacing("A", last_chunk=True), AppendParts((DataPart(1), FilePart(b"y")))),
    ]
)


@st.composite
def streamed(draw: st.DrawFn) -> tuple[dict[str, Any], list[str]]:
    """A call, and its input in fragments."""
    whole = draw(CALLS.flatmap(shuffled))
    return whole, draw(fragments(draw(dumped(draw(quoted(as_input(whole)))))))


@st.composite
def quoted(draw: st.DrawFn, whole: dict[str, Any]) -> dict[str, Any]:
    """The same, as some models write it: truth values in quotes, and objects and lists as JSON in a string."""
    if not draw(st.booleans()):
        return whole
    words = {True: st.sampled_from([True, "true", "True"]), False: st.sampled_from([False, "false", "False "])}
    said = {name: draw(words[value]) if isinstance(value, bool) else value for name, value in whole.items()}
    artifact = dict(said["artifact"])
    if draw(st.booleans()):
        artifact["parts"] = draw(dumped(artifact["parts"]))
    return said | {"artifact": draw(dumped(artifact)) if draw(st.booleans()) else artifact}


@given(BEFORE, st.lists(streamed(), min_size=1, max_size=2))
@settings(max_examples=examples(300))
def test_a_call_that_streams_in_any_cut_leaves_what_the_whole_call_at_once_leaves(
    before: tuple[Change, ...], calls: list[tuple[dict[str, Any], list[str]]]
) -> None:
    client, at_once, store = StockClient(), InMemoryArtifactStore(), InMemoryArtifactStore()
    watched = EventedArtifactStore(store, client.listen)
    for change in before:
        result(at_once.apply(by("t1"), change))
        result(watched.apply(by("t1"), change))
    for whole, pieces in calls:
        state, told = result(standing(watched)), len(client.told)
        outcome = result(call(UPDATE, pieces, workspace(watched)))
        if not accepted(at_once, as_change(whole)):
            assert_failed(outcome, "Text of type .* cannot be joined into one text part.*Nothing was changed")
            assert_taken_back(state, result(standing(watched)))
            return
        assert isinstance(outcome, Done)
        assert exactly(result(standing(watched))) == exactly(result(standing(at_once)))
        assert client.reads("a") == result(store.get(by("t1"))).content
        assert_ends_told(client.told[told:], state, result(standing(watched)), whole)


def assert_ends_told(told: list[AppliedChange], before: State, after: State, whole: dict[str, Any]) -> None:
    """Each version has one `last_chunk`, in order; that of the call itself is empty only if its last part is."""
    made = [version.number for version in after[1][len(before[1]) if before else 0 :]] if after else []
    assert [each.version for each in told if each.last_chunk] == made
    assert [each.version for each in told] == sorted(each.version for each in told)
    if whole.get("last_chunk"):
        assert told[-1].last_chunk
        assert told[-1].version == made[-1]
        if told[-1].append and told[-1].parts == (text(""),):
            last = whole["artifact"]["parts"][-1]
            assert (last["kind"], last.get("text")) == ("text", "")


def exactly(state: State) -> object:
    """The state, and its JSON, in which 1, 1.0 and true differ."""
    parts = state[0].parts if state else ()
    return state, [json.dumps([getattr(part, "data", None), dict(part.metadata)]) for part in parts]


def accepted(store: ArtifactStore, change: Change) -> bool:
    try:
        result(store.apply(by("t1"), change))
    except MediaTypeConflict:
        return False
    return True


def assert_taken_back(before: State, after: State) -> None:
    """The draft rules for a call that did not complete: its text may stay only where there was nothing before."""
    if before is None:
        assert after is None or (after[0].open, after[1]) == (True, ())
        return
    assert after is not None
    assert after[0].content == before[0].content
    if after[1] != before[1]:  # it was to replace an open draft, which is a version now
        assert before[0].open
        assert [version.content for version in after[1][len(before[1]) :]] == [before[0].content]


PICTURES = (file(b"1", name="1.png"), file(b"2", name="2.png"))
EXAMPLES: list[tuple[str, Sequence[Change], list[dict[str, Any]], tuple[Part, ...]]] = [
    (
        "two texts, then replaced",
        (),
        [update(words("Hello "), words("World")), update(words("Goodbye"))],
        (text("Goodbye"),),
    ),
    (
        "a text, then appended to",
        (),
        [update(words("Hello ")), update(words("World"), append=True)],
        (text("Hello World"),),
    ),
    ("two texts become one part", (), [update(words("Part 1"), words("Part 2"))], (text("Part 1Part 2"),)),
    (
        "text, file, text",
        (replacing("old"),),
        [update(words("a"), PICTURES[0], words("b"))],
        (text("ab"), FilePart(b"1", name="1.png")),
    ),
    (
        "two files replace three",
        (ReplaceParts((FilePart(b"x"), text("A"), FilePart(b"y"), FilePart(b"z"))),),
        [update(*PICTURES)],
        (FilePart(b"1", name="1.png"), FilePart(b"2", name="2.png"), text("A")),
    ),
    ("an empty text replaces", (replacing("old"),), [update(words(""))], (text(""),)),
    (
        "type and metadata after the text",
        (ReplaceParts((text("old", media_type="text/html", metadata={"x": 1, "y": 1}),)),),
        [update(words("new", mimeType="text/plain", metadata={"y": 2}))],
        (text("new", media_type="text/plain", metadata={"x": 1, "y": 2}),),
    ),
    ("a surrogate pair", (), [update(words("a😀b"))], (text("a😀b"),)),
    ("half a surrogate pair", (), [update(words("a\ud83d"), words("\ude00b"))], (text("a\ufffd\ufffdb"),)),
]


@pytest.mark.parametrize(("before", "calls", "parts"), [e[1:] for e in EXAMPLES], ids=[e[0] for e in EXAMPLES])
async def test_examples_in_one_piece_character_by_character_and_cut_anywhere(
    before: Sequence[Change], calls: list[dict[str, Any]], parts: tuple[Part, ...]
) -> None:
    texts = [json.dumps(whole) for whole in calls]
    cuts = [[[text], list(text)] for text in texts]
    for at in range(max(map(len, texts))):
        for text_cuts, text_ in zip(cuts, texts, strict=True):
            text_cuts.append(cut(text_, min(at, len(text_))))
    for pieces in zip(*cuts, strict=True):
        store = InMemoryArtifactStore()
        for change in before:
            await store.apply(by("t1"), change)
        for piece in pieces:
            assert isinstance(await call(UPDATE, piece, workspace(store)), Done)
        assert (await store.get(by("t1"))).parts == parts


# --------------------------------------------------------------------------------- when things reach the store


class Watched:
    """A call on a store that remembers how many changes each fragment made."""

    def __init__(self, *before: Change, limits: Limits | None = None) -> None:
        self.client = StockClient()
        self.store = InMemoryArtifactStore(limits)
        for change in before:
            result(self.store.apply(by("t1"), change))
        self.stream: ToolStream = UPDATE.open(workspace(EventedArtifactStore(self.store, self.client.listen)))

    async def feed(self, fragment: str) -> int:
        before = len(self.client.told)
        await self.stream.feed(fragment)
        return len(self.client.told) - before

    @property
    def shown(self) -> str:
        return self.client.told[-1].artifact.text if self.client.told else ""


@pytest.mark.parametrize("append", [False, True])
async def test_in_the_schemas_order_each_character_reaches_the_store_in_the_feed_that_holds_it(append: bool) -> None:
    before, within, after = json.dumps(update(words("Hello"), append=append, last_chunk=False)).partition("Hello")
    watched = Watched(replacing("old", last_chunk=True))
    assert [await watched.feed(character) for character in before] == [0] * len(before)
    for length, character in enumerate(within, 1):
        assert await watched.feed(character) == 1
        assert watched.shown == ("old" if append else "") + "Hello"[:length]
    assert [await watched.feed(character) for character in after] == [0] * len(after)
    assert await watched.stream.finish() == Done("Written; the draft stays open.")
    assert [told.append for told in watched.client.told] == [False, True, True, True, True]


CLOSING = [
    pytest.param({"last_chunk": True}, {}, id="known before the text"),
    pytest.param({}, {"last_chunk": True}, id="known after the text"),
]


@pytest.mark.parametrize(("head", "tail"), CLOSING)
async def test_of_a_call_that_closes_the_version_only_the_last_character_waits(
    head: dict[str, Any], tail: dict[str, Any]
) -> None:
    before, _, after = json.dumps(update(words("Hello there"), **head) | tail).partition("Hello there")
    watched = Watched(replacing("old", last_chunk=True))
    assert await watched.feed(before) == 0
    for piece, shown in [("H", ""), ("ello", "Hell"), (" ", "Hello"), ("the", "Hello th"), ("re", "Hello ther")]:
        assert await watched.feed(piece) == (shown != "")
        assert watched.shown == shown
    assert [await watched.feed(character) for character in after] == [0] * len(after)
    assert await watched.stream.finish() == Done("Written; version 2 of a is saved.")
    closing = watched.client.told[-1]
    assert (closing.parts, closing.append, closing.last_chunk) == ((text("e"),), True, True)
    assert [told.last_chunk for told in watched.client.told] == [False] * 4 + [True]


@pytest.mark.parametrize(("head", "tail"), CLOSING)
async def test_what_comes_with_the_end_of_the_input_closes_the_version(
    head: dict[str, Any], tail: dict[str, Any]
) -> None:
    whole = json.dumps(update(words("Hello there"), **head) | tail)
    watched = Watched()
    assert await watched.feed(whole.partition(" there")[0]) == 1
    assert await watched.feed("".join(whole.partition(" there")[1:])) == 0
    assert await watched.stream.finish() == Done("Written; version 1 of a is saved.")
    assert [(told.parts, told.last_chunk) for told in watched.client.told] == [
        ((text("Hell"),), False),
        ((text("o there"),), True),
    ]


async def test_a_call_in_one_piece_is_one_change() -> None:
    watched = Watched()
    assert await watched.feed(json.dumps(update(words("A"), name="n", last_chunk=True))) == 0
    assert await watched.stream.finish() == Done("Written; version 1 of a is saved.")
    assert [(told.append, told.parts, told.last_chunk) for told in watched.client.told] == [(False, (text("A"),), True)]


@pytest.mark.parametrize("append", [False, True])
@pytest.mark.parametrize(
    "parts",
    [
        [words("né 😀")],
        [words("a"), words("b")],
        [file(b"1"), words("né")],
        [words("né"), file(b"1")],
        [words("né", mimeType="text/markdown", metadata={"a": 1})],
        [data({"a": "b"})],
    ],
    ids=["a text", "two texts", "a text last", "a file last", "metadata last", "data"],
)
async def test_wherever_a_call_is_cut_its_last_piece_closes_the_version(
    parts: list[dict[str, Any]], append: bool
) -> None:
    whole = json.dumps(update(*parts, append=append, last_chunk=True))
    for pieces in ([whole], list(whole), *(cut(whole, at) for at in range(len(whole)))):
        watched = Watched(replacing("old", last_chunk=True))
        for piece in pieces:
            await watched.feed(piece)
        await watched.stream.finish()
        assert [told.last_chunk for told in watched.client.told] == [False] * (len(watched.client.told) - 1) + [True]
        assert all(not isinstance(part, TextPart) or part.text for part in watched.client.told[-1].parts)


async def test_a_text_before_another_part_is_not_the_last_and_does_not_wait() -> None:
    first, second = json.dumps(update(words("Hello"), file(b"1"), last_chunk=True)).split(', {"kind": "file"')
    watched = Watched()
    assert await watched.feed(first) == 1
    assert watched.shown == "Hell"
    assert await watched.feed(', {"kind": "file"') == 1
    assert watched.shown == "Hello"
    assert await watched.feed(second) == 0
    await watched.stream.finish()
    assert [told.last_chunk for told in watched.client.told] == [False, False, True]
    assert watched.client.told[-1].artifact.parts == (text("Hello"), FilePart(b"1"))


@pytest.mark.parametrize(
    ("held", "last", "rest"),
    [
        ('"artifact": {"artifact_id": "a", "parts": [{"kind": "text", "text": "Hello"}]}, "append": fals', "e", "}"),
        ('"append": true, "artifact": {"parts": [{"kind": "text", "text": "Hello"}], "artifact_id": "a', '"', "}}"),
        ('"append": true, "artifact": {"artifact_id": "a", "parts": [{"text": "Hello", "kind": "text', '"', "}]}}"),
        ('"artifact": {"parts": [{"text": "Hello", "kind": "text"}], "artifact_id": "a"}, "append": tru', "e", "}"),
    ],
)
async def test_text_that_arrives_before_the_store_can_know_what_it_is_for_is_held_back(
    held: str, last: str, rest: str
) -> None:
    watched = Watched()
    held = '{"last_chunk": false, ' + held
    assert [await watched.feed(character) for character in held] == [0] * len(held)
    assert await watched.feed(last) == 1
    assert watched.shown == "Hello"
    assert await watched.feed(rest) == 0
    assert isinstance(await watched.stream.finish(), Done)


async def test_in_the_schemas_order_the_first_change_has_the_type_and_the_metadata_of_the_text() -> None:
    watched = Watched()
    first = {"kind": "text", "mimeType": "text/markdown", "metadata": {"a": 1}, "text": "Hello"}
    for character in json.dumps(update(first)).partition("lo")[0]:
        await watched.feed(character)
    assert watched.client.told[0].parts == (text("H", media_type="text/markdown", metadata={"a": 1}),)


async def test_a_type_and_metadata_after_the_text_are_taken_with_the_end_of_the_part() -> None:
    watched = Watched()
    late = {"kind": "text", "text": "Hello", "mimeType": "text/markdown", "metadata": {"a": 1}}
    for character in json.dumps(update(late)):
        await watched.feed(character)
    await watched.stream.finish()
    assert watched.client.told[0].parts == (text("H"),)
    assert (await watched.store.get(by("t1"))).parts == (text("Hello", media_type="text/markdown", metadata={"a": 1}),)


async def test_a_file_reaches_the_store_when_the_next_part_begins_or_the_call_ends() -> None:
    watched = Watched()
    first, second = json.dumps(update(*PICTURES, name="n")).split(', {"kind": "file"')
    assert await watched.feed(first) == 0
    assert await watched.feed(', {"kind": "file"') == 1
    assert await watched.feed(second) == 0
    await watched.stream.finish()
    assert len(watched.client.told) == 2
    assert [len(told.artifact.parts) for told in watched.client.told] == [1, 2]


async def test_a_call_that_finishes_with_a_file_is_one_change() -> None:
    watched = Watched()
    await watched.feed(json.dumps(update(data(1), last_chunk=True)))
    assert await watched.stream.finish() == Done("Written; version 1 of a is saved.")
    assert [(told.append, told.last_chunk) for told in watched.client.told] == [(False, True)]


async def test_a_call_without_last_chunk_is_complete_and_leaves_the_draft_open() -> None:
    store = InMemoryArtifactStore()
    outcome = await call(UPDATE, [json.dumps(update(words("A")))], workspace(store))
    assert outcome == Done("Written; the draft stays open.")
    assert await store.discard(by("t1")) is None
    assert (await store.get(by("t1"))).open


async def test_a_name_that_comes_after_the_parts_is_taken_with_the_end_of_the_call() -> None:
    whole = update(words("A"))
    whole["artifact"] |= {"name": "late", "description": "too"}
    store = InMemoryArtifactStore()
    await call(UPDATE, json.dumps(whole), workspace(store))
    artifact = await store.get(by("t1"))
    assert (artifact.name, artifact.description, artifact.parts) == ("late", "too", (text("A"),))


# -------------------------------------------------------------------------------------------------- bad input


def invalid(*parts: Any, **changes: Any) -> str:
    return json.dumps({**update(*parts), **changes})


GOOD = words("x")
ID = {"artifact_id": "a", "parts": [GOOD]}


def nested(levels: int) -> Any:
    return [nested(levels - 1)] if levels else []


TWICE = "is given twice; give every field once"
INVALID: dict[str, tuple[str, str]] = {
    "nothing": ("", "complete, valid JSON"),
    "not JSON": ("hello", "complete, valid JSON"),
    "NaN": (
        '{"append": true, "artifact": {"artifact_id": "a", "parts": [{"kind": "data", "data": NaN}]}}',
        "valid JSON",
    ),
    "more after the end": (invalid(GOOD) + "}", "expected the end of the text"),
    "too deep for JSON": ("[" * 5000, "nested deeper than"),
    "too deep for data": (
        invalid(data(nested(40))),
        "artifact.parts.0.data.data: .*nest deeper than 30",
    ),
    "too deep for metadata": (invalid(words("x", metadata={"a": nested(40)})), "metadata: .*30 levels"),
    "a list": ("[]", "input: is "),
    "no append": (json.dumps({"artifact": ID}), "append: is missing"),
    "append is null": (invalid(GOOD, append=None), "append: is "),
    "append is another word": (invalid(GOOD, append="yes"), "append: is "),
    "artifact is a text": (invalid(artifact="report"), "artifact: .*expected a value"),
    "artifact is a text of a text": (invalid(artifact='"report"'), "artifact: is "),
    "artifact is half an object": (invalid(artifact=json.dumps(ID)[:-1]), "artifact: is "),
    "parts is a text of a part": (
        invalid(artifact={**ID, "parts": json.dumps(GOOD)}),
        "artifact.parts: .*must be a list",
    ),
    "last_chunk is a number": (invalid(GOOD, last_chunk=1), "last_chunk: is "),
    "no artifact": ('{"append": true}', "artifact: is missing"),
    "no id": (invalid(artifact={"parts": [GOOD]}), "artifact.artifact_id: is missing"),
    "blank id": (invalid(artifact={**ID, "artifact_id": " \n"}), "artifact.artifact_id: .*must not be blank"),
    "id with a NUL": (invalid(artifact={**ID, "artifact_id": "a\0"}), "artifact.artifact_id: .*must not contain"),
    "long id": (
        invalid(artifact={**ID, "artifact_id": "x" * 201}),
        "artifact.artifact_id: .*must not be longer than 200",
    ),
    "id is a number": (invalid(artifact={**ID, "artifact_id": 1}), "artifact.artifact_id: .*must be a string"),
    "half a character in the id": (
        invalid(artifact={**ID, "artifact_id": "\ud83d"}),
        "artifact.artifact_id: .*unicode string",
    ),
    "half a character in the name": (invalid(artifact={**ID, "name": "\ude00"}), "artifact.name: .*lone surrogates"),
    "no parts": (invalid(artifact={"artifact_id": "a"}), "artifact.parts: is missing"),
    "empty parts": (invalid(), "artifact.parts: .*at least 1 item"),
    "parts is a part": (invalid(artifact={**ID, "parts": GOOD}), "artifact.parts: .*must be a list"),
    "a part is a text": (invalid(GOOD, "x"), "artifact.parts.1: "),
    "no kind": (invalid(GOOD, {"text": "x"}), "artifact.parts.1: has no kind"),
    "bad kind": (invalid(GOOD, {"kind": "image", "text": "x"}), "artifact.parts.1: .*'text', 'file', 'data'"),
    "no text": (invalid({"kind": "text"}), "artifact.parts.0.text.text: is missing"),
    "text is a number": (invalid(words(1)), "artifact.parts.0.text.text: .*must be a string"),  # type: ignore[arg-type]
    "media type is null": (invalid(words("x", mimeType=None)), "artifact.parts.0.text.mimeType: "),
    "metadata is a list": (invalid(words("x", metadata=[])), "artifact.parts.0.text.metadata: .*must be an object"),
    "half a character in metadata": (
        invalid(words("x", metadata={"\ud83d": 1})),
        "parts.0.metadata: .*lone surrogates",
    ),
    "half a character in a type": (invalid(words("x", mimeType="\ud83d")), "parts.0.mimeType: .*lone surrogates"),
    "half a character in data": (invalid(data(["\ud83d"])), "artifact.parts.0.data.data: .*lone surrogates"),
    "a number no double holds": (invalid(data(10**400)), "artifact.parts.0.data.data: .*a double can hold"),
    "no data": (invalid({"kind": "data"}), "artifact.parts.0.data.data: is missing"),
    "no file": (invalid({"kind": "file"}), "artifact.parts.0.file.file: is missing"),
    "bad base64": (invalid({"kind": "file", "file": {"bytes": "a?=="}}), "parts.0.file.file: .*not valid base64"),
    "neither source": (
        invalid({"kind": "file", "file": {"name": "x"}}),
        "exactly one of 'bytes' \\(base64\\) and 'uri'",
    ),
    "both sources": (invalid(file(b"x", uri="https://x")), "exactly one of 'bytes' \\(base64\\) and 'uri'"),
    "blank uri": (invalid({"kind": "file", "file": {"uri": ""}}), "parts.0.file.file.uri: .*must not be empty"),
    "text twice": (invalid(GOOD).replace('"x"', '"x", "text": "y"'), f"artifact.parts.0.text: {TWICE}"),
    "kind twice": (invalid(GOOD).replace('"x"', '"x", "kind": "text"'), f"artifact.parts.0.kind: {TWICE}"),
    "append twice": (invalid(GOOD)[:-1] + ', "append": true}', f"append: {TWICE}"),
    "id twice": (invalid(GOOD)[:-2] + ', "artifact_id": "b"}}', f"artifact.artifact_id: {TWICE}"),
    "parts twice": (invalid(GOOD)[:-2] + ', "parts": []}}', f"artifact.parts: {TWICE}"),
    "artifact twice": (invalid(GOOD)[:-1] + ', "artifact": {}}', f"artifact: {TWICE}"),
    "two media types": (
        invalid(words("x", mimeType="text/plain"), words("y", mimeType="text/html")),
        "'text/plain'.*'text/html'.*Use one media type",
    ),
    "another media type than the text has": (
        invalid(words("y", mimeType="text/html"), append=True),
        "'text/markdown'.*'text/html'.*Use one media type",
    ),
}
HERE = ReplaceParts((text("old", media_type="text/markdown"), FilePart(b"f")), name="n", last_chunk=True)


def assert_failed(outcome: Outcome, says: str) -> None:
    assert isinstance(outcome, Failed)
    assert re.search(says, outcome.content, re.DOTALL), outcome.content
    outcome.content.encode()


@pytest.mark.parametrize(("input_", "says"), INVALID.values(), ids=INVALID.keys())
async def test_bad_input_fails_says_how_to_do_it_right_and_leaves_the_version_as_it_was(input_: str, says: str) -> None:
    for pieces in ([input_], list(input_), cut(input_, len(input_) // 2, len(input_) - 3)):
        watched = Watched(HERE)
        before = await standing(watched.store)
        for piece in pieces:
            await watched.feed(piece)
        outcome = await watched.stream.finish()
        assert_failed(outcome, says)
        assert_failed(outcome, "(?i)nothing was changed")
        assert await standing(watched.store) == before
        if watched.client.told:
            assert watched.client.reads("a") == before[0].content  # type: ignore[index]
        assert await watched.stream.finish() == outcome


WHOLE = json.dumps(
    update(
        words("né", mimeType="text/markdown", metadata={"a": [1]}), file(b"1"), words("x"), name="m", last_chunk=True
    )
)


@pytest.mark.parametrize("before", [(), (HERE,), (replacing("d"),), (HERE, appending("d"))], ids=len)
@pytest.mark.parametrize("end", ["finish", "abort"])
async def test_input_that_ends_anywhere_is_taken_back(before: tuple[Change, ...], end: str) -> None:
    for length in range(len(WHOLE)):
        watched = Watched(*before)
        state = await standing(watched.store)
        for piece in cut(WHOLE[:length], length // 2):
            await watched.feed(piece)
        if end == "finish":
            assert_failed(await watched.stream.finish(), "complete, valid JSON.*Call it again, with all of it")
        else:
            await watched.stream.abort()
        assert_taken_back(state, await standing(watched.store))


@pytest.mark.parametrize("part", [words("x", metadata={"free": 0}), data({"free": 0})], ids=["metadata", "data"])
async def test_a_key_within_free_json_may_be_given_twice_and_the_last_one_counts(part: dict[str, Any]) -> None:
    given = invalid(part, artifact={"artifact_id": "a", "parts": [part]})
    watched = Watched()
    await watched.feed(given.replace('"free": 0', '"a": 1, "b": {"c": 1, "c": 2}, "a": 3'))
    assert isinstance(await watched.stream.finish(), Done)
    [written] = (await watched.store.get(by("t1"))).parts
    assert (written.data if isinstance(written, DataPart) else written.metadata) == {"a": 3, "b": {"c": 2}}


async def test_nothing_is_acted_on_after_an_error() -> None:
    watched = Watched(HERE)
    await watched.feed('{"append": 1')
    assert await watched.feed(', "artifact": {"artifact_id": "a", "parts": [{"kind": "text", "text": "x"}]}}') == 0
    assert isinstance(await watched.stream.finish(), Failed)
    await watched.stream.abort()
    assert watched.client.told == []


# -------------------------------------------------------------------------------------------- calls cut off


async def test_a_call_that_is_aborted_returns_the_draft_to_the_last_completed_call() -> None:
    watched = Watched(replacing("A"))
    await watched.feed(json.dumps(update(words("BC"), append=True, last_chunk=False)).partition("C")[0])
    assert watched.shown == "AB"
    await watched.stream.abort()
    assert [(told.append, told.parts) for told in watched.client.told[-1:]] == [(False, (text("A"),))]
    assert (await watched.store.get(by("t1"))).open


async def test_where_nothing_was_complete_the_text_stays_until_the_next_call_rewrites_it() -> None:
    watched = Watched()
    await watched.feed(json.dumps(update(words("partial"), last_chunk=False)).partition("ial")[0])
    await watched.stream.abort()
    assert (await watched.store.get(by("t1"))).text == "part"
    assert len(watched.client.told) == 1
    await call(UPDATE, [json.dumps(update(words("anew"), append=True, last_chunk=True))], workspace(watched.store))
    versions = await watched.store.versions(by("t1"))
    assert [(version.content.parts, version.incomplete) for version in versions] == [((text("anew"),), False)]


async def test_and_it_becomes_an_incomplete_version_where_none_does() -> None:
    watched = Watched()
    await watched.feed(json.dumps(update(words("partial"), last_chunk=False)).partition("ial")[0])
    await watched.stream.abort()
    await watched.store.close(by("t1"))
    versions = await watched.store.versions(by("t1"))
    assert [(version.content.parts, version.incomplete) for version in versions] == [((text("part"),), True)]


async def test_abort_of_a_call_that_wrote_nothing_changes_nothing() -> None:
    watched = Watched(HERE)
    await watched.feed('{"append": true, "artifact": {"artifact_id": "a", ')
    before = await standing(watched.store)
    await watched.stream.abort()
    await watched.stream.abort()
    assert await standing(watched.store) == before
    assert watched.client.told == []


# ----------------------------------------------------------------------------------------- the store says no


async def test_an_artifact_that_another_task_writes_is_a_failure_that_says_to_try_again() -> None:
    store = InMemoryArtifactStore()
    await store.apply(by("t2"), replacing("theirs"))
    before = await standing(store)
    outcome = await call(UPDATE, list(json.dumps(update(words("mine")))), workspace(store))
    assert_failed(outcome, "written by another task.*Try again")
    outcome = await call(UPDATE, [json.dumps(update(data(1)))], workspace(store))
    assert_failed(outcome, "written by another task.*Try again")
    assert await standing(store) == before


@pytest.mark.parametrize("streams", [True, False])
async def test_what_somebody_else_has_changed_since_is_not_replaced_and_the_model_is_told_what(streams: bool) -> None:
    store = InMemoryArtifactStore()
    place = workspace(store)
    await call(UPDATE, [json.dumps(update(words("one\ntwo\nthree"), last_chunk=True))], place)
    await store.apply(by("t2"), replacing("one\nTWO!\nthree", last_chunk=True))
    again = json.dumps(update(words("all new")))
    before = await standing(store)
    outcome = await call(UPDATE, list(again) if streams else [again], place)
    assert_failed(outcome, r'version 2 is current, it was version 1. In its lines 2 to 2, "two" has become "TWO!"')
    assert await standing(store) == before
    await call(artifact_read, ['{"artifact_id": "a"}'], place)
    assert isinstance(await call(UPDATE, [again], place), Done)


async def test_an_append_to_what_somebody_else_has_changed_keeps_that_and_shows_the_model_nothing() -> None:
    store = InMemoryArtifactStore()
    place = workspace(store)
    await call(UPDATE, [json.dumps(update(words("A"), last_chunk=True))], place)
    await store.apply(by("t2"), replacing("B", last_chunk=True))
    assert isinstance(await call(UPDATE, [json.dumps(update(words("+"), append=True, last_chunk=True))], place), Done)
    assert (await store.get(by("t1"))).text == "B+"
    assert_failed(await call(UPDATE, [json.dumps(update(words("C")))], place), "version 3 is current")


async def test_the_tasks_own_drafts_and_versions_are_never_somebody_elses() -> None:
    store = InMemoryArtifactStore()
    place = workspace(store)
    for last_chunk, append in [
        (False, False),
        (False, False),
        (True, True),
        (False, False),
        (False, True),
        (True, False),
    ]:
        whole = update(words("x"), append=append, last_chunk=last_chunk)
        assert isinstance(await call(UPDATE, [json.dumps(whole)], place), Done)
    await call(UPDATE, [json.dumps(update(words("cut off")))[:-4]], place)
    assert isinstance(await call(UPDATE, [json.dumps(update(words("y")))], place), Done)


async def test_a_limit_passes_through_feed_and_the_call_can_be_aborted() -> None:
    watched = Watched(replacing("old", last_chunk=True), limits=Limits(artifact_bytes=5))
    with pytest.raises(ArtifactTooLarge):
        for character in json.dumps(update(words("123456789"))):
            await watched.feed(character)
    assert watched.shown == "12345"
    await watched.stream.abort()
    assert (await watched.store.get(by("t1"))).text == "old"


async def test_too_many_parts_are_a_failure_that_says_what_to_do() -> None:
    watched = Watched(limits=Limits(parts=1))
    await watched.feed(json.dumps(update(*PICTURES)))
    assert_failed(await watched.stream.finish(), "2 parts; 1 are allowed.*Put a collection inside one data part")


# --------------------------------------------------------------------------------- what reader and model see


async def test_the_label_is_empty_until_it_is_known_what_is_written() -> None:
    watched = Watched()
    labels = []
    for piece in (
        '{"append": false, ',
        '"artifact": {"artifact_id": "report", ',
        '"name": "report.md", ',
        '"parts": [{"kind": "text", "text": "A',
    ):
        await watched.feed(piece)
        labels.append(watched.stream.label)
    assert labels == ["", "", "Writing report.md…", "Writing report.md…"]


async def test_the_label_shows_the_id_where_no_name_comes_before_the_parts() -> None:
    watched = Watched()
    await watched.feed('{"append": false, "artifact": {"artifact_id": "report", "parts": [{"kind": "text", "text": "')
    assert watched.stream.label == ""
    await watched.feed("A")
    assert watched.stream.label == "Writing report…"


def test_the_schema_has_the_properties_in_the_order_in_which_they_are_to_be_written() -> None:
    schema = UPDATE.input_schema
    assert list(schema["properties"]) == ["append", "last_chunk", "artifact"]
    assert schema["required"] == ["append", "artifact"]
    artifact = schema["$defs"]["ArtifactInput"]
    assert list(artifact["properties"]) == ["artifact_id", "name", "description", "parts"]
    assert artifact["required"] == ["artifact_id", "parts"]
    assert list(schema["$defs"]["TextInput"]["properties"]) == ["kind", "mimeType", "metadata", "text"]
    assert {"name", "mimeType", "bytes", "uri"} == set(schema["$defs"]["FileContent"]["properties"])
    json.dumps(schema)


@pytest.mark.parametrize(
    "rule",
    [
        "append=false replaces, append=true adds",
        "Appending to an artifact that does not exist makes it",
        "decided by its kind (text, file, data), because parts have no ids",
        "an artifact has at most one text part",
        "joined, in order, into one",
        "Files and data are kept as separate items, in order",
        "append=false replaces a kind as a whole",
        "Kinds you do not name stay",
        "partType",
        "a collection inside one data part",
        "one mimeType",
        "last_chunk=true",
        'never "… rest unchanged …"',
        "5,000 words goes in several calls, one per answer, with append=true",
    ],
)
def test_the_description_tells_the_part_rules(rule: str) -> None:
    assert rule in " ".join(UPDATE.description.split())


def test_it_asks_for_its_input_as_it_is_generated_and_does_not_wait_for_other_calls() -> None:
    assert (UPDATE.name, UPDATE.eager, UPDATE.acts_last) == ("artifact_update", True, False)
