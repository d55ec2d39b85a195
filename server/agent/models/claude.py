"""Claude, or another model with the Messages API at `ANTHROPIC_BASE_URL`, behind the `LLM` protocol.

Rules:

1. Retries do not multiply. A failure before the response headers has been retried by the SDK: not retryable. One
   after them (a transport error, an SSE `error` event, unreadable data, an end without a stop reason) has not:
   retryable. A failure after the stop reason is ignored.
2. No key reaches a reason: it repeats only the provider's error message, shortened and without our keys.
3. No other module imports `anthropic`.
4. What a provider refuses and does not need is omitted, and the call repeated: an optional field for the life of
   this process, thinking and files of the conversation for this call.
"""

from __future__ import annotations

import asyncio
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
from a2a_canvas.server.agent.models.sse_decoder import EventStreamDecoder

logger = logging.getLogger(__name__)

DEFAULT_MODEL: Final = "claude-sonnet-5-5"

CONTEXT_WINDOW: Final = 200_000
"""The most tokens of a request and its answer together."""

MAX_SILENCE: Final = 600.0
"""Seconds that a provider may send nothing, if the client's own timeout does not say."""

_NO_KEY: Final = "none"
"""The key for a server that needs none: the SDK requires one."""
_KEY_LENGTH: Final = 12
"""The least characters of a real key. The placeholder for a server that needs none is shorter, and may be a word."""

_RawStream = anthropic.AsyncStream[RawMessageStreamEvent]

_TOO_LONG: Final = (
    "The request is too long for the model: send less at a time, or raise --context-window if it takes more."
)
_SAYS_TOO_LONG: Final = re.compile(
    r"prompt is too long|exceed context limit|context (length|window|size)|input is too long|too many (input )?tokens",
    re.IGNORECASE,
)
_LIMIT: Final = re.compile(
    r"tokens > (\d+) maximum|\+ \d+ > (\d+)|context length is (\d+)|context size \((\d+)", re.IGNORECASE
)
_COUNTED: Final = re.compile(
    r"(\d+) tokens > |limit: (\d+) \+|(\d+) in the messages|(\d+) input tokens|request \((\d+) tokens|"
    r"resulted in (\d+) tokens",
    re.IGNORECASE,
)
"""The limit and the request's tokens, in the messages of Anthropic, vLLM and llama.cpp."""
_SMALLEST_WINDOW: Final = 1_024
"""Tokens of the smallest window: a smaller number in a message means something else."""
_SAYS_UNKNOWN: Final = re.compile(r"extra inputs|not permitted|unknown|unexpected|unrecognized|support", re.IGNORECASE)
_REASONS: Final[Mapping[int, str]] = {
    400: "The model provider refused the request{message}",
    401: "The model provider refused the API key: check ANTHROPIC_API_KEY.",
    402: "The model provider asks for payment: check the account's credit.",
    403: "The model provider refused the API key: check ANTHROPIC_API_KEY and what it gives access to.",
    404: "The model provider does not know the model {model}: choose another with --model.",
    422: "The model provider refused the request{message}",
    429: "The model provider's rate limit has been reached: try again later.",
    529: "The model provider is overloaded: try again later.",
}
_FAILED: Final = "The model provider failed (HTTP {status}): try again later."
_OTHER_STATUS: Final = "The model provider answered with HTTP {status}{message}"
_BROKEN: Final = "The connection to the model provider broke before the answer was complete."


def _refused(error: Exception, model: str, client: anthropic.AsyncAnthropic) -> m.ModelError:
    """The error of a call that failed before its stream."""
    host = client.base_url.netloc.decode("ascii", "replace")
    match error:
        case anthropic.APITimeoutError():
            reason = f"The model provider at {host} did not answer in time."
        case anthropic.APIConnectionError():
            reason = f"The model provider at {host} cannot be reached: check the network and ANTHROPIC_BASE_URL."
        case anthropic.APIStatusError() if _says_too_long(error):
            return m.TooLong(_TOO_LONG, _number(_COUNTED, error))
        case anthropic.APIStatusError(status_code=status):
            form = _REASONS.get(status, _FAILED if status >= 500 else _OTHER_STATUS)
            reason = form.format(status=status, model=model, message=_quoted(error, client))
        case _:
            reason = f"The model provider could not be asked ({type(error).__name__})."
    return m.ModelError(reason, retryable=False)


def _broken(error: Exception, client: anthropic.AsyncAnthropic) -> m.ModelError:
    """The error of a call whose stream broke."""
    match error:
        case anthropic.APIStatusError(type="overloaded_error"):
            reason = _REASONS[529]
        case anthropic.APIStatusError():
            reason = f"The model provider broke off its answer{_quoted(error, client)}"
        case _:
            reason = _BROKEN
    return m.ModelError(reason, retryable=True, retry_after=_retry_after(error))


def _retry_after(error: Exception) -> float | None:
    headers = error.response.headers if isinstance(error, anthropic.APIStatusError) else {}
    try:
        return float(headers["retry-after-ms"]) / 1000 if "retry-after-ms" in headers else float(headers["retry-after"])
    except (KeyError, ValueError):  # it may be a date
        return None


def _quoted(error: anthropic.APIStatusError, client: anthropic.AsyncAnthropic) -> str:
    """The provider's error message, as the end of a sentence."""
    message = " ".join(str(error.api_message or "").split())
    for secret in (client.api_key, client.auth_token):
        message = message.replace(secret, "[key]") if secret and len(secret) >= _KEY_LENGTH else message
    return f": {message[:300]}" if message else "."


def _says_too_long(error: anthropic.APIStatusError) -> bool:
    message = str(error.api_message or "")
    return error.status_code == 413 or (error.status_code == 400 and bool(_SAYS_TOO_LONG.search(message)))


def _number(pattern: re.Pattern[str], error: anthropic.APIStatusError) -> int | None:
    found = pattern.search(str(error.api_message or ""))
    return next((int(digits) for digits in found.groups() if digits), None) if found else None


def _unknown(error: anthropic.APIStatusError) -> OptionalField | None:
    """The optional field that the provider does not know."""
    message = str(error.api_message or "")
    if "eager_input_streaming" in message:
        return "eager_input_streaming"
    if _SAYS_UNKNOWN.search(message):
        if "cache_control" in message:
            return "cache_control"
        if "thinking" in message and "display" in message:
            return "display"
    return "thinking" if "thinking" in message and not message.startswith("messages.") else None


def client_from(environ: Mapping[str, str], http_client: httpx2.AsyncClient | None = None) -> anthropic.AsyncAnthropic:
    """The client of the provider that the environment names.

    Args:
        http_client: by default one over aiohttp, which takes half of httpx2's CPU to read a stream.

    Raises:
        ValueError: ANTHROPIC_BASE_URL is not an address.
    """
    # Left to itself, the SDK takes an empty ANTHROPIC_BASE_URL for an address and refuses to call without a key.
    key = environ.get("ANTHROPIC_API_KEY", "").strip()
    token = None if key else environ.get("ANTHROPIC_AUTH_TOKEN", "").strip() or None
    address = environ.get("ANTHROPIC_BASE_URL", "").strip() or "https://api.anthropic.com"
    if not re.match(r"https?://[^/:@\s]", address):
        raise ValueError("ANTHROPIC_BASE_URL is not an address: it must look like http://127.0.0.1:11434")
    url, auth = _without_password(httpx2.URL(address))
    http_client = http_client or anthropic.DefaultAioHttpClient()
    if auth:
        http_client.auth = auth
    return anthropic.AsyncAnthropic(
        api_key=None if token else key or _NO_KEY, auth_token=token, base_url=url, http_client=http_client
    )


def _without_password(url: httpx2.URL) -> tuple[httpx2.URL, httpx2.BasicAuth | None]:
    # aiohttp refuses a password in the address beside the header that httpx2 makes of it.
    if not url.userinfo:
        return url, None
    return url.copy_with(userinfo=b""), httpx2.BasicAuth(url.username, url.password)


class _SilenceLimit:
    """Closes a response that sends nothing for too long: after a chunk that is none, aiohttp waits without end.

    One timer for each answer, not for each read: there is a read for every token.
    """

    def __init__(self, response: httpx2.Response, seconds: float) -> None:
        self._response = response
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._since: float | None = None
        self._timer = self._loop.call_later(seconds, self._check)
        self._closing: asyncio.Task[None] | None = None

    async def contents(self) -> AsyncGenerator[bytes, None]:
        contents = self._response.aiter_bytes()
        try:
            self._since = self._loop.time()
            async for content in contents:
                self._since = None  # until the next read
                yield content
                self._since = self._loop.time()
        finally:
            self._timer.cancel()

    def _check(self) -> None:
        now = self._loop.time()
        left = self._seconds - (now - self._since) if self._since is not None else self._seconds
        if left > 0:
            self._timer = self._loop.call_later(left, self._check)
        else:
            self._closing = self._loop.create_task(self._response.aclose())


async def _raw_events(response: httpx2.Response, silence: float) -> AsyncGenerator[Mapping[str, Any], None]:
    """The events of an answer, as they were sent: the SDK's own stream makes a typed object of every token.

    Raises:
        anthropic.APIStatusError: the provider sent an error.
        httpx2.RequestError: the connection broke, or the provider has sent nothing for `silence` seconds.
        ValueError: the data cannot be read.
    """
    decoder = EventStreamDecoder()
    async for content in _SilenceLimit(response, silence).contents():
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
        max_tokens: the most that one call may generate, thinking included.
        thinking: see `ThinkingMode`.
        context_window: the most tokens of a request and its answer together. It shrinks if the provider reports a
            smaller one; the answer has at most half of it.
        client: that of the provider; by default made from ANTHROPIC_API_KEY and ANTHROPIC_BASE_URL.

    Raises:
        ValueError: ANTHROPIC_BASE_URL is not an address.
    """

    thinking: Literal["delta", "accumulated"] = "delta"

    def __init__(
        self,
        *,
        model: str = DEFAULT_MODEL,
        max_tokens: int = 32_000,
        thinking: ThinkingMode = "auto",
        context_window: int = CONTEXT_WINDOW,
        client: anthropic.AsyncAnthropic | None = None,
    ) -> None:
        self.name = model
        self._max_output = max_tokens
        self._context_window = context_window
        self._thinking = thinking
        self._client = client or client_from(os.environ)
        self._silence = httpx2.Timeout(self._client.timeout).read or MAX_SILENCE
        self._reported: set[str] = set()
        self._without: set[OptionalField] = set()

    @property
    def window(self) -> int:
        return self._context_window - self._max_tokens

    @property
    def _max_tokens(self) -> int:
        return min(self._max_output, self._context_window // 2)

    async def stream(self, request: m.ModelRequest) -> AsyncGenerator[m.ModelEvent, None]:
        """Ask the model. Closing the iterator closes the connection at once.

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
        except (anthropic.APIError, httpx2.RequestError, ValueError) as error:
            if mapper.end() is None:
                raise _broken(error, self._client) from error
        if (end := mapper.end()) is None:
            raise m.ModelError(_BROKEN, retryable=True)
        yield end

    async def _open(self, request: m.ModelRequest) -> _RawStream:
        try:
            return await self._ask(request)
        except (anthropic.AnthropicError, httpx2.RequestError) as error:
            raise _refused(error, self.name, self._client) from error

    async def _ask(self, request: m.ModelRequest) -> _RawStream:
        """Call, and repeat without what the provider refuses (rule 4)."""
        params = to_params(request, self.name, self._max_tokens, self._thinking, self._without)
        try:
            return cast(_RawStream, await self._client.messages.create(**params, stream=True))
        except (anthropic.BadRequestError, anthropic.UnprocessableEntityError) as error:
            less = self._less(request, error)
            if less is None:
                raise
        return await self._ask(less)

    def _less(self, request: m.ModelRequest, error: anthropic.APIStatusError) -> m.ModelRequest | None:
        """The request to send instead of a refused one; None if nothing is left to omit."""
        if _says_too_long(error):
            return request if self._narrowed(error) else None
        names_thinking = "thinking" in str(error.api_message or "")
        if names_thinking and (bare := without_thinking(request)) != request:
            what, less = "earlier thinking", bare
        elif (unknown := _unknown(error)) and unknown not in self._without:
            self._without.add(unknown)
            what, less = unknown, request
        elif (bare := without_media(request)) != request:
            what, less = "attached images and documents", bare
        else:
            return None
        logger.warning("The provider is asked again without the %s%s", what, _quoted(error, self._client))
        return less

    def _narrowed(self, error: anthropic.APIStatusError) -> bool:
        """Note a smaller window; whether the request fits into it with a shorter answer."""
        most, counted = _number(_LIMIT, error), _number(_COUNTED, error)
        if most is None or not _SMALLEST_WINDOW <= most < self._context_window:
            return False
        logger.warning("The model has a window of %d tokens: set --context-window", most)
        self._context_window = most
        return counted is not None and counted <= self.window

    async def aclose(self) -> None:
        """Close the connections to the provider."""
        await self._client.close()
