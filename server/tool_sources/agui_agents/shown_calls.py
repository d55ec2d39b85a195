"""The tool calls of an AG-UI agent, which carries them out itself, as those of our turn.

Rule 1: calls end the round in which they were made, as those of a model do: before their first result, and before the
        next text. Their results follow when the input of every call is complete.
Rule 2: nothing is recorded: the run of the agent is the step.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from a2a_canvas.server.agent.endings import to_tool_result
from a2a_canvas.server.agent.loops.agent_turn import Turn
from a2a_canvas.tools.functions.results import RESULT_LIMIT
from a2a_canvas.tools.tool import Done, Failed


@dataclass(slots=True)
class ShownCalls:
    """The calls of one run."""

    turn: Turn
    _shown: dict[str, tuple[int, str]] = field(default_factory=dict)  # index and id of the complete calls
    _results: list[tuple[str, Done | Failed]] = field(default_factory=list)
    _unsettled: bool = False

    @property
    def open(self) -> bool:
        """Whether the input of a call is incomplete."""
        return bool(self.turn.reply_stream.open_calls)

    async def begin(self, call_id: str, name: str) -> None:
        self._unsettled = True
        await self.turn.reply_stream.begin_call(call_id, name, carried_out=True)
        await self.turn.progress(f"Running {name}…")

    async def add_input(self, call_id: str, piece: str) -> None:
        await self.turn.reply_stream.add_input(call_id, piece)

    async def end(self, call_id: str) -> None:
        """The input is complete."""
        if made := await self.turn.reply_stream.end_call(call_id):
            self._shown[call_id] = made.index, made.id
        await self._show_results()

    async def add_result(self, call_id: str, content: str, *, failed: bool) -> None:
        """The result of a call whose input is complete."""
        if len(content) > RESULT_LIMIT:
            content = f"{content[:RESULT_LIMIT]}\n[These are the first {RESULT_LIMIT} of {len(content)} characters.]"
        self._results.append((call_id, (Failed if failed else Done)(content)))
        await self._show_results()

    async def settle(self) -> None:
        """End the round of the calls, so that text begins another one."""
        if self._unsettled and not self.open:
            self._unsettled = False
            await self.turn.settle("tool_use")

    async def _show_results(self) -> None:
        if self.open or not self._results:
            return
        await self.settle()
        results, self._results = self._results, []
        for call_id, outcome in results:
            if shown := self._shown.pop(call_id, None):
                result, event = to_tool_result(*shown, outcome)
                await self.turn.output.emit(event)
                await self.turn.output.append_transcript((result,) if result else ())
