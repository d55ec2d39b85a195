"""Rounds of tool calls of every kind, and a model that plays them."""

import itertools
from base64 import b64encode
from collections.abc import AsyncGenerator, Sequence
from typing import Any, Literal

from hypothesis import strategies as st

from a2a_canvas.server.agent.model import ModelError, ModelEvent, ModelRequest, ModelText, ToolUse
from a2a_canvas.server.agent.models.playback import answer

Round = Sequence[tuple[str, dict[str, Any]]]


metadata = st.dictionaries(st.sampled_from(["k", "l"]), st.sampled_from(["v", 1, None, [True]]), max_size=2)


texts = st.fixed_dictionaries(
    {"kind": st.just("text"), "text": st.text(max_size=12)},
    optional={"mimeType": st.sampled_from(["text/plain", "text/markdown"]), "metadata": metadata},
)


files = st.fixed_dictionaries(
    {
        "kind": st.just("file"),
        "file": st.binary(max_size=6).map(lambda raw: {"bytes": b64encode(raw).decode(), "name": "f"})
        | st.just({"uri": "https://example.com/f", "mimeType": "image/png"}),
    },
    optional={"metadata": metadata},
)


data = st.fixed_dictionaries(
    {"kind": st.just("data"), "data": st.sampled_from([None, 3, 0.5, "x", [1], {"a": {"b": 1}}])}
)


updates = st.builds(
    lambda append, last, artifact: ("artifact_update", {"append": append, "last_chunk": last, "artifact": artifact}),
    st.booleans(),
    st.booleans(),
    st.fixed_dictionaries(
        {"artifact_id": st.sampled_from(["a", "b"]), "parts": st.lists(texts | files | data, min_size=1, max_size=4)},
        optional={"name": st.sampled_from(["n", "m"]), "description": st.just("d")},
    ),
)


ends = st.sampled_from([("artifact_list", {}), ("ask_user", {"question": "?"}), ("decline_task", {"reason": "no"})])


rounds = st.lists(st.lists(updates | ends, min_size=1, max_size=3), min_size=1, max_size=4)


class Player:
    """An `LLM` that plays one round after the other. The streams with the numbers in `breaks` break off."""

    name = "player"
    thinking: Literal["delta", "accumulated"] = "delta"

    def __init__(self, rounds: Sequence[Round], sizes: Sequence[int], breaks: dict[int, int]) -> None:
        self._rounds = iter(rounds)
        self._sizes = itertools.cycle(sizes)
        self._breaks = breaks
        self._ids, self._streams = itertools.count(), itertools.count()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        number = next(self._streams)
        calls = [ToolUse(f"t{next(self._ids)}", name, input) for name, input in next(self._rounds, ())]
        events = answer(request, calls or [ModelText("Done.")], self._sizes)
        for count, event in enumerate(events):
            if count == self._breaks.get(number, -1):
                raise ModelError("It broke.", retryable=True)
            yield event
