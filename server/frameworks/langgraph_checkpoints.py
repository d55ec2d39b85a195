"""The checkpoints of a graph, among the values of its conversation (`turn.values`).

Rule 1: a checkpoint is durable when `aput` returns. The writes of a node wait in memory until what the node has shown
        is recorded, and are recorded with it: at the latest with the next checkpoint of their graph.
Rule 2: each message that is answered has rows of its own, one for each namespace (a graph, a subgraph): the newest
        checkpoint replaces the one before. The rows of the last run that has completed are what the next one begins
        with, so a run that fails or is cancelled changes nothing for the next one.
Rule 3: a run deletes the rows of all others but that one, and the one that waits for an answer.
Rule 4: a run holds the values of its conversation, so another task of it waits for its end.

| row, after `langgraph/` | what |
|---|---|
| `head` | the last run that has completed: a digest of its task and message |
| `waiting` | the run that waits for an answer |
| `RUN/NAMESPACE` | its checkpoint |
| `RUN/NAMESPACE/NODE` | the writes of a run of a node that follows the checkpoint |
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_serializable_checkpoint_metadata,
)

from a2a_canvas.server.agent.loops.agent_turn import Turn

_PREFIX = "langgraph/"
_HEAD = f"{_PREFIX}head"
_WAITING = f"{_PREFIX}waiting"


def _namespace(config: RunnableConfig) -> str:
    namespace: str = config["configurable"].get("checkpoint_ns", "")
    return namespace


def _row(namespace: str) -> str:
    """The name of a namespace; `run-` if it belongs to one run of a node, and so ends with the task."""
    kind = "run" if ":" in namespace else "graph"
    return f"{kind}-{hashlib.sha256(namespace.encode()).hexdigest()[:32]}"


class TurnCheckpoints(BaseCheckpointSaver[int]):
    """The checkpointer of one run of an agent's function.

    Args:
        wait_until_shown: waits until everything is shown that a subgraph has streamed so far.

    Attributes:
        namespaces: of the graphs that have asked for their checkpoints.
    """

    def __init__(self, turn: Turn, wait_until_shown: Callable[[], Awaitable[None]]) -> None:
        super().__init__()
        self._turn = turn
        self._values = turn.values
        # A task answers several messages if some come while it works.
        self._run_id = hashlib.sha256(f"{turn.task_id} {turn.message.message_id}".encode()).hexdigest()[:32]
        self._prefix = f"{_PREFIX}{self._run_id}/"
        self._wait_until_shown = wait_until_shown
        self._staged: dict[str, bytes] = {}
        self._obsolete: list[str] = []
        self._written: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._loop = asyncio.get_running_loop()
        self.namespaces = {""}

    # ---------------------------------------------------------------------- the life of a task

    async def hold(self) -> None:
        """Keep other tasks of the conversation waiting until this run ends; find the obsolete rows (rule 3)."""
        with self._turn.within("run"):  # no step of this name is recorded: what it sets is held, and never stored
            await self._values.set(f"{_PREFIX}running", b"")
        kept = {await self._values.get(_HEAD), await self._values.get(_WAITING), self._run_id.encode()}
        for name in await self._values.list(_PREFIX):
            run, _, row = name.removeprefix(_PREFIX).partition("/")
            if row and run.encode() not in kept:
                self._obsolete.append(name)

    def node_of(self, namespace: str) -> str:
        """The run of a node with which what is shown in a namespace is recorded: the innermost that has checkpoints."""
        path = namespace.split("|")
        while "|".join(path[:-1]) not in self.namespaces:
            path.pop()
        return path[-1].rpartition(":")[2]

    async def commit(self, node: str = "") -> None:
        """Set the writes of a run of a node, which has ended; by default, all that wait."""
        if node:
            await self._written[node].wait()  # the graph says first that the node has ended
        for name in [each for each in self._staged if each.endswith(f"/{node}" if node else "")]:
            await self._values.set(name, self._staged.pop(name))

    async def wait(self) -> None:
        """The run is about to wait for an answer."""
        await self.commit()
        self._written.clear()  # interrupted nodes write again
        await self._values.set(_WAITING, self._run_id.encode())

    async def complete(self) -> None:
        """The next run begins with the checkpoints of this one: of its graph, and of subgraphs that remember."""
        head = (await self._values.get(_HEAD) or b"").decode()
        own = await self._values.list(self._prefix)
        for name in await self._values.list(f"{_PREFIX}{head}/") if head not in ("", self._run_id) else ():
            row = name.rpartition("/")[2]
            value = await self._values.get(name)
            if row.startswith("graph-") and self._prefix + row not in own and value is not None:
                await self._values.set(self._prefix + row, value)
            await self._values.delete(name)
        if await self._values.get(_WAITING) == self._run_id.encode():
            await self._values.delete(_WAITING)
        await self._values.set(_HEAD, self._run_id.encode())

    # ---------------------------------------------------------------------- what graphs call

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        namespace = _namespace(config)
        self.namespaces.add(namespace)
        own = self._prefix + _row(namespace)
        raw = await self._get(own)
        if raw is None and ":" not in namespace and (head := await self._values.get(_HEAD)):
            raw = await self._get(f"{_PREFIX}{head.decode()}/{_row(namespace)}")
        if raw is None:
            return None
        checkpoint, metadata, parent = self._load(raw)
        if get_checkpoint_id(config) not in (None, checkpoint["id"]):
            return None
        return CheckpointTuple(
            self._config(config, checkpoint["id"]),
            checkpoint,
            metadata,
            self._config(config, parent) if parent else None,
            [
                (name.rpartition("/")[2], channel, value)
                for name in sorted({*await self._values.list(f"{own}/"), *self._staged})
                if name.startswith(f"{own}/") and (stored := await self._get(name)) is not None
                for channel, value in self._writes(stored, checkpoint["id"]).values()
            ],
        )

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        found = await self.aget_tuple(config) if config and before is None else None
        if found and (filter or {}).items() <= found.metadata.items():
            yield found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        namespace = _namespace(config)
        if namespace:  # its stream is read meanwhile; what the outermost graph has streamed is shown already
            await self._wait_until_shown()
        own = self._prefix + _row(namespace)
        stored = checkpoint, get_serializable_checkpoint_metadata(config, metadata), get_checkpoint_id(config)

        async def commit() -> None:
            ended = (f"{own}/",) if namespace else (f"{own}/", f"{self._prefix}run-")
            for name in [each for each in self._staged if each.startswith(ended)]:
                del self._staged[name]
            for prefix in ended:
                self._obsolete += await self._values.list(prefix)
            for name in self._obsolete:
                await self._values.delete(name)
            self._obsolete.clear()
            await self._values.set(own, self._dump(stored))

        await self._turn.model.checkpoint(_row(namespace), commit)
        return self._config(config, checkpoint["id"])

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        checkpoint_id = get_checkpoint_id(config) or ""
        name = f"{self._prefix}{_row(_namespace(config))}/{task_id}"
        raw = await self._get(name)
        kept = self._writes(raw, checkpoint_id) if raw else {}
        for number, (channel, value) in enumerate(writes):
            index = WRITES_IDX_MAP.get(channel, number)
            if index < 0 or index not in kept:
                kept[index] = channel, value
        self._staged[name] = self._dump((checkpoint_id, kept))
        self._written[task_id].set()

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return asyncio.run_coroutine_threadsafe(self.aget_tuple(config), self._loop).result()

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        put = self.aput(config, checkpoint, metadata, new_versions)
        return asyncio.run_coroutine_threadsafe(put, self._loop).result()

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        asyncio.run_coroutine_threadsafe(self.aput_writes(config, writes, task_id), self._loop).result()

    # ---------------------------------------------------------------------- rows

    def _config(self, config: RunnableConfig, checkpoint_id: str) -> RunnableConfig:
        configurable = {"checkpoint_ns": _namespace(config), "checkpoint_id": checkpoint_id}
        return {"configurable": {"thread_id": config["configurable"]["thread_id"], **configurable}}

    async def _get(self, name: str) -> bytes | None:
        return self._staged[name] if name in self._staged else await self._values.get(name)

    def _writes(self, raw: bytes, checkpoint_id: str) -> dict[int, tuple[str, Any]]:
        stored_for, writes = self._load(raw)
        return writes if stored_for == checkpoint_id else {}

    def _dump(self, value: Any) -> bytes:
        kind, data = self.serde.dumps_typed(value)
        return kind.encode() + b"\n" + data

    def _load(self, raw: bytes) -> Any:
        kind, _, data = raw.partition(b"\n")
        return self.serde.loads_typed((kind.decode(), data))
