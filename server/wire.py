"""Names and paths of the wire that the server and its clients share. Imports nothing of either.

The extensions are specified in docs/extensions.md, the paths in protocols/artifacts/paths.py.
"""

import json
import ssl
from typing import Any
from urllib.parse import quote

TURN = "urn:a2a-canvas:turn:v1"
"""The events of a turn while it runs."""

CANVAS = "urn:a2a-canvas:canvas:v1"
"""Edits of a selection while they are written, versions, undo, redo, restore, put."""

AGENTSTACK = "https://a2a-extensions.agentstack.beeai.dev/ui/canvas/v1"
"""The canvas extension of another project; its edit requests are accepted as they are."""

VIA = "urn:a2a-canvas:via"
"""In the metadata of a message: the program that its sender used."""

VERSION_HEADER = "A2A-Version"

REST_PREFIX = "/rest"
"""A2A over HTTP+JSON is below it."""

BELOW_REST = f"{REST_PREFIX}/"
"""How its paths begin."""

AGUI_PATH = "/canvas/stream"
"""AG-UI."""

MCP_PATH = "/mcp"
"""MCP, streamable HTTP."""

RESOURCE_PATH = "/.well-known/oauth-protected-resource"
"""Where an MCP host learns who issues tokens (RFC 9728); also with `MCP_PATH` after it."""

CATALOG_PATH = "/.well-known/ai-catalog.json"
"""What there is at this address: an A2A agent and an MCP server."""

REALM = 'realm="a2a-canvas"'
"""By this, in `WWW-Authenticate`, a client knows whose credentials are asked for."""

KEYS_PATH = "/.well-known/jwks.json"
"""Where a server publishes the key that its card is signed with, as a JSON Web Key Set."""

TOKEN_VARIABLE = "A2A_CANVAS_TOKEN"
"""The environment variable of the client's bearer token. It is no setting of the server, which ignores it."""

URL_VARIABLE = "A2A_CANVAS_URL"
"""The environment variable of the server's address, for the client. The server ignores it, too."""

EXTENSIONS_HEADERS = ("A2A-Extensions", "X-A2A-Extensions")
"""The header that activates extensions in A2A 1.0 and the one in 0.3; a 0.3 request may use either."""

EXTENSIONS_OF_FORMATS = {"docx": ".docx", "odt": ".odt", "epub": ".epub", "latex": ".tex"}
"""The formats into which a server with pandoc converts Markdown, and what the names of their files end in."""

YES = ("yes", "y", "ok", "okay", "sure", "approve", "approved", "allow", "allowed", "go", "true")
"""The first word of an answer that approves a call."""

MAX_ANSWER = 10_000
"""Characters of an answer to the question for an approval; a longer one is no approval."""


def is_yes(answer: str) -> bool:
    """Whether an answer approves a call: its first word says so, or it is `{"approved": true}`.

    An answer of more than `MAX_ANSWER` characters does not.
    """
    if len(answer) > MAX_ANSWER:
        return False
    try:
        given = json.loads(answer)
    except (ValueError, RecursionError):
        words = answer.lower().replace(",", " ").replace(".", " ").replace("!", " ").split()
        return bool(words) and words[0] in YES
    return given.get("approved") is True if isinstance(given, dict) else given is True


def whole_numbers(value: Any) -> Any:
    """Protobuf stores every number as a float; a 3 that was sent should not become 3.0."""
    match value:
        case float() if value.is_integer() and abs(value) < 2**53:
            return int(value)
        case dict():
            return {key: whole_numbers(item) for key, item in value.items()}
        case list():
            return [whole_numbers(item) for item in value]
        case _:
            return value


def why_untrusted(error: BaseException) -> str:
    """That a connection failed because of the other side's certificate, and what to do; empty if it did not."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            reason = cause.verify_message.rstrip(".")
            return f"its certificate is not trusted ({reason}): set SSL_CERT_FILE to the file of its issuer"
        cause = cause.__cause__ or cause.__context__
    return ""


_RESERVED = {"events": "%65vents", "presence": "%70resence", "shares": "%73hares"}


def context_path(context_id: str) -> str:
    """The percent-encoded path of a context's artifacts, after `/artifacts/`."""
    return context_id.replace(".", "%2E") if context_id in (".", "..") else quote(context_id, safe="")


def artifact_path(context_id: str, artifact_id: str) -> str:
    """The percent-encoded path of an artifact, after `/artifacts/`. A context's events and shares are no artifacts."""
    return f"{context_path(context_id)}/{_RESERVED.get(artifact_id) or context_path(artifact_id)}"
