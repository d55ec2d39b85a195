"""The push configs and the outbox in a database. `server/push/outbox.py` has the rules.

Rule 1: a claim is a row's `claim` with the time at which it expires as `due_at`. What finishes a delivery writes
        nothing if the claim is no longer its own.
Rule 2: a few transactions at once: what the journal writes must not wait for connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Select, and_, delete, exists, func, not_, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from a2a_canvas.server.accounts.access import Caller
from a2a_canvas.server.agent.events import ArtifactChanged
from a2a_canvas.server.push.fair_choice import Due, FreePlaces
from a2a_canvas.server.push.outbox import CLAIM_SECONDS, MAX_CONFIGS, Backlog, Delivery
from a2a_canvas.server.push.sql.outbox_rows import CONFIG_SIZE, KEY, config_row, push_configs, push_outbox
from a2a_canvas.server.tasks.codec import NO_CONTENTS, Contents, entries_of_json
from a2a_canvas.server.tasks.errors import TaskNotFound, TooManyPushConfigs
from a2a_canvas.server.tasks.push_configs import ConfigKey, PushConfig
from a2a_canvas.server.tasks.record import Entry
from a2a_canvas.server.tasks.sql.projections.records import tasks
from a2a_canvas.store.ids import SEPARATOR, ContextKey, new_id
from a2a_canvas.store.sql.database import Database, insert
from a2a_canvas.store.sql.kept import add_kept
from a2a_canvas.store.sql.readable_rows import ReadableRows
from a2a_canvas.store.sql.reading import VersionKey, version_contents
from a2a_canvas.store.sql.times import from_microseconds, to_microseconds

TRANSACTIONS = 2
"""Transactions at once (rule 2)."""
CHOICE = 4
"""Due configs that are read for each free place: not all of them may take one."""

_OUTBOX_KEY = (push_outbox.c.context_id, push_outbox.c.task_id, push_outbox.c.config_id)


class SqlPush:
    """`PushConfigs` and `Outbox` in a database."""

    def __init__(self, database: Database, now: Callable[[], datetime]) -> None:
        self._database = database
        self._now = now
        self._transactions = asyncio.Semaphore(min(TRANSACTIONS, database.writers - 2))
        self._wake = asyncio.Event()
        self._readable = ReadableRows("push notification")

    @property
    def wake(self) -> asyncio.Event:
        return self._wake

    async def recover(self) -> None:
        """Release what an earlier process has claimed, where there is no other one."""
        if self._database.dialect == "sqlite":
            claimed = update(push_configs).where(push_configs.c.claim.is_not(None))
            async with self._write() as connection:
                await connection.execute(claimed.values(claim=None, due_at=self._microseconds()))

    # ----------------------------------------------------------------------- as `PushConfigs`

    async def add(self, config: PushConfig) -> None:
        row = config_row(config)
        async with self._write() as connection:
            of_it = tasks.c.context_id == config.key.context_id, tasks.c.task_id == config.key.task_id
            marked = update(tasks).where(*of_it).values(push=True).returning(tasks.c.task_id)
            if await connection.scalar(marked) is None:
                raise TaskNotFound(config.key.task_id)
            others = push_configs.c.config_id != config.key.config_id
            of_guests = push_configs.c.config_id.contains(SEPARATOR)
            same = of_guests if config.key.is_guests else not_(of_guests)
            count = select(func.count()).select_from(push_configs).where(*_of_task(*config.key[:2]), others, same)
            if (await connection.scalar(count) or 0) >= MAX_CONFIGS:
                raise TooManyPushConfigs(config.key.task_id, MAX_CONFIGS)
            before = await connection.scalar(select(CONFIG_SIZE).where(_is_config(config.key))) or 0
            added = insert(connection, push_configs).values(row)
            added = added.on_conflict_do_update(index_elements=[*KEY], set_=row).returning(CONFIG_SIZE)
            after = await connection.scalar(added) or 0
            waits = exists().where(_waiting(config.key))
            await connection.execute(
                update(push_configs).where(_is_config(config.key), waits).values(due_at=self._microseconds())
            )
            await connection.run_sync(add_kept, {config.key.context_id: after - before})
        self._wake.set()

    async def get(self, key: ConfigKey) -> PushConfig | None:
        async with self._read() as connection:
            row = (await connection.execute(select(push_configs).where(_is_config(key)))).one_or_none()
        return _config(row) if row else None

    async def list(self, context_id: ContextKey, task_id: str, after: str, limit: int) -> Sequence[PushConfig]:
        active = push_configs.c.failure == "", push_configs.c.config_id > after
        query = select(push_configs).where(*_of_task(context_id, task_id), *active)
        async with self._read() as connection:
            rows = (await connection.execute(query.order_by(push_configs.c.config_id).limit(limit))).all()
        return tuple(_config(row) for row in rows)

    async def remove(self, key: ConfigKey) -> None:
        async with self._write() as connection:
            freed = await connection.scalar(delete(push_configs).where(_is_config(key)).returning(CONFIG_SIZE)) or 0
            await connection.execute(delete(push_outbox).where(_waiting(key)))
            await connection.run_sync(add_kept, {key.context_id: -freed})

    # ----------------------------------------------------------------------------- as `Outbox`

    async def claim(self, free: FreePlaces) -> Sequence[Delivery]:
        async with self._read() as connection:
            rows = (await connection.execute(self._due(free))).all()
        chosen = free.choose(Due(ConfigKey(*row[:3]), *row[3:]) for row in rows)
        if not chosen:
            return ()
        claim = new_id()
        these = tuple_(*KEY).in_([each.key for each in chosen]), push_configs.c.due_at <= self._microseconds()
        async with self._write() as connection:
            still_due = select(*KEY).where(*these).with_for_update(skip_locked=True)
            keys = [ConfigKey(*row) for row in await connection.execute(still_due)]
            if keys:
                mine = tuple_(*KEY).in_(keys)
                await connection.execute(update(push_configs).where(mine).values(claim=claim, due_at=self._expiry()))
        return await self._first(claim, keys) if keys else ()

    def _due(self, free: FreePlaces) -> Select[Any]:
        """Due configs that may get a place: the first one of each user, the second one of each, and so on."""
        columns = (*KEY, push_configs.c.target, push_configs.c.registrant, push_configs.c.attempts)
        position = func.row_number().over(partition_by=push_configs.c.registrant, order_by=push_configs.c.due_at)
        due = select(*columns, push_configs.c.due_at, position.label("position")).where(
            push_configs.c.due_at <= self._microseconds()
        )
        if free.full_targets:
            due = due.where(push_configs.c.target.not_in(free.full_targets))
        if free.full_users:
            due = due.where(push_configs.c.registrant.not_in(free.full_users))
        if free.failing <= 0:
            due = due.where(push_configs.c.attempts == 0)
        found = due.subquery()
        ordered = select(*(found.c[column.name] for column in columns)).order_by(found.c.position, found.c.due_at)
        return ordered.limit(CHOICE * free.total)

    async def _first(self, claim: str, keys: Collection[ConfigKey]) -> Sequence[Delivery]:
        """The first notification of each of these configs. Configs without any are done.

        A notification that cannot be decoded is logged and removed. Its config is released if there are others, also
        one that was written since the look: the next claim reads that, and other configs do not wait.
        """
        heads = select(*_OUTBOX_KEY, func.min(push_outbox.c.generation)).where(tuple_(*_OUTBOX_KEY).in_(keys))
        entry = tuple_(*_OUTBOX_KEY, push_outbox.c.generation).in_(heads.group_by(*_OUTBOX_KEY))
        mine = select(push_configs).where(tuple_(*KEY).in_(keys), push_configs.c.claim == claim)
        async with self._read() as connection:
            configs = (await connection.execute(mine)).all()
            rows = {_key(row): row for row in await connection.execute(select(push_outbox).where(entry))}
        entries = {key: self._readable.decode([row], _entry) for key, row in rows.items()}
        first = [
            Delivery(_config(row), entry, row.attempts, claim)
            for row in configs
            for entry in entries.get(_key(row), ())
        ]
        over = {key: rows[key].generation if key in rows else 0 for row in configs if not entries.get(key := _key(row))}
        for key, generation in over.items():
            if await self._advance(key, claim, generation):
                await self._release(key, claim)
        return first

    async def whole(self, delivery: Delivery) -> Delivery | None:
        key, event = delivery.config.key, delivery.entry.event
        if not isinstance(event, ArtifactChanged):
            return delivery
        this = and_(_waiting(key), push_outbox.c.generation == delivery.entry.generation)
        version = VersionKey.from_ids(key.context_id, event.artifact_id, event.version)
        async with self._read() as connection:
            row = (await connection.execute(select(push_outbox).where(this))).one_or_none()
            contents = await connection.run_sync(version_contents, [version])
        if row is None:
            return None
        content = contents.get(version)
        return replace(delivery, entry=_entry(row, {(event.artifact_id, event.version): content} if content else {}))

    async def mark_delivered(self, delivery: Delivery) -> Delivery | None:
        key = delivery.config.key
        if not await self._advance(key, delivery.claim, delivery.entry.generation):
            return None
        return next(iter(await self._first(delivery.claim, [key])), None)

    async def _advance(self, key: ConfigKey, claim: str, generation: int) -> bool:
        """Remove what was delivered; whether there is more, and the config is still claimed."""
        async with self._write() as connection:
            if not await self._lock(connection, key, claim):
                return False
            done = push_outbox.c.generation <= generation
            await connection.execute(delete(push_outbox).where(_waiting(key), done))
            more = await connection.scalar(select(push_outbox.c.generation).where(_waiting(key)).limit(1)) is not None
            left = {"due_at": self._expiry(), "claim": claim} if more else {"due_at": None, "claim": None}
            await connection.execute(update(push_configs).where(_is_config(key)).values(attempts=0, **left))
            return more

    async def mark_failed(self, delivery: Delivery, retry_at: datetime) -> None:
        due_at = to_microseconds(retry_at)
        await self._finish(delivery.config.key, delivery.claim, attempts=delivery.attempts + 1, due_at=due_at)

    async def give_up(self, delivery: Delivery, reason: str) -> None:
        key = delivery.config.key
        async with self._write() as connection:
            if await self._finish_in(connection, key, delivery.claim, attempts=0, due_at=None, failure=reason):
                await connection.execute(delete(push_outbox).where(_waiting(key)))

    async def release(self, delivery: Delivery) -> None:
        await self._release(delivery.config.key, delivery.claim)

    async def _release(self, key: ConfigKey, claim: str) -> None:
        await self._finish(key, claim, due_at=self._microseconds())
        self._wake.set()

    async def _finish(self, key: ConfigKey, claim: str, **values: Any) -> None:
        async with self._write() as connection:
            await self._finish_in(connection, key, claim, **values)

    async def _finish_in(self, connection: AsyncConnection, key: ConfigKey, claim: str, **values: Any) -> bool:
        """Whether the claim was still the one of this process."""
        mine = _is_config(key), push_configs.c.claim == claim
        done = await connection.execute(update(push_configs).where(*mine).values(claim=None, **values))
        return done.rowcount == 1

    async def backlog(self) -> Backlog:
        query = select(func.count(), func.min(push_outbox.c.written_at)).select_from(push_outbox)
        async with self._read() as connection:
            depth, oldest = (await connection.execute(query)).one()
        return Backlog(depth, None if oldest is None else from_microseconds(oldest))

    async def _lock(self, connection: AsyncConnection, key: ConfigKey, claim: str) -> bool:
        """Lock the config's row; whether the claim is still the one of this process."""
        row = select(push_configs.c.claim).where(_is_config(key)).with_for_update()
        return await connection.scalar(row) == claim

    @asynccontextmanager
    async def _read(self) -> AsyncIterator[AsyncConnection]:
        async with self._transactions, self._database.read() as connection:
            yield connection

    @asynccontextmanager
    async def _write(self) -> AsyncIterator[AsyncConnection]:
        async with self._transactions, self._database.write() as connection:
            yield connection

    def _microseconds(self) -> int:
        return to_microseconds(self._now())

    def _expiry(self) -> int:
        return to_microseconds(self._now() + timedelta(seconds=CLAIM_SECONDS))


def _is_config(key: ConfigKey) -> Any:
    return and_(*_of_task(*key[:2]), push_configs.c.config_id == key.config_id)


def _of_task(context_id: ContextKey, task_id: str) -> tuple[Any, Any]:
    return push_configs.c.context_id == context_id, push_configs.c.task_id == task_id


def _waiting(key: ConfigKey) -> Any:
    return and_(*(column == value for column, value in zip(_OUTBOX_KEY, key, strict=True)))


def _key(row: Any) -> ConfigKey:
    return ConfigKey(row.context_id, row.task_id, row.config_id)


def _config(row: Any) -> PushConfig:
    names = ("version", "url", "target", "token", "scheme", "credentials", "failure")
    return PushConfig(
        key=_key(row), registrant=Caller(row.registrant, row.link), **{name: getattr(row, name) for name in names}
    )


def _entry(row: Any, contents: Contents = NO_CONTENTS) -> Entry:
    [entry] = entries_of_json(row.epoch, row.entry, contents)
    return entry
