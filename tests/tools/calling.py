"""Calls of a tool as a model makes them: input cut into fragments, fed, finished."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from store.base import ArtifactStore
from store.memory import InMemoryArtifactStore
from tools.base import Outcome, Tool, Workspace


def workspace(store: ArtifactStore | None = None, task: str = "t1") -> Workspace:
    return Workspace(store or InMemoryArtifactStore(), "c", task)


async def call(tool: Tool, fragments: Iterable[str], place: Workspace | None = None) -> Outcome:
    stream = tool.open(place or workspace())
    for fragment in fragments:
        await stream.feed(fragment)
    return await stream.finish()


def cut(text: str, *places: int) -> list[str]:
    return [text[a:b] for a, b in pairwise([0, *sorted(places), len(text)])]


@st.composite
def fragments(draw: st.DrawFn, text: str) -> list[str]:
    """`text` in one piece, character by character, or cut anywhere."""
    places = st.lists(st.integers(0, len(text)), max_size=12).map(lambda at: cut(text, *at))
    return draw(st.sampled_from([[text], list(text)]) | places)


@st.composite
def shuffled(draw: st.DrawFn, value: Any) -> Any:
    """The same value with the properties of all objects in another order."""
    match value:
        case dict():
            names = draw(st.permutations(list(value)))
            return {name: draw(shuffled(value[name])) for name in names}
        case list():
            return [draw(shuffled(item)) for item in value]
        case _:
            return value


@st.composite
def dumped(draw: st.DrawFn, value: Any) -> str:
    ascii_only, indent = draw(st.booleans()), draw(st.sampled_from([None, None, 1]))
    return json.dumps(value, ensure_ascii=ascii_only, indent=indent)
