"""Chooses the model by the settings and the environment.

Rule 1: modules that only some models need are imported with them: a provider's client library, the scripts.
Rule 2: the start sends no request: it checks a key, an address and the form of a name, not that the model exists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

from a2a_canvas.server.agent.model import LLM, NoModel
from a2a_canvas.server.agent.models.claude_params import is_configured, unused_keys
from a2a_canvas.server.settings.settings import REHEARSAL, Settings, SettingsError

SCRIPT: Final = "script:"
OPENAI: Final = "openai:"
OLLAMA: Final = "ollama:"
KINDS: Final = (OPENAI, OLLAMA, SCRIPT)
"""The prefixes of names that name a provider; any other name is for the Messages API."""

OLLAMA_PORT: Final = 11434
EXTRA: Final = "pip install 'a2a-canvas[openai]'"
"""The command that installs the library of the chat completions API."""

_CLAUDE: Final = "claude"
_OPENAIS: Final = re.compile(r"(gpt-\d|chatgpt-|o\d(-|$))")
"""Names of OpenAI's models, which Anthropic does not have."""
_WAYS: Final = (
    "For Claude set ANTHROPIC_API_KEY, for another server of the Messages API ANTHROPIC_BASE_URL, with "
    "ANTHROPIC_AUTH_TOKEN if it wants a token. Other models are --model openai:NAME (any server of OpenAI's API), "
    "ollama:NAME, rehearsal and script:FILE.yaml; a2a-canvas models lists those that are there."
)

_WINDOWS: Final = (
    (re.compile(r"gpt-oss"), 131_072),
    (re.compile(r"(^|/)gpt-4\.1"), 1_047_576),
    (re.compile(r"(^|/)gpt-(4o|4-turbo|\d[.\d]*-chat)"), 128_000),
    (re.compile(r"(^|/)gpt-[5-9]"), 400_000),
    (re.compile(r"(^|/)o[134](-|$)"), 200_000),
    (re.compile(r"claude-"), 200_000),
)
"""The windows of models by their names, at OpenAI or behind a gateway."""
UNKNOWN_WINDOW: Final = 128_000
"""The window of any other model; a server with a smaller one says so when it rejects a request."""
OLLAMA_WINDOW: Final = 32_768
"""Ollama silently cuts requests that are longer than its own setting."""


def choose_llm(settings: Settings, environ: Mapping[str, str], *, own_loop: bool = False) -> LLM:
    """The model of the settings; by default Claude if the environment has a key, else the rehearsal.

    Args:
        own_loop: the agent has a loop of its own, of the settings or not, so that the model serves edits only: by
            default there is none then without a key.

    Raises:
        SettingsError: the model lacks a key or a library, its name has no known form, an address in the environment is
            invalid, or the script is broken.
    """
    name = settings.model
    for kind, make in ((SCRIPT, _script), (OPENAI, _openai), (OLLAMA, _ollama)):
        if name and name.startswith(kind):
            return make(name.removeprefix(kind), settings, environ)
    has_key = is_configured(environ)
    if name is None and (own_loop or settings.loop) and not has_key:
        return NoModel()
    if name == REHEARSAL or (name is None and not has_key):
        return _rehearsal()
    if name and not (has_key and _may_be_served(name, environ)):
        near = (f"Did you mean {each}?" for each in _suggest_names(name))
        raise SettingsError(" ".join((f"The model {name} has no provider.", *near, _WAYS, *unused_keys(environ))))
    for variable in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        _check_key(variable, environ)
    return _claude(name, settings)


def _may_be_served(name: str, environ: Mapping[str, str]) -> bool:
    """Whether the Messages API may have a model of this name. Anthropic itself has no model of other makers."""
    if environ.get("ANTHROPIC_BASE_URL", "").strip() or _CLAUDE in name:
        return True
    return ":" not in name and not list(_suggest_names(name))


def _suggest_names(name: str) -> Iterator[str]:
    """Names similar to a misspelt one."""
    kind, colon, rest = name.partition(":")
    if colon:
        yield from (f"{each}{rest}" for each in get_close_matches(f"{kind.lower()}:", KINDS, n=1))
    elif _OPENAIS.match(name):
        yield f"{OPENAI}{name}"
    else:
        maker, hyphen, rest = name.partition("-")
        near = get_close_matches(maker.lower(), [_CLAUDE], n=1) if hyphen else []
        yield from (f"{each}-{rest}" for each in near if maker != each)
        yield from get_close_matches(name, [REHEARSAL], n=1)


def _check_key(variable: str, environ: Mapping[str, str]) -> None:
    """Raises `SettingsError` if a key cannot be sent: it has blanks in it, or the dots of an example."""
    key = environ.get(variable, "").strip()
    if key and not re.fullmatch("[!-~]+", key):
        raise SettingsError(f"{variable} is no key: it contains characters that no key contains. Copy it again.")


def context_window(name: str, settings: Settings) -> int:
    """The tokens of a request and its answer together: the setting, else the known window of the model."""
    known = (window for pattern, window in _WINDOWS if pattern.search(name.lower()))
    return settings.context_window or next(known, UNKNOWN_WINDOW)


def _sends_thinking(settings: Settings) -> Literal["delta", "accumulated"]:
    return "accumulated" if settings.thinking == "accumulated" else "delta"


def _rehearsal() -> LLM:
    from a2a_canvas.server.agent.models.rehearsal.rehearsal import Rehearsal

    return Rehearsal()


def _script(name: str, settings: Settings, environ: Mapping[str, str]) -> LLM:
    from a2a_canvas.server.agent.models.script import ScriptedModel, ScriptError

    try:
        return ScriptedModel(Path(name))
    except ScriptError as error:
        raise SettingsError(str(error)) from error


def _claude(name: str | None, settings: Settings) -> LLM:
    from a2a_canvas.server.agent.models.claude import CONTEXT_WINDOW, DEFAULT_MODEL, ClaudeModel

    try:
        return ClaudeModel(
            model=name or DEFAULT_MODEL,
            max_tokens=settings.max_output_tokens,
            thinking="disabled" if settings.thinking == "off" else "auto",
            sends_thinking=_sends_thinking(settings),
            context_window=settings.context_window or CONTEXT_WINDOW,
        )
    except ValueError as error:
        raise SettingsError(str(error)) from None


# --------------------------------------------------------------------------- OpenAI


def _openai(name: str, settings: Settings, environ: Mapping[str, str]) -> LLM:
    _check_model_name(name, OPENAI, "gpt-5.2")
    key, address = (environ.get(variable, "").strip() for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL"))
    if not key and not address:
        raise SettingsError(
            f"The model {OPENAI}{name} has no provider. Set OPENAI_API_KEY, or OPENAI_BASE_URL for another server of "
            "OpenAI's API (llama.cpp: http://127.0.0.1:8080/v1), with OPENAI_API_KEY if it wants a key."
        )
    _check_key("OPENAI_API_KEY", environ)
    try:
        from a2a_canvas.server.agent.models.openai_compatible import OpenAIModel
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "openai":
            raise
        raise SettingsError(f"{OPENAI}{name} needs a library that is not installed: {EXTRA}") from None
    try:
        return OpenAIModel(
            model=name,
            max_tokens=settings.max_output_tokens,
            thinks=settings.thinking != "off",
            sends_thinking=_sends_thinking(settings),
            context_window=context_window(name, settings),
        )
    except ValueError as error:
        raise SettingsError(str(error)) from None


def _check_model_name(name: str, kind: str, example: str) -> None:
    if not name.strip():
        raise SettingsError(
            f"--model {kind} needs a name behind it, such as {kind}{example}; a2a-canvas models lists those that are "
            "there."
        )


# --------------------------------------------------------------------------- Ollama


def _ollama(name: str, settings: Settings, environ: Mapping[str, str]) -> LLM:
    from a2a_canvas.server.agent.models.claude import ClaudeModel, client_from

    _check_model_name(name, OLLAMA, "qwen3-coder")
    return ClaudeModel(
        model=name,
        max_tokens=settings.max_output_tokens,
        thinking="disabled" if settings.thinking == "off" else "auto",
        sends_thinking=_sends_thinking(settings),
        context_window=settings.context_window or OLLAMA_WINDOW,
        client=client_from({"ANTHROPIC_BASE_URL": ollama_address(environ)}),
        name=f"{OLLAMA}{name}",
        address_variable="OLLAMA_HOST",
    )


def ollama_address(environ: Mapping[str, str]) -> str:
    """The address of Ollama, by the variable that its own programs read: a host, a port, both, or an address.

    Raises:
        SettingsError: it is none of these.
    """
    given = environ.get("OLLAMA_HOST", "").strip() or "127.0.0.1"
    scheme, _, rest = given.rpartition("://")
    try:
        parts = urlsplit(f"//{rest}")
        port = parts.port or {"http": 80, "https": 443}.get(scheme, OLLAMA_PORT)
        host = parts.hostname or "127.0.0.1"
    except ValueError:
        raise SettingsError(f"OLLAMA_HOST={given}: must look like 127.0.0.1:{OLLAMA_PORT}") from None
    if host in ("0.0.0.0", "::"):  # where Ollama listens on all addresses; this machine is one of them
        host = "127.0.0.1"
    return f"{scheme or 'http'}://{f'[{host}]' if ':' in host else host}:{port}{parts.path.rstrip('/')}"
