"""The start-up message of a server: what runs, where its data is, next steps, and hints."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from textwrap import fill
from typing import Final

import httpx

from a2a_canvas.server.accounts.api_key import NO_KEYS, KeyCount
from a2a_canvas.server.agent.model import NO_MODEL
from a2a_canvas.server.agent.models.claude_params import unused_keys
from a2a_canvas.server.agent.models.rehearsal import START_NOTICE
from a2a_canvas.server.agent.models.rehearsal.tool_calls import example
from a2a_canvas.server.backend.open_database import place_of
from a2a_canvas.server.commands.database_check import DataCount
from a2a_canvas.server.outbound.over_httpx import client, json_of
from a2a_canvas.server.protocols.edge.origins import TRUSTED_PROXIES
from a2a_canvas.server.settings.agent_folder import AGENT_FILE
from a2a_canvas.server.settings.model_choice import KINDS, OLLAMA
from a2a_canvas.server.settings.settings import ALL_ADDRESSES, REHEARSAL, Settings, authority
from a2a_canvas.server.wire import TOKEN_VARIABLE
from a2a_canvas.tools.functions.function_tool import ToolSource

DEFAULT_PORT: Final = 8000
"""The port that the client takes without `--url`."""
OLLAMA_TIMEOUT: Final = 1.0
"""The timeout of a request to Ollama's address, in seconds."""

_MODEL_NAME = re.compile(r"[\w.:/-]{1,100}")


def banner(
    settings: Settings,
    model: str,
    count: DataCount | None,
    program: str,
    sources: Sequence[ToolSource] = (),
    loop: str = "",
) -> Iterator[str]:
    """The lines for the operator.

    Args:
        count: of existing data; None if unknown.
        program: how the user calls this program.
        sources: of the agent's own tools, already started.
        loop: the agent's own, described; empty if the model's rounds are the loop.
    """
    grpc = f" (gRPC: {authority(settings.host, settings.grpc_port)})" if settings.grpc_port else ""
    address = f"http://{authority(settings.host, settings.port)}"
    of_model = "" if model == NO_MODEL else f" with {model}"  # the loop has its own
    yield f"a2a-canvas {version('a2a-canvas')} listens on {address}{grpc}{of_model}"
    is_rehearsal = model == REHEARSAL and not loop
    if is_rehearsal:
        yield START_NOTICE
    if settings.agent:
        yield f"The agent is the one in {settings.agent.absolute()}."
    if loop:
        yield f"Its loop: {loop}"
    if settings.instructions or sources:
        yield from _own_tools(settings, sources)
    if is_rehearsal:
        yield from _rehearsal(settings, sources, program)
    keys = count.keys if count else NO_KEYS
    authenticates = settings.authenticates or keys.made > 0
    yield from _reachable(settings, authenticates)
    if authenticates:
        yield from _credentials(settings, keys, program)
    yield f"Tasks and artifacts are stored {_place(settings.database, count)}."
    browser = f"open {_page_url(settings)} in a browser, or " if settings.page is not None else ""
    request = "Hello" if loop else "write an outline about tide pools"
    command = f'{program} send "{request}"{_url_option(settings)}'
    yield f"Next, {browser}in a second terminal:\n{command}"


def _credentials(settings: Settings, keys: KeyCount, program: str) -> Iterator[str]:
    """What callers need, if there are or were credentials."""
    if settings.allow_anonymous:
        yield "Callers without a key or token are also served; a wrong one is rejected."
    elif keys.lock_out_all and not settings.authenticates:
        folder = f" {shlex.quote(str(settings.agent))}" if settings.agent else ""
        yield (
            "Warning: there is no valid key, so nobody can call the server. --allow-anonymous serves everybody; to "
            f"make a key:\n{program} key new NAME{folder}"
        )
    else:
        yield f"Clients need a key or token: {program} send takes it from {TOKEN_VARIABLE}."


def _own_tools(settings: Settings, sources: Sequence[ToolSource]) -> Iterator[str]:
    """The agent's own tools."""
    if settings.instructions:
        yield f"Its instructions: {settings.instructions}"
    for source in sources:
        yield f"Tools from {source.name}: {', '.join(tool.name for tool in source.tools()) or 'none, as yet'}"


def _rehearsal(settings: Settings, sources: Sequence[ToolSource], program: str) -> Iterator[str]:
    """What the rehearsal model can do with the agent."""
    if tools := next((tools for source in sources if (tools := source.tools())), ()):
        how = f"{program} send {example(tools[-1])}{_url_option(settings)}"
        yield f"The rehearsal model calls a tool when you name it:\n{how}"
    elif settings.instructions:
        yield "The rehearsal model follows no instructions."


def wrap_line(text: str, columns: int) -> str:
    """`text` with its first line broken between words. A second line is a command, and stays whole to be copied."""
    said, *command = text.split("\n")
    return "\n".join([fill(said, columns, break_long_words=False, break_on_hyphens=False), *command])


def _reachable(settings: Settings, authenticates: bool) -> Iterator[str]:
    """Who can reach the server, if not only programs on this machine."""
    no_one_asks = "Callers without credentials are served" if authenticates else "There is no authentication"
    open_to_all = f" {no_one_asks}: anyone who reaches it can use it."
    if not settings.reachable_by or (authenticates and not settings.allow_anonymous):
        open_to_all = ""
    if settings.public_url:
        yield f"Its card says {settings.url}.{open_to_all}"
    elif settings.host in ALL_ADDRESSES:
        yield f"Its card says {settings.url}: clients on other machines need --public-url.{open_to_all}"
    elif open_to_all:
        yield open_to_all.strip()


def _place(database: str, count: DataCount | None) -> str:
    if database == "memory":
        return "in memory, and lost when it stops"
    return f"in {place_of(database)}" + (f" ({count})" if count else "")


def _page_url(settings: Settings) -> str:
    return f"{settings.public_url or _local_url(settings)}/"


def _local_url(settings: Settings) -> str:
    local = "localhost" if settings.host in ALL_ADDRESSES else settings.host
    return f"http://{authority(local, settings.port)}"


def _url_option(settings: Settings) -> str:
    """` --url …`, unless the client finds the server without it."""
    url = _local_url(settings)
    defaults = [f"http://{host}:{DEFAULT_PORT}" for host in ("localhost", "127.0.0.1")]
    return "" if url in defaults else f" --url {url}"


# ------------------------------------------------------------------------------ hints


def hints(settings: Settings, environ: Mapping[str, str], program: str) -> Iterator[str]:
    """Unused files and settings. With an explicit model there is no hint about unused keys."""
    if not settings.agent and Path(AGENT_FILE).is_file():
        yield f"Hint: {AGENT_FILE} is here, but it is not used. To serve the agent in this folder:\n{program} serve ."
    chosen = settings.model or ""
    if chosen != REHEARSAL and not chosen.startswith(KINDS):
        yield from (f"Hint: {sentence}" for sentence in unused_keys(environ))
    if environ.get(TRUSTED_PROXIES) == "*" and settings.reachable_by:
        yield (
            f"Hint: {TRUSTED_PROXIES}=* lets every client spoof its address and evade the limit on wrong "
            "keys: list the proxy's address or network instead."
        )


async def ollama_hint(program: str, address: str, seconds: float = OLLAMA_TIMEOUT) -> str:
    """How to use the Ollama at this address; empty if none answers in time, or it has no model."""
    usable = [name for name in await _models_of_ollama(address, seconds) or () if _MODEL_NAME.fullmatch(name)]
    if not usable:
        return ""
    model = f"{OLLAMA}{usable[0].removesuffix(':latest')}"
    return f"Hint: Ollama is running at {address}. To use it:\n{program} serve --model {model}"


async def ollama_warning(name: str, address: str, seconds: float = OLLAMA_TIMEOUT) -> str:
    """How to make this model available in the Ollama at this address; empty if it has the model."""
    names = await _models_of_ollama(address, seconds)
    if names is None:
        return f"Warning: Ollama does not answer at {address}, so tasks will fail. To start it:\nollama serve"
    if name in names or f"{name}:latest" in names:
        return ""
    return f"Warning: Ollama at {address} has no model {name}. To get it:\nollama pull {shlex.quote(name)}"


async def _models_of_ollama(address: str, seconds: float) -> list[str] | None:
    """The names of its models; None if no Ollama answers in time. No proxy is used: it is local or nearby."""
    try:
        async with asyncio.timeout(seconds), client(trust_env=False) as http:
            found = json_of((await http.get(f"{address}/api/tags")).raise_for_status())
        return [str(model["name"]) for model in found["models"]]
    except (httpx.HTTPError, TimeoutError, KeyError, TypeError):
        return None
