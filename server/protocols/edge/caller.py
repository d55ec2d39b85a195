"""Who asks, over plain HTTP."""

from __future__ import annotations

from starlette.requests import Request


def owner_of(request: Request) -> str:
    """The caller's name; empty for anonymous callers."""
    user = request.scope.get("user")
    return str(user.display_name) if user is not None and user.is_authenticated else ""
