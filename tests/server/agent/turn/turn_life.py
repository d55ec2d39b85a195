"""A task over several runs of its turn, each of which a crash may cut off."""

from collections.abc import Mapping

from a2a_canvas.server.agent.events import (
    AssistantOutput,
    LlmCallCompleted,
    MessageReceived,
    MessageStarted,
    State,
    StatusChanged,
    TextBlockStarted,
    ToolUseStarted,
    TranscriptAppended,
)
from a2a_canvas.server.agent.turn.function_calls import find_no_tool
from a2a_canvas.server.agent.turn.history import to_user_input, without_credentials
from a2a_canvas.server.agent.turn.pending_calls import asks_for_credentials
from a2a_canvas.server.agent.turn.resume import InterruptedTurn, open_drafts, roll_back_drafts
from a2a_canvas.server.agent.turn.turn import TurnRequest, run_turn
from a2a_canvas.store.models import Limits
from a2a_canvas.tools.registry import TOOLS
from tests.fakes import EventRecorder, ids, no_time, said
from tests.server.agent.edit.operation_harness import check_edits
from tests.server.agent.turn.cut_harness import Cut, Cuts, WaitingStore, YieldingModel, folded, items_of
from tests.server.agent.turn.told_annotations import ToldAnnotations
from tests.server.agent.turn.turn_scripts import START


class Life:
    """A task over several runs of its turn, each of which may be cut off.

    Attributes:
        told: what was said in all of them, as far as it was kept.
    """

    def __init__(self, llm, record=START, documents=None, limits: Limits | None = None, tools=TOOLS) -> None:
        self.llm = YieldingModel(llm)
        self.told = EventRecorder()
        self.annotations = ToldAnnotations(self.told)
        self.base = record
        self.limits = limits
        self.tools = tools
        self.find_tool = find_no_tool
        self.credentials: str | None = None
        self.store = WaitingStore(limits, documents)

    @property
    def record(self):
        return folded(self.base, self.told.events)

    async def run(self) -> list[Cut]:
        """One run, to its end; where it could be cut off."""
        cuts = Cuts(self.told, self.store)
        with cuts.taken():
            await self._take_back()
            await self.go_on(await open_drafts(self.store, "context", "task"))
        return cuts.all

    async def run_to_end(self, answers: Mapping[str, str] | None = None) -> list[tuple["Life", Cut]]:
        """As many runs as it takes, questions answered with "yes" or as `answers` says; where it could be cut off."""
        cuts: list[tuple[Life, Cut]] = []
        while not self.record.state.terminal:
            if self.record.state.paused:
                self.answer((answers or {}).get(self.record.message.text, "yes"))
            cuts += [(self, cut) for cut in await self.run()]
        return cuts

    async def go_on(self, drafts: tuple[str, ...]) -> None:
        record = self.record
        await run_turn(
            TurnRequest(
                task_id="task",
                context_id="context",
                earlier=(),
                transcript=record.transcript,
                new_messages=lambda closing: (),
                progress=record.progress,
                changed=tuple(record.artifacts),
                drafts=drafts,
                credentials=self.credentials,
            ),
            llm=self.llm,
            tools=self.tools,
            store=self.store,
            emit=self.told,
            new_id=ids(),
            sleep=no_time,
            find_tool=self.find_tool,
            make_review=self.annotations.make_review,
        )

    async def _take_back(self) -> None:
        record = self.record
        interrupted = InterruptedTurn(
            "task",
            "context",
            record.progress.round if record.call_open else None,
            tuple((e.edit_id, e.artifact_id, e.selection, e.mode) for e in record.open_edits.values()),
            await open_drafts(self.store, "context", "task"),
        )
        await roll_back_drafts(interrupted, self.store, self.told, tuple(record.artifacts))

    def answer(self, words: str) -> None:
        """The user answers what the task asks."""
        message = said(f"m-{len(self.told.events)}", words)
        self.credentials = None
        if asks_for_credentials(self.record.transcript):
            message, self.credentials = without_credentials(message), words
        remembered = TranscriptAppended((to_user_input(message),))
        self.told.events += [MessageReceived(message), remembered, StatusChanged(State.WORKING)]

    def crash(self, cut: Cut) -> "Life":
        """What whoever takes the task up finds."""
        life = Life(self.llm, self.base, cut.documents, self.limits, self.tools)
        life.told.events = self.told.events[: cut.told]
        return life

    def texts(self) -> dict[str, str]:
        return {name: document.artifact.text for name, document in self.store.documents.items()}

    def check(self) -> None:
        """The laws of a turn hold for all of its runs together, and watchers have what is stored."""
        events, record = self.told.events, self.record
        places = [event.place.index for event in events if isinstance(event, TextBlockStarted | ToolUseStarted)]
        assert places == list(range(len(places)))
        rounds = [event.round for event in self.told.of(MessageStarted)]
        assert rounds == sorted(rounds)
        assert len(rounds) == len(self.told.of(LlmCallCompleted))
        assert not record.call_open
        assert not record.open_edits
        calls = [item.call for item in items_of(events) if isinstance(item, AssistantOutput)]
        assert calls == sorted(calls)
        assert {name: artifact.content.text for name, artifact in record.artifacts.items()} == self.texts()
        assert not any(document.draft for document in self.store.documents.values())
        check_ended(events)


def check_ended(events) -> None:
    check_edits([event for event in events if not isinstance(event, LlmCallCompleted)])
