"""The checks of a server's environment on this machine. They write nothing, and leave no port open.

Rule 1: a check takes a few seconds at most.
Rule 2: reasons for which a server refuses to start are reported in its own words.
"""

from __future__ import annotations

import asyncio
import os
import re
import resource
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

import httpx

from a2a_canvas.server.accounts.api_key import NO_KEYS, KeyCount
from a2a_canvas.server.agent.model import (
    LLM,
    NO_MODEL,
    SCRIPT_PREFIX,
    MessageStart,
    ModelError,
    ModelMessage,
    ModelRequest,
    ModelText,
    close_llm,
)
from a2a_canvas.server.app import create_app
from a2a_canvas.server.commands.database_check import allowed_connections
from a2a_canvas.server.commands.doctor.findings import Finding, Verdict, failure, ok, warning
from a2a_canvas.server.commands.doctor.judgements import (
    judge_card,
    judge_clocks,
    judge_latency,
    judge_limits,
    judge_open_files,
    judge_openness,
    judge_space,
    judge_standbys,
    judge_trust,
    judge_workers,
)
from a2a_canvas.server.listening import listen
from a2a_canvas.server.protocols.a2a_v1.card.card_file import CardError
from a2a_canvas.server.protocols.edge.origins import TRUSTED_PROXIES
from a2a_canvas.server.protocols.identity.configuration import check_open
from a2a_canvas.server.settings.model_choice import choose_llm
from a2a_canvas.server.settings.settings import ALL_ADDRESSES, REHEARSAL, Settings, SettingsError, authority
from a2a_canvas.server.tool_sources.agent_loop import describe_agent, probe_agent
from a2a_canvas.store.text.wording import amount

if TYPE_CHECKING:
    from a2a_canvas.store.sql.database import Database

SECONDS: Final = 5.0
"""The timeout of the database, in seconds."""
PORT_SECONDS: Final = 1.0
"""The timeout of a server on this machine, in seconds."""
MODEL_SECONDS: Final = 30.0
"""The timeout of the model's first token, in seconds; loading a model takes long."""
_CUT_OFF = re.compile(r"max_(completion_|output_)?tokens|output limit", re.IGNORECASE)
"""The error of a provider that answers, but rejects a limit of one token."""

_REQUEST = ModelRequest("Answer in one word.", (ModelMessage("user", (ModelText("Are you there?"),)),))


async def check_model(settings: Settings, *, call: bool) -> AsyncIterator[Finding]:
    """Check the model, and the agent that uses it."""
    try:
        llm = choose_llm(settings, os.environ)
    except SettingsError as error:
        yield failure("model", str(error))
        return
    async for finding in _check_agent(settings, llm):
        yield finding
    if llm.name == REHEARSAL or llm.name.startswith(SCRIPT_PREFIX):
        yield ok("model", f"{llm.name} needs no provider.")
    elif llm.name == NO_MODEL:
        yield ok("model", "The agent has a loop of its own, which needs no model.")
    elif call:
        yield await _call(settings)
    else:
        yield ok("model", f"{llm.name} was not called.")
    await close_llm(llm)


async def _check_agent(settings: Settings, llm: LLM) -> AsyncIterator[Finding]:
    try:
        app = create_app(settings, llm)
    except CardError as error:
        yield failure("card", str(error))
    except SettingsError as error:
        yield failure("agent", str(error))
    else:
        reason = await probe_agent(app.state.agent)
        yield failure("agent", reason) if reason else ok("agent", describe_agent(settings, app.state.agent))
        yield judge_card(settings)


async def _call(settings: Settings) -> Finding:
    """Call the model for one token."""
    llm = choose_llm(settings.model_copy(update={"max_output_tokens": 1, "thinking": "off"}), os.environ)
    begun = time.perf_counter()
    try:
        async with asyncio.timeout(MODEL_SECONDS):
            await _first_token(llm)
    except TimeoutError:
        return failure("model", f"{llm.name} did not answer within {MODEL_SECONDS:g} seconds.", "Try another model.")
    except ModelError as error:
        if not _CUT_OFF.search(str(error)):
            return failure("model", f"{llm.name}: {error}")
    finally:
        await close_llm(llm)
    return ok("model", f"{llm.name} answers in {time.perf_counter() - begun:.1f} seconds.")


async def _first_token(llm: LLM) -> None:
    async with aclosing(llm.stream(_REQUEST)) as events:
        async for event in events:
            if not isinstance(event, MessageStart):
                return


# ---------------------------------------------------------------------------- database


async def check_database(settings: Settings) -> AsyncIterator[Finding]:
    """Check the database, and who its keys let in."""
    keys = NO_KEYS
    if settings.database == "memory":
        message = "Tasks and artifacts are lost when the server stops."
        yield warning("database", message, "Name a file or a PostgreSQL server with --database.")
    elif found := _check_file(settings.database):
        yield found
    else:
        findings: list[Finding] = []
        keys = await _inspect_database(settings, findings)
        for each in findings:
            yield each
    for each in _check_access(settings, keys):
        yield each


def _check_file(database: str) -> Finding | None:
    """Whether a server can use or create the file; None if the database must be opened to tell."""
    from a2a_canvas.server.backend.open_database import DatabaseError, check_file, file_of

    if (file := file_of(database)) is None:
        return None
    try:
        check_file(file, database, new=True, writes=True)
    except DatabaseError as error:
        return failure("database", str(error))
    return None if file.exists() else ok("database", f"{file.absolute()} does not exist yet; the server creates it.")


async def _inspect_database(settings: Settings, findings: list[Finding]) -> KeyCount:
    """Add the findings about an existing database; returns its number of API keys."""
    url = settings.database
    from a2a_canvas.server.accounts.sql.sql_api_keys import count_keys
    from a2a_canvas.server.backend.open_database import DatabaseError, file_of, open_database
    from a2a_canvas.store.errors import Unavailable

    try:
        async with asyncio.timeout(SECONDS), open_database(url, shared=True) as database:
            if file := file_of(url):
                findings.append(judge_space(shutil.disk_usage(file.parent).free, str(file.parent.absolute())))
            findings += [await _schema(database), judge_latency(await _latency(database)), await _clock(database)]
            schema = findings[-3]
            if database.has_several_hosts:
                findings.append(await _standbys(database))
            if schema.status is not Verdict.OK:
                return NO_KEYS
            if settings.workers > 1 and (allowed := await allowed_connections(database)):
                findings.append(judge_workers(settings.workers, allowed))
            async with database.read() as connection:
                return await count_keys(connection)
    except (DatabaseError, Unavailable) as error:
        findings.append(failure("database", str(error)))
    except TimeoutError:
        message = f"The database does not answer within {SECONDS:g} seconds."
        findings.append(failure("database", message, "Check the network, and the database's log."))
    return NO_KEYS


async def _schema(database: Database) -> Finding:
    from a2a_canvas.server.backend.migrations import SchemaError, can_upgrade, check, revision

    try:
        found, on = await check(database), await _version(database)
        return ok("database", f"{database.name} is of schema {found}, which this version needs, on {on}.")
    except SchemaError as error:
        async with database.read() as connection:
            found = await connection.run_sync(revision)
        if database.dialect == "sqlite" and can_upgrade(found):
            message = f"{database.name} {f'has the older schema {found}' if found else 'has no schema yet'}."
            return warning("database", message, "The server upgrades it when it starts: make a backup first.")
        return failure("database", str(error))


async def _version(database: Database) -> str:
    """The database's program and its version."""
    sqlite = database.dialect == "sqlite"
    async with database.read() as connection:
        asked = "SELECT sqlite_version()" if sqlite else "SHOW server_version"
        return f"{'SQLite' if sqlite else 'PostgreSQL'} {(await connection.exec_driver_sql(asked)).scalar_one()}"


async def _latency(database: Database) -> float:
    """Seconds of a query: the fastest of three, without connecting."""
    return min([await _measure_query(database) for _ in range(3)])


async def _measure_query(database: Database) -> float:
    begun = time.perf_counter()
    async with database.read() as connection:
        await connection.exec_driver_sql("SELECT 1")
    return time.perf_counter() - begun


async def _standbys(database: Database) -> Finding:
    async with database.read() as connection:
        return judge_standbys(str((await connection.exec_driver_sql("SHOW synchronous_standby_names")).scalar_one()))


async def _clock(database: Database) -> Finding:
    if database.dialect == "sqlite":
        return ok("clock", "The database has the clock of this machine.")
    async with database.read() as connection:
        before = time.time()
        theirs = float((await connection.exec_driver_sql("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())
        return judge_clocks(theirs - (before + time.time()) / 2, "the database")


async def check_broker(settings: Settings) -> AsyncIterator[Finding]:
    """Check each address of the broker; without one, whether other servers of the database have one."""
    from a2a_canvas.server.broker.broker import BrokerError, measure, place_of

    for address in settings.broker:
        try:
            seconds = await measure(address)
        except BrokerError as error:
            message = f"The broker {place_of(address)} cannot be used: {error}."
            advice = (
                "Check that it runs, and --broker. Until then streams show other servers' tasks up to a second late."
            )
            yield failure("broker", message, advice)
        else:
            yield ok("broker", f"The broker {place_of(address)} answers in {seconds * 1000:.1f} ms.")
    if not settings.broker and settings.database.startswith("postgresql:"):
        from a2a_canvas.server.backend.broker_use import SAME_BROKER, find_brokers, with_another_broker

        if places := await find_brokers(settings.database, SECONDS):
            yield warning("broker", with_another_broker(places), SAME_BROKER)


def _check_access(settings: Settings, keys: KeyCount) -> Iterator[Finding]:
    try:
        check_open(settings, keys=keys.made > 0)
    except SettingsError as error:
        yield failure("access", str(error))
    else:
        yield from judge_openness(settings, keys)
        yield from judge_limits(settings)
    yield from judge_trust(settings, os.environ.get(TRUSTED_PROXIES, ""))


async def check_issuer(settings: Settings) -> AsyncIterator[Finding]:
    """Check whether the keys of the token issuer can be read, if there is one."""
    if not settings.jwt_issuer:
        return
    from a2a_canvas.server.protocols.identity.authenticator import IssuerUnavailable
    from a2a_canvas.server.protocols.identity.issuer import Issuer

    try:
        keys = await Issuer(settings.jwt_issuer, settings.jwt_jwks_url or "").keys()
    except IssuerUnavailable as error:
        yield failure(
            "issuer", str(error), "Without its keys no token is valid: check --jwt-issuer and --jwt-jwks-url."
        )
    else:
        yield ok("issuer", f"The issuer of tokens has {amount(len(keys), 'key')}.")


# ----------------------------------------------------------------------------- machine


async def check_ports(settings: Settings) -> AsyncIterator[Finding]:
    """Check whether each port is free, or used by an a2a-canvas server."""
    ports = [port for port in (settings.port, settings.grpc_port, settings.metrics_port) if port]
    faults = [_fault(settings.host, port) for port in ports]
    served = any(faults) and await _is_ours(settings.host, settings.port)
    for port, fault in zip(ports, faults, strict=True):
        place = authority(settings.host, port)
        if fault and not served:
            yield failure("ports", fault)
        else:
            yield ok(
                "ports",
                f"{place} is in use: another a2a-canvas already listens there." if fault else f"{place} is free.",
            )


def _fault(host: str, port: int) -> str:
    """Why a server could not listen on the port; empty if it could."""
    try:
        listen(host, port).close()
    except OSError as error:
        return str(error)
    return ""


async def _is_ours(host: str, port: int) -> bool:
    local = "127.0.0.1" if host in ALL_ADDRESSES else host
    try:
        async with httpx.AsyncClient(trust_env=False, timeout=PORT_SECONDS) as client:
            answer = await client.get(f"http://{authority(local, port)}/healthz")
        return bool(answer.json() == {"status": "ok"})
    except (httpx.HTTPError, httpx.InvalidURL, ValueError):
        return False


def check_open_files(settings: Settings) -> Finding:
    return judge_open_files(resource.getrlimit(resource.RLIMIT_NOFILE)[1], settings)
