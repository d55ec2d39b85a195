"""Attempts over HTTP, with aiohttp.

Rule 1: the connection is made to the addresses that were checked (`targets.py`, `outbound/over_aiohttp.py`), whatever a
        name server says in the next moment. Name, certificate and the header Host are those of the url.
Rule 2: a redirect is not followed, no proxy and no cookie is used, no body is read.
Rule 3: no exception's text leaves here: it may have the url in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from io import BytesIO

import aiohttp

from a2a_canvas.server.outbound import over_aiohttp
from a2a_canvas.server.outbound.addresses import CONNECT_SECONDS
from a2a_canvas.server.push.retries import DeliveryFailed, Outcome, outcome_of
from a2a_canvas.server.push.sending import TOTAL_SECONDS, TargetCheck
from a2a_canvas.server.push.targets import Target, TargetRefused, target_of


class HttpSender:
    """Sends to targets that a check lets through."""

    def __init__(self, check: TargetCheck) -> None:
        self._check = check
        self._session: aiohttp.ClientSession | None = None  # noqa: TID251

    async def __call__(self, url: str, headers: Mapping[str, str], body: bytes) -> Outcome:
        try:
            async with asyncio.timeout(TOTAL_SECONDS):
                target = target_of(url)
                over_aiohttp.checked.set(await self._check.addresses(target))
                return await self._post(target, headers, body)
        except TargetRefused as refusal:
            return DeliveryFailed(f"its url {refusal}")
        except TimeoutError:
            return DeliveryFailed(f"the receiver did not answer within {TOTAL_SECONDS:g} seconds")
        except aiohttp.ClientConnectorCertificateError:
            return DeliveryFailed("the receiver's certificate is not valid")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return DeliveryFailed(f"the receiver cannot be reached ({type(error).__name__})")

    async def _post(self, target: Target, headers: Mapping[str, str], body: bytes) -> Outcome:
        session = self._open_session()
        # A stream is written piece by piece: one receiver that does not read gets no second copy of the body.
        async with session.post(target.url, data=BytesIO(body), headers=headers, allow_redirects=False) as response:
            outcome = outcome_of(response.status, response.headers.get("Retry-After", ""))
            response.close()
            return outcome

    def _open_session(self) -> aiohttp.ClientSession:  # noqa: TID251
        if self._session is None:
            self._session = over_aiohttp.session(TOTAL_SECONDS, CONNECT_SECONDS)
        return self._session

    async def close(self) -> None:
        if self._session:
            await self._session.close()
