"""Claude, or whatever else speaks the Messages API at `ANTHROPIC_BASE_URL`, behind the `LLM` protocol.

Rules:

1. Tries do not multiply. What fails before the response headers has been retried by the SDK: not retryable.
   What breaks after them (a transport error, an SSE `error` event, unreadable data, an end without
   `message_stop`) nobody has retried: retryable, and all alike.
2. No key reaches a reason: of the provider only its error message is repeated, trimmed, our keys taken out.
3. No other module imports `anthropic`.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import AsyncGenerator, Mapping
from typing import Final, Literal, cast

import anthropic
import httpx2
from anthropic.types import RawMessageStreamEvent

from server.agent import model as m
from server.agent.llm_events import EventMapper
from server.agent.llm_params import ThinkingMode, to_params, without_media, without_thinking

log = logging.getLogger(__name__)

DEFAULT_MODEL: Final = "claude-sonnet-5-5"

_WINDOW: Final = 200_000
"""Tokens that a request and its answer may have together."""

_NO_KEY: Final = "none"
"""Stands for a key where a server needs none: the SDK does not call without."""

_RawStream = anthropic.AsyncStream[RawMessageStreamEvent]

# -------------------------------------------------------------------- failures

_TOO_LONG: Final = "The conversation has grown too long for the model: start a new one, without this contextId."
_REASONS: Final[Mapping[int, str]] = {
    400: "The model provider refused the request{said}",
    401: "The model provider refused the API key: check ANTHROPIC_API_KEY.",
    402: "The model provider asks for payment: check the account's credit.",
    403: "The model provider refused the API key: check ANTHROPIC_API_KEY and what it gives access to.",
    404: "The model provider does not know the model {model}: choose another with --model.",
    413: _TOO_LONG,
    429: "The model provider's rate limit has been reached: try again later.",
    529: "The model provider is overloaded: try again later.",
}
_FAILED: Final = "The model provider failed (HTTP {status}): try again later."
_ODD: Final = "The model provider answered with HTTP {status}{said}"
_BROKEN: Final = "The connection to the model provider broke before the answer was complete."


def _refused(error: Exception, model: str, client: anthropic.AsyncAnthropic) -> m.ModelError:
    """The error of a call that got no stream."""
    host = client.base_url.netloc.decode("ascii", "replace")
    match error:
        case anthropic.APITimeoutError():
            reason = f"The model provider at {host} did not answer in time."
        case anthropic.APIConnectionError():
            reason = f"The model provider at {host} cannot be reached: check the network and ANTHROPIC_BASE_URL."
        case anthropic.BadRequestError() if _says_too_long(error):
            reason = _TOO_LONG
        case anthropic.APIStatusError(status_code=status):
            form = _REASONS.get(status, _FAILED if status >= 500 else _ODD)
            reason = form.format(status=status, model=model, said=_quoted(error, client))
        case _:
            reason = f"The model provider could not be asked ({type(error).__name__})."
    return m.ModelError(reason, retryable=False)


def _broken(error: Exception, client: anthropic.AsyncAnthropic) -> m.ModelError:
    """The error of a call whose stream did not come to its end."""
    match error:
        case anthropic.APIStatusError(type="overloaded_error"):
            reason = _REASONS[529]
        case anthropic.APIStatusError():
            reason = f"The model provider broke off its answer{_quoted(error, client)}"
        case _:
            reason = _BROKEN
    return m.ModelError(reason, retryable=True)


def _quoted(error: anthropic.APIStatusError, client: anthropic.AsyncAnthropic) -> str:
    """The provider's own words, as the end of a sentence."""
    said = " ".join(str(error.api_message or "").split())
    for secret in (client.api_key, client.auth_token):
        said = said.replace(secret, "[key]") if secret and secret != _NO_KEY else said
    return f": {said[:300]}" if said else "."


def _refuses_thinking(error: anthropic.BadRequestError) -> bool:
    said = str(error.api_message or "")
    return "thinking" in said and ("signature" in said or "cannot be modified" in said)


def _says_too_long(error: anthropic.BadRequestError) -> bool:
    said = str(error.api_message or "")
    return "prompt is too long" in said or "exceed context limit" in said


def _lessened(request: m.ModelRequest, error: anthropic.BadRequestError) -> tuple[str, m.ModelRequest]:
    """What may be taken out of a refused request, in words, and the request without it; unchanged if nothing is."""
    if _refuses_thinking(error):
        return "earlier thinking", without_thinking(request)
    if _says_too_long(error):
        return "", request
    return "attached images and documents", without_media(request)


# ------------------------------------------------------------------- the model


def available(environ: Mapping[str, str]) -> bool:
    """Whether the environment names a provider: a key, or a server that may need none."""
    return any(environ.get(name, "").strip() for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"))


def _client_from(environ: Mapping[str, str]) -> anthropic.AsyncAnthropic:
    # Left to itself, the SDK takes an empty ANTHROPIC_BASE_URL for an address and refuses to call without a key.
    key = environ.get("ANTHROPIC_API_KEY", "").strip()
    token = None if key else environ.get("ANTHROPIC_AUTH_TOKEN", "").strip() or None
    address = environ.get("ANTHROPIC_BASE_URL", "").strip() or "https://api.anthropic.com"
    if not re.match(r"https?://[^/:@\s]", address):
        raise ValueError("ANTHROPIC_BASE_URL is not an address: it must look like http://127.0.0.1:11434")
    return anthropic.AsyncAnthropic(api_key=None if token else key or _NO_KEY, auth_token=token, base_url=address)


class ClaudeModel:
    """A model behind the Messages API.

    Args:
        model: its name at the provider.
        max_tokens: the most that one call may generate, thinking included.
        thinking: see `ThinkingMode`.
        client: how to reach the provider; by default as ANTHROPIC_API_KEY and ANTHROPIC_BASE_URL say.

    Raises:
        ValueError: ANTHROPIC_BASE_URL is not an address.
    """

    def __init__(
        self,
        *,
        model: str = DEFAULT_MODEL,
        max_tokens: int = 32_000,
        thinking: ThinkingMode = "auto",
        client: anthropic.AsyncAnthropic | None = None,
    ) -> None:
        self._model = model
        self._max_tokens = max_tokens
        self._thinking = thinking
        self._client = client or _client_from(os.environ)
        self._reported: set[str] = set()

    @property
    def name(self) -> str:
        return self._model

    @property
    def thinking(self) -> Literal["delta"]:
        return "delta"

    @property
    def window(self) -> int:
        return _WINDOW - self._max_tokens

    async def stream(self, request: m.ModelRequest) -> AsyncGenerator[m.ModelEvent, None]:
        """Ask the model. Closing the iterator closes the connection at once.

        Raises:
            ModelError: see rule 1.
        """
        mapper = EventMapper(self._reported)
        opened = await self._open(request)
        try:
            async with opened as raws:
                async for raw in raws:
                    for event in mapper.feed(raw):
                        yield event
                        if isinstance(event, m.MessageStop):
                            return
        except (anthropic.APIError, httpx2.RequestError, ValueError) as error:
            raise _broken(error, self._client) from error
        raise m.ModelError(_BROKEN, retryable=True)

    async def _open(self, request: m.ModelRequest) -> _RawStream:
        try:
            return await self._ask(request)
        except (anthropic.AnthropicError, httpx2.RequestError) as error:
            raise _refused(error, self._model, self._client) from error

    async def _ask(self, request: m.ModelRequest) -> _RawStream:
        """Call; where the provider refuses what came with the conversation (another model's thinking, an image that
        it cannot read), call once more without it: every later request would bring it along again."""
        try:
            return await self._create(request)
        except anthropic.BadRequestError as error:
            what, less = _lessened(request, error)
            if less == request:
                raise
            log.warning("asking again without the %s%s", what, _quoted(error, self._client))
        return await self._ask(less)

    async def _create(self, request: m.ModelRequest) -> _RawStream:
        params = to_params(request, self._model, self._max_tokens, self._thinking)
        created = await self._client.messages.create(**params, stream=True)
        return cast(_RawStream, created)

    async def aclose(self) -> None:
        """Close the connections to the provider."""
        await self._client.close()
