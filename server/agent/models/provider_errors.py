"""Maps errors of model providers to a sentence for the user and one for the operator. Pure, and without the SDKs.

Rule 1: retries do not multiply. The SDK has already retried a failure before the response headers: not retryable. A
        later one is retryable.
Rule 2: the user reads what happened and what to do. The operator's sentence, which only the log gets, names settings
        and repeats the provider's error message, shortened and without our keys.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from a2a_canvas.server.agent.model import ErrorKind, ModelError, TooLong

SMALLEST_WINDOW: Final = 1_024
"""Tokens of the smallest window: a smaller number in a message means something else."""
_KEY_LENGTH: Final = 12
"""The minimum length of a real key. The placeholder for a server that needs none is shorter, and may be a word."""

_TELL: Final = "tell the operator of this server; its log has the details."
FOR_USERS: Final[Mapping[ErrorKind, str]] = {
    "unreachable": f"The agent cannot reach its model. Try again in a minute. If that fails too, {_TELL}",
    "timeout": "The model did not answer in time. Try again in a few minutes.",
    "credentials": f"The agent has no access to its model: {_TELL}",
    "payment": f"The agent has no access to its model: {_TELL}",
    "unknown_model": f"The agent's model is not available: {_TELL}",
    "rate_limited": "The model is getting too many requests. Try again in a few minutes.",
    "overloaded": "The model is overloaded. Try again in a few minutes.",
    "failed": "The model could not answer. Try again in a few minutes.",
    "refused": f"The model did not accept this request. Try again in other words. If that fails too, {_TELL}",
    "too_long": "This is too long for the model. Send less at a time, or start a new conversation.",
    "broken": "The connection to the model broke before its answer was complete. Try again.",
    "other": f"The agent could not use its model: {_TELL}",
}
"""Messages for users."""
_BROKEN: Final = "The connection to the model provider broke before the answer was complete."
_TOO_LONG: Final = (
    "The request is too long for the model: send less at a time, or raise --context-window if it takes more."
)
_SAYS_TOO_LONG: Final = re.compile(
    r"prompt is too long|exceed context limit|context (length|window|size)|input is too long|too many (input )?tokens"
    r"|reduce the length",
    re.IGNORECASE,
)
_LIMIT: Final = re.compile(
    r"tokens > (\d+) maximum|\+ \d+ > (\d+)|context length (?:is|of only) (\d+)|context size \((\d+)"
    r"|with (\d+) maximum context length",
    re.IGNORECASE,
)
_COUNTED: Final = re.compile(
    r"(\d+) tokens > |limit: (\d+) \+|(\d+) in the messages|(\d+) input tokens|request \((\d+) tokens|"
    r"resulted in (\d+) tokens|prompt contains (\d+) tokens|(\d+) of text input",
    re.IGNORECASE,
)
_ANSWER_LIMIT: Final = re.compile(
    r"at most (\d+) (?:completion|output) tokens|less than or equal to \W?(\d+)|max_tokens\W* \d+ > (\d+)",
    re.IGNORECASE,
)
"""The limit and the request's tokens, in the messages of Anthropic, OpenAI, vLLM, llama.cpp, LM Studio, OpenRouter and
Mistral; the limit of an answer, in those of OpenAI, Groq and Anthropic."""
_REASONS: Final[Mapping[int, str]] = {
    400: "The model provider refused the request{message}",
    401: "The model provider refused the API key: check {key}.",
    402: "The model provider asks for payment{said}: check the account's credit.",
    403: "The model provider refused the API key: check {key} and what it gives access to.",
    404: "The model provider does not know the model {model}{said}: choose another with --model.",
    422: "The model provider refused the request{message}",
    429: "The model provider's rate limit has been reached{said}: try again later.",
    529: "The model provider is overloaded: try again later.",
}
_KINDS: Final[Mapping[int, ErrorKind]] = {
    401: "credentials",
    402: "payment",
    403: "credentials",
    404: "unknown_model",
    429: "rate_limited",
    529: "overloaded",
}
_FAILED: Final = "The model provider failed (HTTP {status}): try again later."
_OTHER_STATUS: Final = "The model provider answered with HTTP {status}{message}"


def failure(kind: ErrorKind, detail: str, *, retryable: bool = False, retry_after: float | None = None) -> ModelError:
    """The error of a model call.

    Args:
        detail: for the operator.
    """
    return ModelError(FOR_USERS[kind], retryable=retryable, retry_after=retry_after, kind=kind, detail=detail)


def kind_of(status: int) -> ErrorKind:
    """The kind of error of an HTTP status."""
    return _KINDS.get(status, "failed" if status >= 500 else "refused")


def broken_error() -> ModelError:
    """The connection ended in the middle of the answer."""
    return failure("broken", _BROKEN, retryable=True)


def overloaded_error(headers: Mapping[str, str]) -> ModelError:
    """The provider reported overload in the middle of its answer."""
    return failure("overloaded", _REASONS[529], retryable=True, retry_after=retry_after(headers))


def other_error(error: Exception) -> ModelError:
    """The request failed in a way that no other error describes."""
    return failure("other", f"The model provider could not be asked ({type(error).__name__}).")


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider as named in messages. `key` and `url` are its environment variables."""

    host: str
    key: str
    url: str
    secrets: tuple[str, ...] = ()

    def redact(self, message: str) -> str:
        """An error message of the provider, shortened, on one line and without our keys."""
        message = " ".join(message.split())
        for secret in self.secrets:
            message = message.replace(secret, "[key]") if len(secret) >= _KEY_LENGTH else message
        return message[:300]

    def quote(self, message: str) -> str:
        """An error message of the provider, as the end of a sentence."""
        said = self.redact(message)
        return f": {said}" if said else "."

    def timeout_error(self) -> ModelError:
        """It did not answer."""
        return failure("timeout", f"The model provider at {self.host} did not answer in time.")

    def unreachable_error(self) -> ModelError:
        """No connection could be made."""
        return failure(
            "unreachable", f"The model provider at {self.host} cannot be reached: check the network and {self.url}."
        )

    def status_error(self, status: int, message: str, model: str) -> ModelError:
        """It answered a request with an error."""
        if says_too_long(status, message):
            return TooLong(FOR_USERS["too_long"], tokens_in(message), _TOO_LONG)
        said = self.redact(message)
        form = _REASONS.get(status, _FAILED if status >= 500 else _OTHER_STATUS)
        detail = form.format(
            status=status,
            model=model,
            key=self.key,
            said=f" (it says: {said.rstrip('.')})" if said else "",
            message=self.quote(message),
        )
        return failure(kind_of(status), detail)

    def unreadable_error(self, why: object) -> ModelError:
        """Its answer cannot be read."""
        return failure("broken", f"The answer of the model provider at {self.host} cannot be read: {why}.")

    def stream_error(self, message: str, headers: Mapping[str, str]) -> ModelError:
        """It sent an error instead of the rest of its answer."""
        detail = f"The model provider broke off its answer{self.quote(message)}"
        return failure("broken", detail, retryable=True, retry_after=retry_after(headers))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds to wait that a response requests; None if it requests none."""
    try:
        return float(headers["retry-after-ms"]) / 1000 if "retry-after-ms" in headers else float(headers["retry-after"])
    except (KeyError, ValueError):  # it may be a date
        return None


def says_too_long(status: int, message: str) -> bool:
    """Whether an error means that the request has too many tokens or bytes."""
    return status == 413 or (status in (400, 422) and bool(_SAYS_TOO_LONG.search(message)))


def window_in(message: str) -> int | None:
    """The model's window in tokens, as stated in an error."""
    most = _number(_LIMIT, message)
    return most if most and most >= SMALLEST_WINDOW else None


def tokens_in(message: str) -> int | None:
    """The tokens of the request, as stated in an error."""
    return _number(_COUNTED, message)


def answer_limit_in(message: str) -> int | None:
    """The limit of an answer's tokens, as stated in an error about `max_tokens`."""
    return _number(_ANSWER_LIMIT, message) if "_tokens" in message else None


def _number(pattern: re.Pattern[str], message: str) -> int | None:
    found = pattern.search(message)
    return next((int(digits) for digits in found.groups() if digits), None) if found else None
