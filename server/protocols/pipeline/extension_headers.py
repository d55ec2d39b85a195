"""The extensions that a request activates, by its headers, and their echo in its answer (A2A 1.0, section 4.6).

Rule 1: extensions that the operator's card adds are echoed, and required where the card says so; what they mean is up
        to the operator's agent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from starlette.datastructures import Headers

from a2a_canvas.server.wire import AGENTSTACK, CANVAS, EXTENSIONS_HEADERS, TURN

SUPPORTED = frozenset({TURN, CANVAS, AGENTSTACK})


def activated_extensions(headers: Headers, version: str, supported: Set[str]) -> Mapping[str, str]:
    """The headers of the answer that name the activated extensions: those that the client used.

    Args:
        headers: of the request, or the metadata of a gRPC call.
        version: of the request; an empty one is 0.3.
        supported: URIs.
    """
    names = EXTENSIONS_HEADERS[:1] if version.startswith("1") else EXTENSIONS_HEADERS
    found = {name: activated_header(headers.getlist(name), supported) for name in names}
    return {name: uris for name, uris in found.items() if uris}


def activated_header(values: Iterable[str], supported: Set[str] = SUPPORTED) -> str:
    """Those of the requested URIs that are supported, as a header value; empty if there is none."""
    requested = {uri.strip() for value in values for uri in value.split(",")}
    return ", ".join(sorted(requested & supported))
