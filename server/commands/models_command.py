"""`a2a-canvas models`: lists the models available in this environment, as values for `--model`.

Rule 1: all providers are asked for their lists concurrently, with a timeout. One that fails is reported in a line.
Rule 2: no key is shown.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Final, TextIO

import httpx

from a2a_canvas.server.agent.models.claude_params import is_configured
from a2a_canvas.server.agent.models.provider_connection import address_in
from a2a_canvas.server.outbound.over_httpx import UnreadableAnswer, client, json_of
from a2a_canvas.server.settings.model_choice import EXTRA, OLLAMA, OPENAI, SCRIPT, ollama_address
from a2a_canvas.server.settings.settings import REHEARSAL, SettingsError

SECONDS: Final = 3.0
"""The timeout of a provider, in seconds."""

_NO_CHAT: Final = re.compile(
    r"embed|whisper|tts|dall-e|image|moderation|realtime|audio|transcribe|sora|rerank|ocr|davinci|babbage",
    re.IGNORECASE,
)
"""Names of models that do not write text."""


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A provider, and where it lists its models.

    Attributes:
        name: for the user.
        address: without a password; empty if unknown.
        unset: why it is not asked.
        path: of its list, below the address.
        password: user and password in the address.
        prefix: precedes a model's name.
        remark: a further requirement of its models.
    """

    name: str
    address: str = ""
    unset: str = ""
    path: str = ""
    headers: Mapping[str, str] | None = None
    password: tuple[str, str] | None = None
    prefix: str = ""
    remark: str = ""


@dataclass(frozen=True, slots=True)
class ListedModels:
    """The names of a provider's models, or why there are none."""

    source: ModelSource
    names: tuple[str, ...] = ()
    fault: str = ""


def sources(environ: Mapping[str, str]) -> tuple[ModelSource, ...]:
    """The providers, according to the environment."""
    return (_anthropic(environ), _openai(environ), _ollama(environ))


def _anthropic(environ: Mapping[str, str]) -> ModelSource:
    source = ModelSource("The Messages API", unset="neither ANTHROPIC_API_KEY nor ANTHROPIC_BASE_URL is set")
    if not is_configured(environ):
        return source
    key, token = (environ.get(name, "").strip() for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"))
    headers = {"anthropic-version": "2023-06-01", **_bearer(key or token)}
    found = _with_address(source, environ, "ANTHROPIC_BASE_URL", "https://api.anthropic.com")
    return replace(found, path="/v1/models?limit=1000", headers=headers)


def _openai(environ: Mapping[str, str]) -> ModelSource:
    source = ModelSource("OpenAI's API", unset="neither OPENAI_API_KEY nor OPENAI_BASE_URL is set")
    key, address = (environ.get(name, "").strip() for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"))
    if not key and not address:
        return source
    found = _with_address(source, environ, "OPENAI_BASE_URL", "https://api.openai.com/v1")
    remark = "" if find_spec("openai") else f"; to use them: {EXTRA}"
    return replace(found, path="/models", headers=_bearer(key), prefix=OPENAI, remark=remark)


def _bearer(key: str) -> dict[str, str]:
    """The header of a key; none for an invalid key, with which the server refuses to start."""
    return {"authorization": f"Bearer {key}"} if key.isascii() and key.isprintable() and key else {}


def _ollama(environ: Mapping[str, str]) -> ModelSource:
    try:
        return ModelSource("Ollama", ollama_address(environ), path="/api/tags", prefix=OLLAMA)
    except SettingsError as error:
        return ModelSource("Ollama", unset=str(error))


def _with_address(source: ModelSource, environ: Mapping[str, str], variable: str, default: str) -> ModelSource:
    try:
        url, auth = address_in(environ, variable, default, default)
    except ValueError as error:
        return replace(source, unset=str(error))
    given = httpx.URL(environ.get(variable, "").strip() or default)
    return replace(
        source,
        address=str(url).rstrip("/"),
        unset="",
        password=(given.username, given.password) if auth else None,
    )


async def ask(source: ModelSource, seconds: float = SECONDS) -> ListedModels:
    """The models of one provider."""
    if not source.address:
        return ListedModels(source, fault=f"is not asked: {source.unset}")
    # Requests to this machine bypass any proxy.
    local = httpx.URL(source.address).host in ("127.0.0.1", "localhost", "::1")
    try:
        async with asyncio.timeout(seconds), client(trust_env=not local, auth=source.password) as http:
            response = await http.get(source.address + source.path, headers=source.headers)
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError):
        return ListedModels(source, fault="does not answer")
    return read_list(source, response)


def read_list(source: ModelSource, response: httpx.Response) -> ListedModels:
    """The models in a provider's answer."""
    match response.status_code:
        case 401 | 403:
            return ListedModels(source, fault="refuses the API key")
        case 200:
            names = tuple(_names(response))
            return ListedModels(source, names, fault="" if names else "lists no models")
        case status:
            return ListedModels(source, fault=f"answers with HTTP {status}")


def _names(response: httpx.Response) -> Iterator[str]:
    try:
        found = json_of(response)
    except UnreadableAnswer:
        return
    listed = (found.get("data") or found.get("models")) if isinstance(found, dict) else None
    for each in listed if isinstance(listed, list) else ():
        name = (each.get("id") or each.get("name")) if isinstance(each, dict) else None
        if isinstance(name, str) and name.isprintable() and not _NO_CHAT.search(name):
            yield name.removesuffix(":latest")


def report(listed: Sequence[ListedModels]) -> Iterator[str]:
    """The lines for the user: the models by provider, those without one, and the providers that failed."""
    for each in listed:
        if each.names:
            yield f"{each.source.name} at {each.source.address}{each.source.remark}"
            yield from (f"  --model {each.source.prefix}{name}" for name in each.names)
    yield "Offline"
    yield f"  --model {REHEARSAL}"
    yield f"  --model {SCRIPT}FILE.yaml"
    for each in listed:
        if each.fault:
            where = f" at {each.source.address}" if each.source.address else ""
            yield f"{each.source.name}{where} {each.fault}."


async def models_command(environ: Mapping[str, str], out: TextIO) -> int:
    """List the models; the exit code is 0 if there is one besides the offline ones."""
    listed = await asyncio.gather(*map(ask, sources(environ)))
    out.writelines(f"{line}\n" for line in report(listed))
    return 0 if any(each.names for each in listed) else 1
