"""Who is let in, and as whom."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from starlette.datastructures import Headers

from a2a_canvas.server.accounts.access import ANONYMOUS, Caller, Level, Share
from a2a_canvas.server.accounts.api_key import ApiKey, hash_of
from a2a_canvas.server.protocols.edge.origins import Origin
from a2a_canvas.server.protocols.identity.attempts import BURST, FailedAttempts
from a2a_canvas.server.protocols.identity.authenticator import (
    AuthenticatedCaller,
    Authenticator,
    ConfiguredKeys,
    Denial,
    InvalidCredential,
    MissingCredential,
    TooManyAttempts,
)
from a2a_canvas.server.protocols.identity.credentials import (
    Credential,
    OpaqueToken,
    PresentedJwt,
    PresentedKey,
    PresentedLink,
)
from a2a_canvas.server.protocols.identity.json_web_tokens import ValidToken
from a2a_canvas.server.protocols.identity.security import Security
from a2a_canvas.server.protocols.pipeline.entrance import stream_check
from a2a_canvas.store.errors import Unavailable
from tests.fakes import API_KEYS

TOKEN = "0123456789abcdef"
KEY, OTHER_KEY, _ = API_KEYS
ANN = Caller("ann")
KEYS = ConfiguredKeys([ApiKey("ci", "ann", hash_of(KEY))])


class FakeJwts:
    async def verify(self, token: str) -> ValidToken | None:
        return ValidToken("joe", expires_at=100) if token == "a.b.c" else None


def authenticator(**options: object) -> Authenticator:
    return Authenticator(FailedAttempts(lambda: 0.0), **options)  # type: ignore[arg-type]


async def asked(given: Authenticator, credential: str | None = None) -> Caller | Denial:
    headers = Headers({"Authorization": f"Bearer {credential}"} if credential else {})
    found = await given.authenticate(headers, Origin("192.0.2.1"))
    return found.caller if isinstance(found, AuthenticatedCaller) else found


@pytest.mark.parametrize("credential", [None, TOKEN, KEY, "a.b.c"])
async def test_without_authentication_everybody_is_anonymous_whatever_they_send(credential: str | None) -> None:
    assert await asked(authenticator(), credential) == ANONYMOUS
    assert await asked(authenticator(keys=(ConfiguredKeys([]),)), credential) == ANONYMOUS


@pytest.mark.parametrize(
    ("credential", "caller"),
    [(TOKEN, Caller("shared")), (KEY, ANN), ("a.b.c", Caller("joe"))],
    ids=["token", "key", "jwt"],
)
async def test_each_credential_is_somebodys(credential: str, caller: Caller) -> None:
    all_of_them = authenticator(token=TOKEN, keys=(ConfiguredKeys([]), KEYS), jwts=FakeJwts())
    assert await asked(all_of_them, credential) == caller


@pytest.mark.parametrize("credential", [TOKEN[:-1], TOKEN + "x", OTHER_KEY, "a.b.d", "ü", hash_of(KEY)])
async def test_any_other_is_not_valid(credential: str) -> None:
    all_of_them = authenticator(token=TOKEN, keys=(KEYS,), jwts=FakeJwts())
    assert await asked(all_of_them, credential) == InvalidCredential()


@pytest.mark.parametrize("credential", [TOKEN, KEY, "a.b.c"])
@pytest.mark.parametrize("options", [{"token": TOKEN * 2}, {"jwts": FakeJwts()}], ids=["token", "jwts"])
async def test_a_credential_of_a_kind_that_the_server_does_not_have_is_not_valid(
    options: dict[str, object], credential: str
) -> None:
    expected = Caller("joe") if "jwts" in options and credential == "a.b.c" else InvalidCredential()
    assert await asked(authenticator(**options), credential) == expected


async def test_no_credential_is_missing_unless_anonymous_callers_are_served() -> None:
    assert await asked(authenticator(token=TOKEN)) == MissingCredential()
    assert await asked(authenticator(token=TOKEN, anonymous=True)) == ANONYMOUS


async def test_a_wrong_credential_is_not_valid_even_where_anonymous_callers_are_served() -> None:
    assert await asked(authenticator(token=TOKEN, anonymous=True), "wrong") == InvalidCredential()


async def test_whoever_tries_many_has_to_wait_also_with_the_right_one() -> None:
    slow = authenticator(token=TOKEN)
    for number in range(BURST):
        assert await asked(slow, f"wrong{number}") == InvalidCredential()
    assert isinstance(await asked(slow, TOKEN), TooManyAttempts)
    assert await asked(slow) == MissingCredential()


async def test_a_valid_key_is_let_in_however_many_wrong_ones_others_of_its_address_try() -> None:
    slow = authenticator(token=TOKEN, keys=(KEYS,))
    for _ in range(BURST):
        assert await asked(slow, OTHER_KEY) == InvalidCredential()
    assert isinstance(await asked(slow, OTHER_KEY), TooManyAttempts)
    assert isinstance(await asked(slow, TOKEN), TooManyAttempts)
    assert await asked(slow, KEY) == ANN


class KeysAway:
    async def find(self, key_hash: str) -> ApiKey | None:
        raise Unavailable("away")

    async def exist(self) -> bool:
        return True


async def test_what_cannot_be_checked_is_no_attempt() -> None:
    away = authenticator(keys=(KeysAway(),))
    for _ in range(BURST * 2):
        with pytest.raises(Unavailable):
            await asked(away, KEY)


@pytest.mark.parametrize(
    ("options", "security"),
    [
        ({}, Security()),
        ({"token": TOKEN}, Security(bearer=True)),
        ({"keys": (KEYS,)}, Security(bearer=True)),
        ({"jwts": FakeJwts()}, Security(bearer=True)),
        ({"jwts": FakeJwts(), "openid_url": "https://i/x"}, Security(openid_url="https://i/x")),
        ({"token": TOKEN, "anonymous": True}, Security(bearer=True, optional=True)),
    ],
)
async def test_it_says_what_a_request_needs(options: dict[str, object], security: Security) -> None:
    assert await authenticator(**options).security() == security


# --------------------------------------------------------------------------- its end


@pytest.mark.parametrize(("now", "in_force"), [(99, True), (100, False)], ids=str)
async def test_a_token_is_in_force_until_it_expires(now: float, in_force: bool) -> None:
    given = authenticator(jwts=FakeJwts(), clock=lambda: now)
    found = await given.verify(PresentedJwt("a.b.c"))
    assert found
    assert found.ends
    assert await given.in_force(found) is in_force


async def test_a_key_is_in_force_until_it_is_revoked() -> None:
    found = await authenticator(keys=(KEYS,)).verify(PresentedKey(KEY))
    assert found
    assert found.ends
    assert await authenticator(keys=(KEYS,)).in_force(found)
    assert not await authenticator(keys=(ConfiguredKeys([]),)).in_force(found)


@pytest.mark.parametrize("credential", [OpaqueToken(TOKEN), PresentedLink("x")], ids=["shared token", "link"])
async def test_others_end_nowhere_or_where_they_are_used(credential: Credential) -> None:
    given = authenticator(token=TOKEN, links=OneLink())
    found = await given.verify(credential)
    assert found
    assert not found.ends
    assert stream_check(given, found) is None


class OneLink:
    async def link(self, token_hash: str) -> Share:
        return Share("s", "c", "ann", Level.READ, datetime.now(UTC))


async def test_a_stream_goes_on_while_nobody_can_say_whether_its_key_is_in_force() -> None:
    check = stream_check(authenticator(keys=(KeysAway(),)), AuthenticatedCaller(ANN, hash_of(KEY)))
    assert check
    await check()
