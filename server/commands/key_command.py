"""The commands for credentials: `a2a-canvas key new`, `key list` and `key revoke`, and `session revoke`."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, TextIO

from a2a_canvas.server.accounts.api_key import HASH_PREFIX, SHARED_USER, ApiKey, hash_of, new_key, valid_name
from a2a_canvas.server.accounts.sql.sql_api_keys import add_key, count_keys, list_keys, revoke_key
from a2a_canvas.server.accounts.sql.sql_sessions import end_sessions_of
from a2a_canvas.server.backend.broker_use import announce_revocation
from a2a_canvas.server.backend.migrations import check, revision, upgrade
from a2a_canvas.server.backend.open_database import DatabaseError, file_of, open_database, place_of
from a2a_canvas.server.settings.settings import PREFIX, SettingsError, load
from a2a_canvas.server.tasks.sql.journal.journal_reading import count_anonymous
from a2a_canvas.server.wire import TOKEN_VARIABLE
from a2a_canvas.store.sql.database import Database

VARIABLE = f"{PREFIX}API_KEYS"


async def make_key(
    name: str, user: str, values: Mapping[str, Any], out: TextIO, remarks: TextIO, *, stored: bool, program: str
) -> int:
    """Run `key new`: the key is written once, alone on its stream, so that a shell can redirect it.

    Args:
        user: the name if it is empty.
        values: the options of the command line, as `load` takes them.
        stored: store it in the database; otherwise write its line for the settings.
        program: how the user calls this program.

    Raises:
        SettingsError: a name, an option or a variable is wrong, or there is a key of this name.
        DatabaseError: the database cannot be opened, reached or used.
    """
    user = user or name
    _check_names(name, user)
    text = new_key(user)
    key = ApiKey(name, user, hash_of(text), made_at=datetime.now(UTC))
    lines = [line async for line in _add(key, values, program)] if stored else [_describe_unstored(key)]
    out.write(f"{text}\n")
    out.flush()
    remarks.writelines(f"{line}\n" for line in lines)
    return 0


async def _add(key: ApiKey, values: Mapping[str, Any], program: str) -> AsyncIterator[str]:
    """Store a key. Yields sentences for the user about it and its database."""
    settings = load(values)
    file = file_of(settings.database)
    is_new = file is not None and not file.exists()
    async with _database_of(values, new=True) as database:
        async with database.read() as connection:
            keys, anonymous = await count_keys(connection), await count_anonymous(connection)
        if not await add_key(database, key):
            raise SettingsError(f"There is already a key {key.name}: revoke it first, or choose another name.")
    yield f"{_describe_key(key)} It is not shown again: only its hash is stored, in {place_of(settings.database)}."
    if is_new:
        named = "database" in settings.model_fields_set  # by an option, a variable or the folder of an agent
        advice = "" if named else f" If you serve a folder, name it: {program} {_command_of(key)} FOLDER"
        yield f"The database is new: only servers using it accept the key.{advice}"
    if not keys.made:
        yield (
            "From now on every request to a server using this database needs a key, even after all keys are revoked "
            "(--allow-anonymous lifts that)."
        )
        yield f"To use the key in a terminal: export {TOKEN_VARIABLE}=KEY"
    if anonymous and not keys.in_force:
        tasks, them = (
            ("1 earlier task belongs", "it") if anonymous == 1 else (f"{anonymous} earlier tasks belong", "them")
        )
        yield f"{tasks} to no user. To give {them} to {key.user}, start the server with --adopt-anonymous {key.user}."


def _command_of(key: ApiKey) -> str:
    user = () if key.user == key.name else ("--user", key.user)
    return shlex.join(("key", "new", key.name, *user))


async def show_keys(values: Mapping[str, Any], out: TextIO, program: str) -> int:
    """Run `key list`; raises as `make_key` does."""
    async with _database_of(values) as database:
        keys = await list_keys(database)
    out.writelines(f"{line}\n" for line in _table(keys, program))
    return 0


async def end_key(name: str, values: Mapping[str, Any], out: TextIO, program: str) -> int:
    """Run `key revoke`; raises as `make_key` does."""
    async with _database_of(values) as database:
        if not await revoke_key(database, name, datetime.now(UTC)):
            raise SettingsError(f"There is no valid key {name}. List them with `{program} key list`.")
        async with database.read() as connection:
            last = not (await count_keys(connection)).in_force
        await announce_revocation(load(values), database)
    out.write(f"The key {name} is revoked: servers using this database reject it within two seconds.\n")
    if last:
        out.write(
            "It was the last valid key, and requests still need one. To serve without keys, start the server with "
            f"--allow-anonymous. To create another: {program} key new NAME\n"
        )
    return 0


async def end_sessions(user: str, values: Mapping[str, Any], out: TextIO) -> int:
    """Run `session revoke`; raises as `make_key` does. The user may have no sessions."""
    async with _database_of(values) as database:
        await end_sessions_of(database, user, datetime.now(UTC))
        await announce_revocation(load(values), database)
    out.write(f"{user} is signed out on all servers of this database within two seconds.\n")
    return 0


@asynccontextmanager
async def _database_of(values: Mapping[str, Any], *, new: bool = False) -> AsyncIterator[Database]:
    """The database, which a server may have open as well; a new SQLite file gets its schema."""
    url = load(values).database
    if url == "memory":
        raise DatabaseError(f"--database memory stores no keys: name the server's database, or set {VARIABLE}.")
    async with open_database(url, shared=True, new=new) as database:
        if new and database.file and not await _has_schema(database):
            await upgrade(database)
        await check(database)
        yield database


async def _has_schema(database: Database) -> bool:
    async with database.read() as connection:
        return bool(await connection.run_sync(revision))


def _check_names(name: str, user: str) -> None:
    for what, text in (("name", name), ("user", user)):
        if not valid_name(text):
            raise SettingsError(f"The {what} {text!r} must be 1 to 128 characters, without spaces, commas and =.")
    if user == SHARED_USER:
        raise SettingsError(f"The user {user!r} is reserved for holders of the shared token: choose another.")


def _describe_unstored(key: ApiKey) -> str:
    setting = f"{VARIABLE}={key.name}={HASH_PREFIX}{key.key_hash}"
    return f"{_describe_key(key)} It is not stored: a server accepts it with {setting}"


def _describe_key(key: ApiKey) -> str:
    return f'Key "{key.name}" for user {key.user}.'


def _table(keys: list[ApiKey], program: str) -> Iterator[str]:
    if not keys:
        yield f"There are no keys. To create one: {program} key new NAME"
        return
    rows = [("NAME", "USER", "MADE", "STATE"), *(_row(key) for key in keys)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for *cells, last in rows:
        yield "  ".join([*(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)), last])


def _row(key: ApiKey) -> tuple[str, str, str, str]:
    assert key.made_at
    valid = "refused: reserved user" if key.user == SHARED_USER else "in force"
    state = f"revoked {key.revoked_at:%Y-%m-%d}" if key.revoked_at else valid
    return key.name, key.user, f"{key.made_at:%Y-%m-%d}", state
