"""The form of an error in each HTTP binding, made by the SDK's own builders. Pure.

Rule 1: `ErrorInfo.metadata` holds strings only, as `google.rpc.ErrorInfo` defines it. Fields at fault are in
        `BadRequest`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeAlias

from a2a.server.jsonrpc_models import JSONParseError as JsonRpcParseError
from a2a.server.request_handlers.response_helpers import build_error_response
from a2a.utils.error_handlers import build_rest_error_payload
from a2a.utils.errors import (
    A2AError,
    InternalError,
    InvalidRequestError,
    JSONParseError,
    MethodNotFoundError,
)
from starlette.responses import JSONResponse

from a2a_canvas.server.protocols.edge.availability import retry_header
from a2a_canvas.server.protocols.edge.error_tables import rpc_code
from a2a_canvas.server.protocols.guard.calls import RequestId
from a2a_canvas.server.protocols.guard.checks import Refusal
from a2a_canvas.store.text.wording import choice, format_value

INTERNAL_REFUSAL = Refusal(InternalError, "Internal error")

_BEFORE_JSON_RPC = (401, 415, 429, 503)


@dataclass(frozen=True, slots=True)
class JsonRpcForm:
    """JSON-RPC's form, with HTTP 200, unless the body was not read, for example without credentials.

    Attributes:
        id: the request's, if known.
        legacy: A2A 0.3's form.
    """

    id: RequestId = None
    legacy: bool = False

    def status(self, refusal: Refusal) -> int:
        return refusal.http_status if refusal.http_status in _BEFORE_JSON_RPC else 200

    def payload(self, refusal: Refusal) -> dict[str, Any]:
        if refusal.kind is JSONParseError:
            return build_error_response(self.id, JsonRpcParseError(message=refusal.message))
        return self.error_payload(refusal.error())

    def error_payload(self, error: A2AError) -> dict[str, Any]:
        if self.legacy:
            answer = {"code": rpc_code(type(error)), "message": error.message, "data": error.data}
            return {"jsonrpc": "2.0", "id": self.id, "error": answer}
        payload = build_error_response(self.id, error)
        payload["error"]["code"] = rpc_code(type(error))
        _write_strings_only(payload["error"]["data"])
        return payload


@dataclass(frozen=True, slots=True)
class RestForm:
    """REST's form, the same for both versions."""

    def status(self, refusal: Refusal) -> int:
        return int(self.payload(refusal)["error"]["code"])

    def payload(self, refusal: Refusal) -> dict[str, Any]:
        error = refusal.error()
        # A2A has no HTTP status for a parse error.
        payload = rest_error_payload(InvalidRequestError(error.message) if isinstance(error, JSONParseError) else error)
        if refusal.http_status is not None:
            payload["error"]["code"] = refusal.http_status
        if refusal.http_status == 405:
            payload["error"]["status"] = "UNIMPLEMENTED"  # as grpc-gateway maps it: google.rpc.Code has none for 405
        return payload


ErrorForm: TypeAlias = JsonRpcForm | RestForm


def form_of(method: str, path: str) -> ErrorForm:
    """The form of errors at a path: JSON-RPC's, or REST's."""
    return JsonRpcForm() if path == "/" and method not in ("GET", "HEAD") else RestForm()


def refusal_response(form: ErrorForm, refusal: Refusal, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """A refusal over HTTP; a retryable one has `Retry-After`."""
    headers = {**(headers or {}), **refusal.headers, **retry_header(refusal.error())}
    return JSONResponse(form.payload(refusal), form.status(refusal), headers)


def rest_response(refusal: Refusal, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """A refusal in REST's form."""
    return refusal_response(RestForm(), refusal, headers)


def rest_error_payload(error: A2AError) -> dict[str, Any]:
    """An error in REST's form."""
    payload = build_rest_error_payload(error)
    _write_strings_only(payload["error"]["details"])
    return payload


def _write_strings_only(details: list[dict[str, Any]]) -> None:
    """Rule 1. The SDK copies all data of an error to the metadata of the first detail, which is `ErrorInfo`."""
    info = details[0]
    given = {name: value for name, value in info["metadata"].items() if name != "errors"}
    info["metadata"] = {name: value if isinstance(value, str) else json.dumps(value) for name, value in given.items()}


def method_not_allowed(method: str, path: str, allowed: Collection[str]) -> Refusal:
    """The refusal of a method that `path` does not support (HTTP 405)."""
    text = f"{method} is not possible at {path}; it takes {choice(allowed, 'and')}"
    return Refusal(MethodNotFoundError, text, http_status=405, headers={"Allow": ", ".join(allowed)})


def no_such_path(path: str, known: Mapping[str, str], prefix: str = "", more: Collection[str] = ()) -> Refusal:
    """The refusal of an unknown path (HTTP 404).

    Args:
        known: the paths below `prefix`, each with its suffix in the message.
        more: other paths to suggest.
    """
    near = get_close_matches(path.removeprefix(prefix), [*known, *more], n=2, cutoff=0.65)
    all_of_them = choice((f"{prefix}{name}{about}" for name, about in known.items()), "and")
    these = f"Did you mean {choice(prefix + name for name in near)}?" if near else f"There are {all_of_them}."
    return Refusal(MethodNotFoundError, f"There is nothing at {format_value(path)}. {these}", http_status=404)
