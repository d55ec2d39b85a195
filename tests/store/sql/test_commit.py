"""Group commit: what is said in one step is written together, in order, at last, or given up."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from a2a_canvas.store.errors import Unavailable
from a2a_canvas.store.ids import ContextKey
from a2a_canvas.store.sql import commit
from a2a_canvas.store.sql.commit import AlreadyCommitted, GroupCommit, LeaseLost
from a2a_canvas.store.sql.database import Database
from tests.property_examples import examples


class Page:
    """A connection."""

    def __init__(self, paper: Paper) -> None:
        self._paper = paper

    @contextmanager
    def begin_nested(self) -> Iterator[None]:
        before = [*self._paper.open]
        try:
            yield
        except BaseException:
            self._paper.open = before
            raise


class Paper:
    """A database that is a list of transactions. Before each try it asks `failing` for the error that it ends with.

    `begun` is set when there is something in a transaction, `written` when one has gone through.
    """

    def __init__(self) -> None:
        self.transactions: list[list[str]] = []
        self.open: list[str] = []
        self.failing: Callable[[], Exception | None] = lambda: None
        self.begun, self.written, self.gate = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.gate.set()

    async def transact(self, statements: Callable[[Connection], None]) -> None:
        self.open = []
        error = self.failing()
        await asyncio.sleep(0)
        statements(cast(Connection, Page(self)))
        await self.gate.wait()
        if error and not isinstance(error, Broke):
            raise error
        self.transactions.append(self.open)
        self.written.set()
        if error:
            raise error


class Writer:
    """Stages words. The context of each is its first character; those with `!` cannot be written."""

    def __init__(self, paper: Paper) -> None:
        self.staged: list[str] = []
        self.durable: list[str] = []
        self.failed: list[str] = []
        self._paper = paper

    def collect(self, contexts: Collection[str] | None = None) -> Words | None:
        words = [word for word in self.staged if contexts is None or word[0] in contexts]
        self.staged = [word for word in self.staged if word not in words]
        return Words(self, words, self._paper) if words else None


class Words:
    def __init__(self, writer: Writer, words: list[str], paper: Paper) -> None:
        self._writer = writer
        self._words = words
        self._paper = paper

    def write(self, connection: Connection) -> None:
        if "fenced" in self._words:
            raise LeaseLost
        if "written" in self._words and self._paper.transactions:
            raise AlreadyCommitted
        for word in self._words:
            if "!" in word:
                raise ValueError(word)
            self._paper.open.append(word)
        self._paper.begun.set()

    def done(self) -> None:
        self._writer.durable += self._words

    def by_context(self) -> dict[str, Words]:
        contexts = dict.fromkeys(word[0] for word in self._words)
        return {each: self._of([word for word in self._words if word[0] == each]) for each in contexts}

    def _of(self, words: list[str]) -> Words:
        return Words(self._writer, words, self._paper)

    def release(self, connection: Connection) -> None:
        self._paper.open.append(f"free {''.join(self._words)}")

    def failed(self) -> None:
        self._writer.failed += self._words


class Beginning:
    """What every transaction begins with: it has not gone through yet."""

    def __init__(self, paper: Paper) -> None:
        self._paper = paper
        self._before = len(paper.transactions)

    def write(self, connection: Connection) -> None:
        if len(self._paper.transactions) > self._before:
            raise AlreadyCommitted

    def done(self) -> None:
        pass

    def by_context(self) -> dict[str, Words]:
        return {}


class LeaseGuard:
    def __init__(self, paper: Paper) -> None:
        self._paper = paper

    def collect(self, contexts: Collection[str] | None = None) -> Beginning:
        return Beginning(self._paper)


class Broke(Unavailable):
    """The connection broke after the commit."""


class CommitHarness:
    def __init__(self, interval: float = 60.0, committed: Callable[[float], None] | None = None) -> None:
        self.paper = Paper()
        self.lost = 0
        self.unwritten: dict[str, str] = {}
        self.commits = GroupCommit(
            cast(Database, self.paper), self._lose, self._fail, interval, spacing=0, committed=committed
        )
        self.commits.join(LeaseGuard(self.paper))
        self.one, self.other = Writer(self.paper), Writer(self.paper)
        self.commits.join(self.one)
        self.commits.join(self.other)

    def _lose(self) -> None:
        self.lost += 1
        self.commits.give_up()

    def _fail(self, context_id: str, error: Exception) -> None:
        self.unwritten[context_id] = str(error)


@pytest.fixture
async def harness(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[CommitHarness]:
    monkeypatch.setattr(commit, "RETRY_SECONDS", 0)
    harness = CommitHarness()
    harness.commits.start()
    yield harness
    await harness.commits.stop()


async def test_what_all_say_in_one_step_is_one_transaction_in_the_order_they_joined(harness: CommitHarness) -> None:
    harness.other.staged.append("b")
    harness.commits.flush_soon()
    harness.one.staged.append("a")
    harness.commits.flush_now()
    await harness.commits.flushed()
    assert harness.paper.transactions == [["a", "b"]]
    assert (harness.one.durable, harness.other.durable, harness.commits.commits) == (["a"], ["b"], 1)


async def test_while_one_transaction_is_on_its_way_the_next_one_gathers(harness: CommitHarness) -> None:
    harness.paper.gate.clear()
    harness.one.staged.append("a")
    harness.commits.flush_now()
    await harness.paper.begun.wait()
    for word in "bcd":
        harness.one.staged.append(word)
        harness.commits.flush_now()
        await asyncio.sleep(0)
    harness.paper.gate.set()
    await harness.commits.flushed()
    assert harness.paper.transactions == [["a"], ["b", "c", "d"]]


async def test_what_is_staged_soon_is_written_without_anybody_waiting_for_it() -> None:
    harness = CommitHarness(interval=0.01)
    harness.commits.start()
    harness.one.staged.append("a")
    harness.commits.flush_soon()
    assert harness.paper.transactions == []
    await harness.paper.written.wait()
    await harness.commits.stop()
    assert harness.one.durable == ["a"]


async def test_what_another_replica_follows_is_written_at_once_after_a_pause(harness: CommitHarness) -> None:
    harness.one.staged += ["a", "b"]
    harness.commits.flush_soon()
    harness.other.staged.append("b2")
    harness.commits.flush_soon(followed=ContextKey("b"))
    await harness.paper.written.wait()
    assert harness.paper.transactions == [["b", "b2"]]  # of that context alone
    await harness.commits.flushed()
    assert harness.paper.transactions == [["b", "b2"], ["a"]]


@pytest.mark.parametrize(("other", "lost", "failed"), [("b", 0, ["a!"]), ("b!", 1, [])])
async def test_a_followed_context_that_cannot_be_written_is_judged_with_all_others(
    harness: CommitHarness, other: str, lost: int, failed: list[str]
) -> None:
    harness.one.staged.append(other)
    harness.commits.flush_soon()
    harness.one.staged.append("a!")
    harness.commits.flush_soon(followed=ContextKey("a"))
    for _ in range(20):
        await asyncio.sleep(0)
    assert (harness.lost, harness.one.failed) == (lost, failed)
    assert harness.one.durable == ([] if lost else ["b"])


async def test_and_then_only_when_the_last_transaction_is_long_enough_ago(
    harness: CommitHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit, "FOLLOWED_INTERVAL", 60.0)
    harness.one.staged.append("a")
    harness.commits.flush_now()
    await harness.commits.flushed()
    harness.paper.begun.clear()
    for word in "bc":
        harness.one.staged.append(word)
        harness.commits.flush_soon(followed=ContextKey(word))
        await asyncio.sleep(0)
    assert not harness.paper.begun.is_set()
    await harness.commits.flushed()
    assert harness.paper.transactions == [["a"], ["b", "c"]]


def test_uvloop_tells_no_time_for_what_is_due_at_once() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def due_at_once() -> None:
        commits = CommitHarness().commits
        for followed in (ContextKey("a"), None, ContextKey("b")):
            commits.flush_soon(followed=followed)
        await asyncio.sleep(0)
        assert commits._flush_requested.is_set()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(due_at_once())


async def test_settled_waits_for_what_was_staged_before_and_not_for_what_comes_after(harness: CommitHarness) -> None:
    await harness.commits.flushed()
    harness.paper.gate.clear()
    harness.one.staged.append("a")
    harness.commits.flush_soon()
    first = asyncio.create_task(harness.commits.flushed())
    await harness.paper.begun.wait()
    harness.one.staged.append("b")
    harness.commits.flush_soon()
    second = asyncio.create_task(harness.commits.flushed())
    await asyncio.sleep(0)
    harness.paper.failing = lambda: Unavailable("it is away")
    harness.paper.gate.set()
    await first
    assert not second.done()
    harness.paper.failing = lambda: None
    await second
    assert harness.paper.transactions == [["a"], ["b"]]


async def test_who_leaves_while_waiting_is_not_missed(harness: CommitHarness) -> None:
    harness.one.staged.append("a")
    harness.commits.flush_soon()
    leaving = asyncio.create_task(harness.commits.flushed())
    await asyncio.sleep(0)
    leaving.cancel()
    await harness.commits.flushed()
    assert harness.one.durable == ["a"]


def run_without_pauses(test: Coroutine[Any, Any, None]) -> None:
    retry, commit.RETRY_SECONDS = commit.RETRY_SECONDS, 0
    logging.disable(logging.CRITICAL)
    try:
        asyncio.run(test)
    finally:
        commit.RETRY_SECONDS = retry
        logging.disable(logging.NOTSET)


def away_for(harness: CommitHarness) -> list[int]:
    """How many of the next transactions fail, to be set."""
    left = [0]

    def failing() -> Exception | None:
        left[0] -= 1
        return Unavailable("it is away") if left[0] >= 0 else None

    harness.paper.failing = failing
    return left


@settings(max_examples=examples(60))
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["one", "other"]),
            st.sampled_from("ab"),
            st.sampled_from(["now", "soon", "followed"]),
            st.integers(0, 2),
        ),
        max_size=15,
    )
)
def test_failing_transactions_are_tried_again_and_nothing_is_left_out_or_out_of_order(
    said: list[tuple[str, str, str, int]],
) -> None:
    async def run() -> None:
        harness = CommitHarness()
        harness.commits.start()
        left = away_for(harness)
        words = [f"{context}{number:02}" for number, (_, context, _, _) in enumerate(said)]
        for word, (who, context, when, failures) in zip(words, said, strict=True):
            getattr(harness, who).staged.append(word)
            left[0] += failures
            if when == "now":
                harness.commits.flush_now()
            else:
                harness.commits.flush_soon(followed=ContextKey(context) if when == "followed" else None)
            if when != "soon":
                await asyncio.sleep(0)
        await harness.commits.flushed()
        await harness.commits.stop()
        for who in ("one", "other"):
            for context in "ab":
                mine = [
                    word for word, (name, of, _, _) in zip(words, said, strict=True) if (name, of) == (who, context)
                ]
                assert [word for word in getattr(harness, who).durable if word[0] == context] == mine
        written = [word for transaction in harness.paper.transactions for word in transaction]
        assert sorted(written) == sorted(words)
        assert harness.lost == 0

    run_without_pauses(run())


CONTEXTS = "healthy", "other", "sick"
STAGED = st.tuples(
    st.sampled_from(["one", "other"]), st.sampled_from(CONTEXTS), st.booleans(), st.booleans(), st.integers(0, 1)
)


@settings(max_examples=examples(100))
@given(st.lists(STAGED, max_size=15))
def test_whatever_cannot_be_written_the_other_contexts_are_written_once_and_in_order(
    said: list[tuple[str, str, bool, bool, int]],
) -> None:
    async def run() -> None:
        harness = CommitHarness()
        harness.commits.start()
        left = away_for(harness)
        words: dict[str, list[str]] = {"one": [], "other": []}
        for number, (who, context, poison, now, failures) in enumerate(said):
            word = f"{context[0]}{number:02}{'!' if poison and context == 'sick' else ''}"
            getattr(harness, who).staged.append(word)
            words[who].append(word)
            left[0] += failures
            harness.commits.flush_soon()
            if now:
                harness.commits.flush_now()
                await asyncio.sleep(0)
        with suppress(Unavailable):
            await harness.commits.flushed()
        await harness.commits.stop()
        for who, staged in words.items():
            writer = getattr(harness, who)
            for context in "ho":
                mine = [word for word in staged if word[0] == context]
                assert [word for word in writer.durable if word[0] == context] == mine
            assert sorted([*writer.durable, *writer.failed]) == sorted(staged)
            assert not any("!" in word for word in writer.durable)
        written = [word for transaction in harness.paper.transactions for word in transaction if "free" not in word]
        assert sorted(written) == sorted([*harness.one.durable, *harness.other.durable])
        assert harness.lost == 0

    run_without_pauses(run())


async def test_while_it_fails_it_says_why_once_and_when_it_goes_on(
    harness: CommitHarness, caplog: pytest.LogCaptureFixture
) -> None:
    reasons: list[Exception | None] = [Unavailable("it is away"), Unavailable("it is away"), None]
    seen: list[bool] = []

    def failing() -> Exception | None:
        seen.append(harness.commits.healthy.is_set())
        return reasons.pop(0)

    harness.paper.failing = failing
    harness.one.staged.append("a")
    harness.commits.flush_now()
    await harness.commits.flushed()
    assert seen == [True, False, False]
    assert harness.commits.healthy.is_set()
    assert harness.commits.failing is None
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]
    assert "it is away" in caplog.text


async def test_who_was_taken_over_gives_up_what_is_staged_and_goes_on_afresh(harness: CommitHarness) -> None:
    harness.one.staged += ["a", "fenced"]
    harness.other.staged.append("b")
    harness.commits.flush_now()
    with pytest.raises(Unavailable):
        await harness.commits.flushed()
    assert (harness.lost, harness.paper.transactions, harness.one.durable) == (1, [], [])
    harness.other.staged.append("c")
    harness.commits.flush_now()
    await harness.commits.flushed()
    assert harness.paper.transactions == [["c"]]


async def test_what_can_never_be_written_is_given_up_too(
    harness: CommitHarness, caplog: pytest.LogCaptureFixture
) -> None:
    harness.paper.failing = lambda: ValueError("a fault of ours")
    harness.one.staged.append("a")
    harness.commits.flush_now()
    with pytest.raises(Unavailable):
        await harness.commits.flushed()
    assert harness.lost == 1
    assert "cannot be written" in caplog.text


async def test_what_cannot_be_written_fails_alone_and_all_of_its_context_with_it(harness: CommitHarness) -> None:
    harness.one.staged += ["a1", "b1", "c1"]
    harness.other.staged += ["b2!", "c2", "b3"]
    harness.commits.flush_now()
    await harness.commits.flushed()
    assert harness.paper.transactions == [["a1", "c1", "c2", "free b1", "free b2!b3"]]
    assert harness.unwritten == {"b": "b2!"}
    assert (harness.one.durable, harness.other.durable) == (["a1", "c1"], ["c2"])
    assert (harness.one.failed, harness.other.failed) == (["b1"], ["b2!", "b3"])
    assert harness.lost == 0


async def test_what_is_the_only_thing_to_be_written_fails_too(harness: CommitHarness) -> None:
    harness.one.staged.append("a!")
    harness.commits.flush_now()
    await harness.commits.flushed()
    assert (harness.unwritten, harness.one.failed, harness.lost) == ({"a": "a!"}, ["a!"], 0)


async def test_if_nothing_at_all_can_be_written_no_context_is_to_blame(harness: CommitHarness) -> None:
    harness.one.staged += ["a!", "b!"]
    harness.commits.flush_now()
    with pytest.raises(Unavailable):
        await harness.commits.flushed()
    assert (harness.unwritten, harness.lost) == ({}, 1)


async def test_what_cannot_even_be_collected_does_not_end_the_writing(harness: CommitHarness) -> None:
    collect = harness.one.collect

    def broken(contexts: object = None) -> Words | None:
        harness.one.collect = collect  # type: ignore[method-assign]
        raise ValueError("a fault of ours")

    harness.one.collect = broken  # type: ignore[method-assign]
    harness.commits.flush_now()
    with pytest.raises(Unavailable):
        await harness.commits.flushed()
    harness.one.staged.append("a")
    harness.commits.flush_now()
    await harness.commits.flushed()
    assert (harness.lost, harness.paper.transactions) == (1, [["a"]])


async def test_a_database_that_goes_away_while_the_culprit_is_looked_for_is_waited_for(harness: CommitHarness) -> None:
    errors: list[Exception | None] = [None, Unavailable("it is away"), None]
    harness.paper.failing = lambda: errors.pop(0)
    harness.one.staged += ["a", "b!"]
    harness.commits.flush_now()
    await harness.commits.flushed()
    assert harness.paper.transactions == [["a", "free b!"]]
    assert (harness.one.durable, harness.one.failed, harness.unwritten) == (["a"], ["b!"], {"b": "b!"})


async def test_a_connection_that_breaks_after_the_commit_does_not_make_forget_who_failed(
    harness: CommitHarness,
) -> None:
    errors: list[Exception | None] = [None, Broke("the connection broke"), None]
    harness.paper.failing = lambda: errors.pop(0)
    harness.one.staged += ["a", "b!"]
    harness.commits.flush_now()
    await harness.commits.flushed()
    assert harness.paper.transactions == [["a", "free b!"], []]
    assert (harness.one.durable, harness.one.failed, harness.unwritten) == (["a"], ["b!"], {"b": "b!"})


async def test_a_transaction_that_had_gone_through_counts_once_another_commit_confirms_it(
    harness: CommitHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A standby that has the second commit has the first one, too."""
    monkeypatch.setattr(commit, "RETRY_SECONDS", 0)
    durable: list[list[str]] = []
    errors: list[Exception | None] = [Unavailable("the standby has not confirmed a commit"), None]

    def failing() -> Exception | None:
        durable.append([*harness.one.durable])
        return errors.pop(0)

    harness.paper.failing = failing
    harness.paper.transactions.append(["before"])
    harness.one.staged.append("written")
    harness.commits.flush_now()
    await harness.commits.flushed()
    assert durable == [[], []]
    assert harness.one.durable == ["written"]
    assert [words for words in harness.paper.transactions if words] == [["before"]]


async def test_who_waits_when_it_stops_is_told(harness: CommitHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit, "STOP_SECONDS", 0)
    harness.paper.gate.clear()
    harness.one.staged.append("a")
    waiting: asyncio.Future[Any] = asyncio.ensure_future(harness.commits.flushed())
    harness.commits.flush_now()
    await asyncio.sleep(0)
    await harness.commits.stop()
    with pytest.raises(Unavailable, match="stopping"):
        await waiting


async def test_the_duration_of_each_commit_is_told_and_failed_attempts_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(commit, "RETRY_SECONDS", 0)
    told: list[float] = []
    harness = CommitHarness(committed=told.append)
    loop, errors, passed = asyncio.get_running_loop(), [Unavailable("no disk")], [0.0]
    now = loop.time
    monkeypatch.setattr(loop, "time", lambda: now() + sum(passed))

    def failing() -> Unavailable | None:
        """The first attempt fails at once; the second one takes a thousand seconds."""
        if errors:
            return errors.pop()
        passed.append(1000.0)
        return None

    harness.paper.failing = failing
    harness.commits.start()
    harness.one.staged.append("a")
    harness.commits.flush_now()
    await harness.commits.flushed()
    await harness.commits.stop()
    assert harness.commits.failures == 1
    [seconds] = told
    assert 1000 <= seconds < 2000
