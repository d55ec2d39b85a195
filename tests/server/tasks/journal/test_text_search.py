"""What a search finds in the texts of artifacts: where, in which order, how much of it at once; on every backend."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.tasks.journal import text_search
from a2a_canvas.server.tasks.journal.owned_contexts import words_of
from a2a_canvas.server.tasks.journal.text_search import (
    MAX_EXCERPT,
    MAX_LINES,
    FoundLine,
    FoundText,
    ReadText,
    SearchProgress,
    StoredText,
    TextPage,
    TextPosition,
    TextQuery,
    excerpt,
    search_slice,
    search_texts,
)
from a2a_canvas.store.changes import AppendParts, EditText, Redo, ReplaceParts, Undo
from a2a_canvas.store.ids import ContextKey, context_key
from a2a_canvas.store.models import FilePart, text_part
from a2a_canvas.store.text.spans import Span
from tests.server.tasks.context_harness import BACKENDS, ContextHarness, open_contexts

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(params=BACKENDS)
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ContextHarness]:
    async with open_contexts(request.param, tmp_path) as opened:
        yield opened


# ------------------------------------------------------------------------------ on every backend


async def test_what_is_found_names_context_artifact_version_and_line(world: ContextHarness) -> None:
    await world.begin("t1", request="Write of the tides")
    await world.write("t1", "doc", "Old")
    await world.write("t1", "doc", "# Tides\n\nThe moon pulls the sea.\n", name="tides.md")
    assert await world.search("moon SEA") == TextPage(
        (FoundText("c", "Write of the tides", "doc", "tides.md", 2, (FoundLine(3, "The moon pulls the sea."),)),), None
    )


async def test_a_line_has_all_the_words_as_parts_of_words_and_in_any_case(world: ContextHarness) -> None:
    await world.begin("t1")
    await world.write("t1", "doc", "Die STRASSE am Meer\nDie Straße\nam Meer\n50% _low_\n")
    assert await world.found("straße") == [("c", "doc", 1, [1, 2])]
    assert await world.found("meer strasse") == [("c", "doc", 1, [1])]
    assert await world.found("% _LO") == [("c", "doc", 1, [4])]
    assert await world.found("meer nothing") == []
    assert await world.found(" ") == []


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.md", "# One\n- *tide*"), ("a.csv", 'a,b\n1,"tide"'), ("a.json", '{\n"name": "tide"}'), ("a.txt", "\r\ntide")],
)
async def test_every_kind_of_text_is_searched(world: ContextHarness, name: str, text: str) -> None:
    await world.begin("t1")
    await world.write("t1", "doc", text, name)
    assert await world.found("tide") == [("c", "doc", 1, [2])]


async def test_what_has_no_text_is_passed(world: ContextHarness) -> None:
    await world.begin("t1")
    await world.change("t1", "a", ReplaceParts((FilePart(b"tide", name="tide.bin"),), last_chunk=True))
    await world.write("t1", "b", "tide")
    assert await world.found("tide") == [("c", "b", 1, [1])]


async def test_only_the_current_version_is_searched(world: ContextHarness) -> None:
    await world.begin("t1")
    await world.write("t1", "doc", "The first words\nand a second line")
    await world.change("t1", "doc", EditText(Span(4, 9), "newest", base=1))
    assert await world.found("first") == []
    assert await world.found("newest words") == [("c", "doc", 2, [1])]
    await world.change("t1", "doc", Undo())
    assert await world.found("first words") == [("c", "doc", 1, [1])]
    assert await world.found("newest") == []
    await world.change("t1", "doc", Redo())
    assert await world.found("newest") == [("c", "doc", 2, [1])]


async def test_a_draft_is_not_searched(world: ContextHarness) -> None:
    await world.begin("t1")
    await world.change("t1", "new", AppendParts((text_part("growing"),)))
    assert await world.found("growing") == []
    await world.write("t1", "doc", "closed")
    await world.change("t1", "doc", AppendParts((text_part(" growing"),)))
    assert await world.found("closed") == [("c", "doc", 1, [1])]
    assert await world.found("growing") == []


async def test_what_was_removed_is_not_found(world: ContextHarness) -> None:
    await world.begin("t1")
    await world.write("t1", "doc", "tide")
    await world.reach("t1")
    await world.contexts.remove(ContextKey("c"), "")
    assert await world.found("tide") == []


async def test_what_is_removed_during_a_search_is_passed(
    world: ContextHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("a2a_canvas.server.tasks.sql.journal.sql_contexts.TEXTS_PER_STEP", 1)
    for context in ("old", "new"):
        await world.begin(f"t-{context}", context)
        for artifact in ("a", "b"):
            await world.write(f"t-{context}", artifact, "tide")
        await world.reach(f"t-{context}")
    query = TextQuery(("",), ("tide",))

    async def texts() -> AsyncGenerator[StoredText, None]:
        async for each in world.contexts.texts(query):
            yield each
            if each.position[1:] == ("new", "a"):
                await world.contexts.remove(ContextKey("new"), "")

    page = await search_texts(query, texts(), asyncio.Lock())
    assert [(each.context_id, each.artifact_id) for each in page.texts] == [("new", "a"), ("old", "a"), ("old", "b")]


async def test_nobody_finds_what_belongs_to_others_and_is_not_shared(world: ContextHarness) -> None:
    for task, context, owner in (
        ("t1", "same", "ann"),
        ("t2", "same", "bob"),
        ("t3", "other", "ann"),
        ("t4", "open", ""),
    ):
        await world.begin(task, context, owner)
        await world.write(task, "doc", f"tide of {owner}")
    assert await world.found("tide", "ann") == [("other", "doc", 1, [1]), ("same", "doc", 1, [1])]
    assert [each.lines[0].text for each in (await world.search("tide", "bob")).texts] == ["tide of bob"]
    shared = (context_key("ann", "other"),)
    assert await world.found("tide", "bob", shared=shared) == [("other", "doc", 1, [1]), ("same", "doc", 1, [1])]
    assert await world.found("tide", "carol") == []
    assert await world.found("tide") == [("open", "doc", 1, [1])]


@pytest.mark.parametrize("size", [1, 2, 3, 8])
@pytest.mark.parametrize("owner", ["", "ann"])
async def test_the_pages_together_are_all_that_is_found_each_once_the_newest_context_first(
    world: ContextHarness, size: int, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("a2a_canvas.server.tasks.sql.journal.sql_contexts.ROWS_PER_STEP", 3)
    monkeypatch.setattr("a2a_canvas.server.tasks.sql.journal.sql_contexts.TEXTS_PER_STEP", 2)
    for context in ("c", "c1", "c 1", "d"):
        await world.begin(f"t-{context}", context, owner)
        for artifact in ("b", "a b", "a"):
            await world.write(
                f"t-{context}", artifact, f"odd {context}" if artifact != "b" or context == "d" else "even"
            )
    pages = [await world.search("odd", owner, limit=size)]
    while after := pages[-1].next:
        pages.append(await world.search("odd", owner, limit=size, after=after))
    assert all(len(page.texts) == size for page in pages[:-1])
    seen = [(each.lines[0].text, each.artifact_id) for page in pages for each in page.texts]
    assert sorted(seen) == sorted(
        (f"odd {context}", artifact)
        for context in ("c", "c1", "c 1", "d")
        for artifact in ("a", "a b", *(["b"] if context == "d" else []))
    )
    assert [*dict(seen)] == ["odd d", "odd c 1", "odd c1", "odd c"]


@pytest.mark.parametrize(("limit", "most"), [("MAX_TEXTS", 3), ("MAX_BYTES", 9)])
async def test_a_page_searches_some_texts_and_the_next_one_continues_there(
    world: ContextHarness, limit: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_search, limit, most)
    await world.begin("t1")
    for number in range(8):
        await world.write("t1", f"a{number}", "odd" if number in (3, 7) else "may")
    pages = [await world.search("odd")]
    while after := pages[-1].next:
        pages.append(await world.search("odd", after=after))
    assert [[each.artifact_id for each in page.texts] for page in pages] == [[], ["a3"], ["a7"]]


# --------------------------------------------------------------------------------------- pure


WORDS = st.lists(st.text("aßS ", min_size=1, max_size=2), min_size=1, max_size=2)


@given(st.text("asßSẞ \n", max_size=40), WORDS, st.integers(1, 8), st.integers(1, 3))
def test_a_text_that_is_cut_anywhere_has_the_lines_of_the_whole(
    text: str, typed: list[str], size: int, piece: int
) -> None:
    words = words_of(" ".join(typed)) or ("a",)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("SLICE", size), ("PIECE", piece), ("MAX_EXCERPT", 4), ("BEFORE", 1)):
            patch.setattr(text_search, name, value)
        progress = search_slice(words, text, SearchProgress())
        while progress.at < len(text):
            progress = search_slice(words, text, progress)
        lines = enumerate(text.split("\n"), 1)
        found = [(number, line) for number, line in lines if all(word in line.casefold() for word in words)]
        expected = [FoundLine(number, excerpt(line, words)) for number, line in found[:MAX_LINES]]
    assert [*progress.lines[:MAX_LINES]] == expected


def test_a_step_searches_a_part_of_a_long_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_search, "SLICE", 10)
    text, words = "moon " + "x" * 32 + " sea\nlast", ("sea", "moon")
    progress, places = SearchProgress(), []
    while progress.at < len(text):
        progress = search_slice(words, text, progress)
        places.append(progress.at)
    assert places == [10, 20, 30, 40, 42, 46]
    assert progress.lines == (FoundLine(1, text.split("\n")[0]),)


def test_the_first_lines_are_enough() -> None:
    lines = search_slice(("a",), "a\n" * 100, SearchProgress()).lines
    assert [line.number for line in lines] == [*range(1, MAX_LINES + 1)]


def test_an_excerpt_is_a_line_without_the_spaces_around_it() -> None:
    assert excerpt("\t  the sea\r", ("sea",)) == "the sea"


@pytest.mark.parametrize("before", ["x", "ß", "x" * 70_000])
def test_an_excerpt_of_a_long_line_is_around_the_first_word(before: str) -> None:
    line = f"{before * 300} the sea and the moon {'y' * 300}"
    found = excerpt(line, ("moon", "sea"))
    assert found.startswith("…")
    assert found.endswith("…")
    assert " the sea and the moon " in found
    assert len(found) <= MAX_EXCERPT + 2


def test_a_word_at_either_end_of_a_long_line_is_in_the_excerpt() -> None:
    assert excerpt("sea" + "x" * 300, ("sea",)).startswith("seax")
    assert excerpt("x" * 300 + "sea", ("sea",)).endswith("xsea")


# ------------------------------------------------------------------------------- among others


def stored(number: int, text: str) -> StoredText:
    read = ReadText("", text, len(text))
    return StoredText((START, "c", f"a{number}"), ContextKey("c"), "c", 1, lambda: read)


async def in_order(*texts: StoredText) -> AsyncGenerator[StoredText, None]:
    for text in texts:
        yield text


async def test_one_slice_of_all_searches_is_searched_at_a_time_and_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_search, "SLICE", 4)
    searching, at_once, threads = 0, [], set()
    search = search_slice

    def counted(*given: object) -> SearchProgress:
        nonlocal searching
        searching += 1
        at_once.append(searching)
        threads.add(threading.get_ident())
        try:
            return search(*given)  # type: ignore[arg-type]
        finally:
            searching -= 1

    monkeypatch.setattr(text_search, "search_slice", counted)
    monkeypatch.setattr(text_search, "search_slice", counted)
    turn, query = asyncio.Lock(), TextQuery(words=("sea",))
    texts = [stored(number, "a line\n" * 5 + "sea") for number in range(3)]
    pages = await asyncio.gather(*(search_texts(query, in_order(*texts), turn) for _ in range(3)))
    assert [len(page.texts) for page in pages] == [3, 3, 3]
    assert len(at_once) > 3 * 3 * 3
    assert max(at_once) == 1
    assert threading.get_ident() not in threads


async def test_a_step_that_is_cancelled_keeps_its_turn_until_its_thread_ends() -> None:
    started, release, loop = asyncio.Event(), threading.Event(), asyncio.get_running_loop()

    def read() -> ReadText:
        loop.call_soon_threadsafe(started.set)
        release.wait()
        return ReadText("", "sea")

    turn = asyncio.Lock()
    text = replace(stored(1, ""), read=read)
    searching = asyncio.create_task(search_texts(TextQuery(words=("sea",)), in_order(text), turn))
    await started.wait()
    searching.cancel()
    for _ in range(10):
        await asyncio.sleep(0)
    assert turn.locked()
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await searching
    assert not turn.locked()


async def test_a_page_counts_what_it_has_decoded_though_it_was_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_search, "MAX_BYTES", 100)
    monkeypatch.setattr(text_search, "SLICE", 40)
    file = replace(stored(0, ""), read=lambda: ReadText("photo.jpg", "", 60))
    found_early = stored(1, "sea\n" * 25)
    page = await search_texts(TextQuery(words=("sea",)), in_order(file, found_early, stored(2, "sea")), asyncio.Lock())
    assert [each.artifact_id for each in page.texts] == ["a1"]
    assert page.next == found_early.position


async def test_texts_are_fetched_in_the_turn_of_their_search() -> None:
    turn, in_turn = asyncio.Lock(), []

    async def texts() -> AsyncGenerator[StoredText, None]:
        for number in range(2):
            in_turn.append(turn.locked())
            yield stored(number, "sea")

    await search_texts(TextQuery(words=("sea",)), texts(), turn)
    assert in_turn == [True, True]


async def test_a_search_that_is_full_reads_no_further_text() -> None:
    read: list[TextPosition] = []

    async def texts() -> AsyncGenerator[StoredText, None]:
        for number in range(9):
            each = stored(number, "sea")
            read.append(each.position)
            yield each

    page = await search_texts(TextQuery(words=("sea",), limit=2), texts(), asyncio.Lock())
    assert page.next == read[1]
    assert len(read) == 3
