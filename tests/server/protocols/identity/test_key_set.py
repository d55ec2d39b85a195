"""When the keys of an issuer are read, and what counts meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from a2a_canvas.server.protocols.identity.authenticator import IssuerUnavailable
from a2a_canvas.server.protocols.identity.cached_fetch import MAX_AGE, MIN_INTERVAL
from a2a_canvas.server.protocols.identity.json_web_tokens import Jwk, TokenHeader
from a2a_canvas.server.protocols.identity.key_set import KeySet

OLD, NEW = ({"kty": "EC", "kid": key_id} for key_id in ("old", "new"))
SIGNED_OLD, SIGNED_NEW, MADE_UP = (TokenHeader("ES256", key_id) for key_id in ("old", "new", "made up"))


class Published:
    """What an issuer publishes, and how often it was read."""

    def __init__(self) -> None:
        self.keys: Sequence[Jwk] = (OLD,)
        self.down = False
        self.reads = 0
        self.now = 0.0
        self.set = KeySet(self.read, lambda: self.now)

    async def read(self) -> Sequence[Jwk]:
        self.reads += 1
        await asyncio.sleep(0)
        if self.down:
            raise IssuerUnavailable("it is down")
        return self.keys


async def test_they_are_read_once_for_all_that_need_them() -> None:
    issuer = Published()
    assert issuer.reads == 0
    found = await asyncio.gather(*(issuer.set.keys_for(SIGNED_OLD) for _ in range(10)))
    assert found == [[OLD]] * 10
    assert issuer.reads == 1


async def test_a_new_key_is_found_when_a_token_has_it() -> None:
    issuer = Published()
    await issuer.set.keys_for(SIGNED_OLD)
    issuer.keys = (OLD, NEW)
    issuer.now += MIN_INTERVAL
    assert await issuer.set.keys_for(SIGNED_NEW) == [NEW]


async def test_keys_that_are_made_up_cost_the_issuer_nothing() -> None:
    issuer = Published()
    for _ in range(100):
        assert await issuer.set.keys_for(MADE_UP) == []
    assert issuer.reads == 1
    issuer.now += MIN_INTERVAL
    await issuer.set.keys_for(MADE_UP)
    assert issuer.reads == 2


async def test_a_key_that_is_withdrawn_counts_until_they_are_too_old() -> None:
    issuer = Published()
    await issuer.set.keys_for(SIGNED_OLD)
    issuer.keys = (NEW,)
    issuer.now += MAX_AGE - 1
    assert await issuer.set.keys_for(SIGNED_OLD) == [OLD]
    issuer.now += 1
    assert await issuer.set.keys_for(SIGNED_OLD) == []


async def test_while_the_issuer_is_down_those_of_before_count() -> None:
    issuer = Published()
    await issuer.set.keys_for(SIGNED_OLD)
    issuer.down = True
    issuer.now += 10 * MAX_AGE
    assert await issuer.set.keys_for(SIGNED_OLD) == [OLD]
    assert issuer.reads == 2
    issuer.down, issuer.keys = False, (NEW,)
    issuer.now += MIN_INTERVAL
    assert await issuer.set.keys_for(SIGNED_NEW) == [NEW]


async def test_if_none_were_ever_read_nobody_can_be_told_whether_a_token_is_valid() -> None:
    issuer = Published()
    issuer.down = True
    for _ in range(3):
        with pytest.raises(IssuerUnavailable):
            await issuer.set.keys_for(SIGNED_OLD)
    assert issuer.reads == 1
    issuer.down = False
    issuer.now += MIN_INTERVAL
    assert await issuer.set.keys_for(SIGNED_OLD) == [OLD]


async def test_the_log_tells_whether_there_are_keys_while_the_issuer_is_down(caplog: pytest.LogCaptureFixture) -> None:
    issuer = Published()
    issuer.down = True
    with pytest.raises(IssuerUnavailable):
        await issuer.set.keys_for(SIGNED_OLD)
    issuer.down = False
    issuer.now += MIN_INTERVAL
    await issuer.set.keys_for(SIGNED_OLD)
    issuer.down = True
    issuer.now += MAX_AGE
    await issuer.set.keys_for(SIGNED_OLD)
    assert caplog.messages == [
        "it is down There are no cached keys.",
        "it is down The cached keys stay valid.",
    ]
