"""Claude, or another model with the Messages API at `ANTHROPIC_BASE_URL`, behind the `LLM` protocol.

Rules:

1. The rules of `provider_errors.py`. A stream is broken by a transport error, an SSE `error` event, unreadable data
   and an end without a stop reason. A failure after the stop reason is ignored.
2. No other module imports `anthropic`.
3. Optional content that a provider rejects is omitted, and the call repeated: a field for the life of this process,
   thinking and files of the conversation for this call.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final, Literal, cast

import anthropic
import httpx2
from anthropic.types import RawMessageStreamEvent

from a2a_canvas.server.agent import model as m
from a2a_canvas.server.agent.attachments import without_media
from a2a_canvas.server.agent.models.claude_events import EventMapper
from a2a_canvas.server.agent.models.claude_params import OptionalField, ThinkingMode, to_params, without_thinking
from a2a_canvas.server.agent.models.provider_connection import MAX_ANSWER, MAX_SILENCE, NO_KEY, SilenceLimit, address_in
from a2a_canvas.server.agent.models.provider_errors import (
    Provider,
    answer_limit_in,
    broken_error,
    other_error,
    overloaded_error,
    says_too_long,
)
from a2a_canvas.server.agent.models.sse_decoder import EventStreamDecoder
from a2a_canvas.server.agent.models.token_limits import TokenLimits
from a2a_canvas.server.outbound.over_httpx2 import UnreadableMessage, limit_answers

logger = logging.getLogger(__name__)

DEFAULT_MODEL: Final = "claude-sonnet-5-5"

CONTEXT_WINDOW: Final = 200_000
"""The most tokens of a request and its answer together."""

_RawStream = anthropic.AsyncStream[RawMessageStreamEvent]

_SAYS_UNKNOWN: Final = re.compile(r"extra inputs|not permitted|unknown|unexpected|unrecognized|support", re.IGNORECASE)


def _opening_error(error: Exception, model: str, provider: Provider) -> m.ModelError:
    """The error of a call that failed before its stream."""
    match error:
        case anthropic.APITimeoutError():
            return provider.timeout_error()
        case anthropic.APIConnectionError():
            return provider.unreachable_error()
        case anthropic.APIStatusError(status_code=status):
            return provider.status_error(status, _message(error), model)
        case _:
            return other_error(error)


def _stream_error(error: Exception, provider: Provider) -> m.ModelError:
    """The error of a call whose stream broke."""
    match error:
        case anthropic.APIStatusError(type="overloaded_error"):
            return overloaded_error(error.response.headers)
        case anthropic.APIStatusError():
            return provider.stream_error(_message(error), error.response.headers)
        case _:
            return broken_error()


def _message(error: anthropic.APIStatusError) -> str:
    return str(error.api_message or "")


def _find_unknown_field(error: anthropic.APIStatusError) -> OptionalField | None:
    """The optional field that the provider does not support."""
    message = _message(error)
    if "eager_input_streaming" in message:
        return "eager_input_streaming"
    if _SAYS_UNKNOWN.search(message):
        if "cache_control" in message:
            return "cache_control"
        if "thinking" in message and "display" in message:
            return "display"
    return "thinking" if "thinking" in message and not message.startswith("messages.") else None


def client_from(environ: Mapping[str, str], http_client: httpx2.AsyncClient | None = None) -> anthropic.AsyncAnthropic:  # noqa: TID251
    """The client for the provider in the environment.

    Args:
        http_client: by default one over aiohttp, which takes half of httpx2's CPU to read a stream.

    Raises:
        ValueError: ANTHROPIC_BASE_URL is not an address.
    """
    # By default the SDK takes an empty ANTHROPIC_BASE_URL for an address, and refuses to call without a key.
    key = environ.get("ANTHROPIC_API_KEY", "").strip()
    token = None if key else environ.get("ANTHROPIC_AUTH_TOKEN", "").strip() or None
    url, auth = address_in(environ, "ANTHROPIC_BASE_URL", "https://api.anthropic.com", example="http://127.0.0.1:11434")
    http_client = limit_answers(http_client or anthropic.DefaultAioHttpClient(), MAX_ANSWER, by_event=False)
    if auth:
        http_client.auth = auth
    return anthropic.AsyncAnthropic(
        api_key=None if token else key or NO_KEY, auth_token=token, base_url=url, http_client=http_client
    )


async def _raw_events(response: httpx2.Response, silence: float) -> AsyncGenerator[Mapping[str, Any], None]:
    """The raw events of an answer: the SDK's own stream would make a typed object of every token.

    Raises:
        anthropic.APIStatusError: the provider sent an error.
        httpx2.RequestError: the connection broke, or the provider has sent nothing for `silence` seconds.
        ValueError: the data cannot be read.
    """
    decoder = EventStreamDecoder()
    async for content in SilenceLimit(response, silence).contents():
        for name, data in decoder.feed(content):
            raw = json.loads(data) if name else None
            if name == "error":
                raise anthropic.APIStatusError(data, response=response, body=raw)
            if isinstance(raw, dict):
                yield raw


class ClaudeModel:
    """A model behind the Messages API.

    Args:
        model: its name at the provider.
        max_tokens: the most that one call may generate, thinking included. It shrinks if the provider reports less.
        thinking: see `ThinkingMode`.
        sends_thinking: whether the server sends the thinking in pieces, or all of it so far.
        context_window: the most tokens of a request and its answer together. It shrinks if the provider reports a
            smaller one; the answer has at most half of it.
        client: of the provider; by default made from ANTHROPIC_API_KEY and ANTHROPIC_BASE_URL.
        name: the name for operators; by default the provider's.
        address_variable: the environment variable with the provider's address.

    Raises:
        ValueError: ANTHROPIC_BASE_URL is not an address.
    """

    def __init__(
        self,
        *,
        model: str = DEFAULT_MODEL,
        max_tokens: int = 32_000,
        thinking: ThinkingMode = "auto",
        sends_thinking: Literal["delta", "accumulated"] = "delta",
        context_window: int = CONTEXT_WINDOW,
        client: anthropic.AsyncAnthropic | None = None,
        name: str = "",
        address_variable: str = "ANTHROPIC_BASE_URL",
    ) -> None:
        self.name = name or model
        self.thinking = sends_thinking
        self._model = model
        self._limits = TokenLimits(max_tokens, context_window)
        self._thinking_mode = thinking
        self._client = client or client_from(os.environ)
        self._silence = httpx2.Timeout(self._client.timeout).read or MAX_SILENCE
        self._address_variable = address_variable
        self._reported: set[str] = set()
        self._without: set[OptionalField] = set()

    @property
    def window(self) -> int:
        return self._limits.request

    async def stream(self, request: m.ModelRequest) -> AsyncGenerator[m.ModelEvent, None]:
        """Call the model. Closing the iterator closes the connection immediately.

        Raises:
            ModelError: see rule 1.
        """
        mapper = EventMapper(self._reported)
        opened = await self._open(request)
        try:
            async with opened:
                async for raw in _raw_events(opened.response, self._silence):
                    for event in mapper.feed(raw):
                        yield event
                        if isinstance(event, m.MessageStop):
                            return
        except UnreadableMessage as error:
            raise self._provider.unreadable_error(error) from error
        except (anthropic.APIError, httpx2.RequestError, ValueError, RecursionError) as error:
            if mapper.end() is None:
                raise _stream_error(error, self._provider) from error
        if (end := mapper.end()) is None:
            raise broken_error()
        yield end

    async def _open(self, request: m.ModelRequest) -> _RawStream:
        try:
            return await self._ask(request)
        except UnreadableMessage as error:
            raise self._provider.unreadable_error(error) from error
        except (anthropic.AnthropicError, httpx2.RequestError) as error:
            raise _opening_error(error, self._model, self._provider) from error

    async def _ask(self, request: m.ModelRequest) -> _RawStream:
        """Call, and repeat without what the provider rejects (rule 3)."""
        params = to_params(request, self._model, self._limits.answer, self._thinking_mode, self._without)
        try:
            return cast(_RawStream, await self._client.messages.create(**params, stream=True))
        except (anthropic.BadRequestError, anthropic.UnprocessableEntityError) as error:
            less = self._less(request, error)
            if less is None:
                raise
        return await self._ask(less)

    def _less(self, request: m.ModelRequest, error: anthropic.APIStatusError) -> m.ModelRequest | None:
        """The request to send instead of a rejected one; None if there is nothing left to omit."""
        message = _message(error)
        if says_too_long(error.status_code, message):
            return request if self._limits.narrow(message) else None
        if (most := answer_limit_in(message)) and most < self._limits.answer:
            self._limits.max_output, what, less = most, f"with max_tokens={most}", request
        elif "thinking" in message and (bare := without_thinking(request)) != request:
            what, less = "without the earlier thinking", bare
        elif (unknown := _find_unknown_field(error)) and unknown not in self._without:
            self._without.add(unknown)
            what, less = f"without the {unknown}", request
        elif (bare := without_media(request)) != request:
            what, less = "without the attached images and documents", bare
        else:
            return None
        logger.warning("Repeating the request to the provider %s%s", what, self._provider.quote(message))
        return less

    @property
    def _provider(self) -> Provider:
        host = self._client.base_url.netloc.decode("ascii", "replace")
        secrets = tuple(filter(None, (self._client.api_key, self._client.auth_token)))
        return Provider(host, "ANTHROPIC_API_KEY", self._address_variable, secrets)

    async def aclose(self) -> None:
        """Close the connections to the provider."""
        await self._client.close()
