"""Makes the authenticator that the settings ask for."""

from __future__ import annotations

import time
from collections.abc import Callable

from a2a_canvas.server.accounts.access import Shares
from a2a_canvas.server.accounts.api_key import SHARED_USER, ApiKeys
from a2a_canvas.server.accounts.browser_session import EndedSessions
from a2a_canvas.server.protocols.identity.attempts import FailedAttempts
from a2a_canvas.server.protocols.identity.authenticator import Authenticator, ConfiguredKeys, JwtVerifier
from a2a_canvas.server.protocols.identity.security import discovery_url
from a2a_canvas.server.settings.settings import Settings, SettingsError, option_name


def make_authenticator(
    settings: Settings,
    attempts: FailedAttempts,
    api_keys: ApiKeys | None,
    links: Shares,
    ended: EndedSessions,
    count: Callable[[str], None],
    clock: Callable[[], float],
) -> Authenticator:
    """The authenticator of a server.

    Args:
        api_keys: those in the database; None without a database.

    Raises:
        SettingsError: tokens of the issuer could not be checked.
    """
    discovered = settings.jwt_issuer if not settings.jwt_jwks_url else None
    return Authenticator(
        attempts,
        token=settings.shared_token or "",
        keys=(ConfiguredKeys(settings.api_keys), *((api_keys,) if api_keys else ())),
        jwts=_jwts(settings),
        openid_url=discovery_url(discovered) if discovered else "",
        links=links,
        anonymous=settings.allow_anonymous,
        count=count,
        ended=ended,
        clock=clock,
    )


def _jwts(settings: Settings) -> JwtVerifier | None:
    given = [field for field in ("jwt_audience", "jwt_jwks_url") if getattr(settings, field)]
    if not settings.jwt_issuer:
        if given:
            raise SettingsError(f"{option_name(given[0])} needs {option_name('jwt_issuer')}: who issues the tokens.")
        return None
    if not settings.jwt_audience:
        raise SettingsError(
            f"{option_name('jwt_issuer')} needs {option_name('jwt_audience')}: otherwise tokens that it issues for "
            "other services would be accepted, too."
        )
    from a2a_canvas.server.protocols.identity.issuer import IssuedTokens, Issuer

    issuer = Issuer(settings.jwt_issuer, settings.jwt_jwks_url or "")
    return IssuedTokens(
        issuer, settings.jwt_audience, settings.jwt_user_claim, time.monotonic, reserved_users(settings)
    )


def reserved_users(settings: Settings) -> frozenset[str]:
    """The users that no token of the issuer may name: people may be able to choose their names there."""
    return frozenset((SHARED_USER,)) if settings.shared_token else frozenset()


def check_open(settings: Settings, *, keys: bool) -> None:
    """Raise `SettingsError` if others could reach the server without authenticating.

    Args:
        keys: the database has API keys, or had some.
    """
    if not settings.reachable_by or settings.authenticates or keys or settings.allow_anonymous:
        return
    raise SettingsError(
        f"{settings.reachable_by} exposes the server, but no authentication is configured: set "
        "A2A_CANVAS_SHARED_TOKEN to a secret (openssl rand -hex 16), or make a key with a2a-canvas key new NAME; "
        "--allow-anonymous serves everybody."
    )
