"""The form of a refusal in each HTTP binding, made by the SDK's own builders to look like the SDK's errors. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from a2a.server.jsonrpc_models import JSONParseError as JsonRpcParseError
from a2a.server.request_handlers.response_helpers import build_error_response
from a2a.utils.error_handlers import build_rest_error_payload
from a2a.utils.errors import (
    JSON_RPC_ERROR_CODE_MAP,
    InternalError,
    InvalidRequestError,
    JSONParseError,
    MethodNotFoundError,
)
from starlette.responses import JSONResponse

from a2a_canvas.server.protocols.edge.availability import RETRY_AFTER, UnavailableError
from a2a_canvas.server.protocols.guard.checks import Refusal
from a2a_canvas.server.protocols.guard.rpc_calls import RequestId

INTERNAL_REFUSAL = Refusal(InternalError, "Internal error")


@dataclass(frozen=True, slots=True)
class JsonRpcForm:
    """JSON-RPC's form, with HTTP 200. `id`: the request's, if known. `legacy`: the form of the SDK's 0.3 adapter."""

    id: RequestId = None
    legacy: bool = False

    def status(self, refusal: Refusal) -> int:
        return 200

    def payload(self, refusal: Refusal) -> dict[str, Any]:
        if self.legacy:
            return {"jsonrpc": "2.0", "id": self.id, "error": _legacy_error(refusal)}
        if refusal.kind is JSONParseError:
            return build_error_response(self.id, JsonRpcParseError(message=refusal.message))
        return build_error_response(self.id, refusal.error())


@dataclass(frozen=True, slots=True)
class RestForm:
    """REST's form, the same for both versions."""

    def status(self, refusal: Refusal) -> int:
        return int(self.payload(refusal)["error"]["code"])

    def payload(self, refusal: Refusal) -> dict[str, Any]:
        error = refusal.error()
        # A2A has no HTTP status for a parse error; the SDK's REST routes answer it so.
        payload = build_rest_error_payload(
            InvalidRequestError(error.message) if isinstance(error, JSONParseError) else error
        )
        if refusal.http_status is not None:
            payload["error"]["code"] = refusal.http_status
        return payload


ErrorForm: TypeAlias = JsonRpcForm | RestForm


def rest_response(refusal: Refusal, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """A refusal in REST's form; a retryable one has `Retry-After`."""
    retry = RETRY_AFTER if issubclass(refusal.kind, UnavailableError) else {}
    return JSONResponse(RestForm().payload(refusal), RestForm().status(refusal), {**(headers or {}), **retry})


# The codes of 1.0 that 0.3 does not have: its adapter answers InternalError instead.
_NOT_IN_LEGACY = (-32008, -32009)


def _legacy_error(refusal: Refusal) -> dict[str, Any]:
    internal = JSON_RPC_ERROR_CODE_MAP[InternalError]
    code = JSON_RPC_ERROR_CODE_MAP.get(refusal.kind, internal)
    fields = [{"field": path, "message": text} for path, text in refusal.fields]
    code = internal if code in _NOT_IN_LEGACY else code
    return {"code": code, "message": refusal.message, "data": fields or None}


def router_error(status: int, method: str) -> Refusal:
    """The refusal in place of a router's answer without JSON, by its HTTP status and the request's method."""
    if status >= 500:
        return INTERNAL_REFUSAL
    if status == 405:
        text = f"{method} is not possible here; see the header Allow"
        return Refusal(MethodNotFoundError, text, http_status=status)
    if status == 404:
        return Refusal(MethodNotFoundError, "No such path; see the A2A specification for the paths of this binding")
    return Refusal(InvalidRequestError, "The request was refused", http_status=status)
