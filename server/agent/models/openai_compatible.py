"""A model behind the chat completions API, of OpenAI or at `OPENAI_BASE_URL`, behind the `LLM` protocol.

Rules:

1. The rules of `provider_errors.py`. A stream is broken by a transport error, an error instead of a chunk, unreadable
   data and an end without a finish reason. A failure after the finish reason is ignored.
2. No other module imports `openai`, and the server imports this one only when needed: `openai` is an extra.
3. Optional content that a server rejects is omitted, and the call repeated: a field for the life of this process
   (`Deviation`), files of the conversation for this call.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final, Literal, cast

import httpx2
import openai
from openai.types.chat import ChatCompletionChunk

from a2a_canvas.server.agent import model as m
from a2a_canvas.server.agent.attachments import without_media
from a2a_canvas.server.agent.models.openai_events import ChunkMapper, error_in, error_message
from a2a_canvas.server.agent.models.openai_params import Deviation, deviation, to_params
from a2a_canvas.server.agent.models.provider_connection import MAX_ANSWER, MAX_SILENCE, NO_KEY, SilenceLimit, address_in
from a2a_canvas.server.agent.models.provider_errors import (
    Provider,
    answer_limit_in,
    broken_error,
    failure,
    other_error,
    says_too_long,
)
from a2a_canvas.server.agent.models.sse_decoder import EventStreamDecoder
from a2a_canvas.server.agent.models.token_limits import TokenLimits
from a2a_canvas.server.outbound.over_httpx2 import UnreadableMessage, limit_answers

logger = logging.getLogger(__name__)

ADDRESS: Final = "https://api.openai.com/v1"
_REFUSES_FILES: Final = re.compile(r"(image|file|document|multimodal)[\w ]* (is|are) not supported", re.IGNORECASE)

_ChunkStream = openai.AsyncStream[ChatCompletionChunk]


def client_from(environ: Mapping[str, str], http_client: httpx2.AsyncClient | None = None) -> openai.AsyncOpenAI:  # noqa: TID251
    """The client for the provider in the environment.

    Args:
        http_client: by default one over aiohttp, which takes half of httpx2's CPU to read a stream.

    Raises:
        ValueError: OPENAI_BASE_URL is not an address.
    """
    key = environ.get("OPENAI_API_KEY", "").strip()
    url, auth = address_in(environ, "OPENAI_BASE_URL", ADDRESS, example="http://127.0.0.1:8080/v1")
    http_client = limit_answers(http_client or openai.DefaultAioHttpClient(), MAX_ANSWER, by_event=False)
    if auth:
        http_client.auth = auth
    return openai.AsyncOpenAI(api_key=key or NO_KEY, base_url=url, http_client=http_client)


def _cannot_connect(error: openai.APITimeoutError) -> bool:
    """Whether no connection could be made, which the SDK's transport over aiohttp reports as a time-out."""
    cause = error.__cause__ and error.__cause__.__cause__
    return isinstance(cause, OSError) and not isinstance(cause, TimeoutError)


class OpenAIModel:
    """A model behind the chat completions API.

    Args:
        model: its name at the provider.
        max_tokens: the most that one call may generate, thinking included. It shrinks if the server reports less.
        thinks: whether the model may think before it answers, if it can.
        sends_thinking: whether the server sends the thinking in pieces, or all of it so far.
        context_window: the most tokens of a request and its answer together. It shrinks if the server reports a
            smaller one; the answer has at most half of it.
        client: of the provider; by default made from OPENAI_API_KEY and OPENAI_BASE_URL.

    Raises:
        ValueError: OPENAI_BASE_URL is not an address.
    """

    def __init__(
        self,
        *,
        model: str,
        context_window: int,
        max_tokens: int = 32_000,
        thinks: bool = True,
        sends_thinking: Literal["delta", "accumulated"] = "delta",
        client: openai.AsyncOpenAI | None = None,
    ) -> None:
        self.name = f"openai:{model}"
        self.thinking = sends_thinking
        self._model = model
        self._limits = TokenLimits(max_tokens, context_window)
        self._thinks = thinks
        self._client = client or client_from(os.environ)
        self._silence = httpx2.Timeout(self._client.timeout).read or MAX_SILENCE
        # Servers that accept only one name of the limit accept the older one, except OpenAI itself.
        own = self._client.base_url.host == httpx2.URL(ADDRESS).host
        self._deviations: list[Deviation] = [] if own else ["max_tokens"]

    @property
    def window(self) -> int:
        return self._limits.request

    async def stream(self, request: m.ModelRequest) -> AsyncGenerator[m.ModelEvent, None]:
        """Call the model. Closing the iterator closes the connection immediately.

        Raises:
            ModelError: see rule 1.
        """
        mapper, done = ChunkMapper(self.thinking), False
        opened = await self._open(request)
        try:
            async with opened:
                async for chunk in self._chunks(opened.response):
                    done = chunk is None
                    for event in mapper.feed(chunk) if chunk else ():
                        yield event
        except UnreadableMessage as error:
            raise self._provider.unreadable_error(error) from error
        except (m.ModelError, httpx2.RequestError, ValueError, RecursionError) as error:
            if not mapper.complete:
                raise (error if isinstance(error, m.ModelError) else broken_error()) from error
        for event in mapper.end(done):
            yield event
        if not mapper.complete:
            raise broken_error()

    async def _chunks(self, response: httpx2.Response) -> AsyncGenerator[Mapping[str, Any] | None, None]:
        """The raw chunks of an answer, then None where the server marks the end.

        Raises:
            ModelError: the server sent an error.
            httpx2.RequestError: the connection broke, or the server has sent nothing for too long.
            ValueError: the data cannot be read.
        """
        decoder = EventStreamDecoder()
        async for content in SilenceLimit(response, self._silence).contents():
            for _, data in decoder.feed(content):
                if data.strip() == "[DONE]":
                    yield None
                    return
                chunk = json.loads(data)
                if isinstance(chunk, dict):
                    if (said := error_in(chunk)) is not None:
                        raise self._provider.stream_error(said, response.headers)
                    yield chunk

    async def _open(self, request: m.ModelRequest) -> _ChunkStream:
        try:
            return await self._ask(request)
        except UnreadableMessage as error:
            raise self._provider.unreadable_error(error) from error
        except (openai.OpenAIError, httpx2.RequestError) as error:
            raise self._opening_error(error) from error

    async def _ask(self, request: m.ModelRequest) -> _ChunkStream:
        """Call, and repeat without what the server rejects (rule 3)."""
        params = to_params(
            request,
            self._model,
            self._limits.answer,
            thinks=self._thinks,
            deviations=self._deviations,
        )
        try:
            return cast(_ChunkStream, await self._client.chat.completions.create(**params, stream=True))
        except openai.APIStatusError as error:
            less = self._less(request, error.status_code, error_message(error.body))
            if less is None:
                raise
        return await self._ask(less)

    def _less(self, request: m.ModelRequest, status: int, message: str) -> m.ModelRequest | None:
        """The request to send instead of a rejected one; None if there is nothing left to change."""
        if says_too_long(status, message):
            return request if self._limits.narrow(message) else None
        if status not in (400, 422) and not _REFUSES_FILES.search(message):
            return None
        if (most := answer_limit_in(message)) and most < self._limits.answer:
            self._limits.max_output, what, less = most, f"max_tokens={most}", request
        elif demanded := deviation(message, self._deviations):
            self._deviations.append(demanded)
            what, less = demanded, request
        elif (bare := without_media(request)) != request:
            what, less = "without attached images and documents", bare
        else:
            return None
        logger.warning("Repeating the request to the provider, %s%s", what, self._provider.quote(message))
        return less

    @property
    def _provider(self) -> Provider:
        host = self._client.base_url.netloc.decode("ascii", "replace")
        return Provider(host, "OPENAI_API_KEY", "OPENAI_BASE_URL", (self._client.api_key,))

    def _opening_error(self, error: Exception) -> m.ModelError:
        """The error of a call that failed before its stream."""
        match error:
            case openai.APITimeoutError() if not _cannot_connect(error):
                return self._provider.timeout_error()
            case openai.APIConnectionError():
                return self._provider.unreachable_error()
            case openai.NotFoundError() if "model" not in error_message(error.body).lower():
                return failure(
                    "unknown_model",
                    f"The model provider has no chat completions at {self._provider.host}"
                    f"{self._client.base_url.path}chat/completions: check OPENAI_BASE_URL, which often ends in /v1.",
                )
            case openai.BadRequestError(code="tool_use_failed"):
                # Groq validates the input of a call against its schema. The next attempt may be valid.
                quoted = self._provider.quote(error_message(error.body))
                return failure("refused", f"The model wrote a call that its provider refuses{quoted}", retryable=True)
            case openai.APIStatusError(status_code=status):
                return self._provider.status_error(status, error_message(error.body), self._model)
            case _:
                return other_error(error)

    async def aclose(self) -> None:
        """Close the connections to the provider."""
        await self._client.close()
