"""Who may have the stream of an artifact's changes from a cache, and how long: a link that ends, ends there too."""

from __future__ import annotations

import asyncio
import re
from typing import Any
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio

from a2a_canvas.server.accounts.api_key import new_key
from a2a_canvas.server.protocols.artifacts import change_forms, change_stream
from bench import nginx
from tests.nginx_program import need_nginx
from tests.server.app_server import Served, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEYS = {name: new_key(name) for name in ("ann", "bob")}
PRIVATE = "private, no-store"


@pytest.fixture(scope="module")
def app_options() -> dict[str, Any]:
    return {"database": "memory", "api_keys": ",".join(f"{name}={key}" for name, key in KEYS.items())}


class Readers:
    """A context of ann's with the artifact `report`, shared with bob and by a link."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.context = str(uuid4())
        self.path = f"/artifacts/{self.context}/report/stream"

    async def begin(self) -> None:
        self.served.gate.open()
        await self.write()
        await self._share(user="bob")
        self.link = await self._share(link=True)
        self.offset = (await self.get("ann", "now")).headers["Stream-Next-Offset"]

    async def write(self) -> None:
        message = {"messageId": str(uuid4()), "role": "ROLE_USER", "parts": [{"text": "write report"}]}
        message["contextId"] = self.context
        await self.served.rpc("SendMessage", {"message": message}, **self.signed("ann"))

    async def _share(self, **fields: Any) -> dict[str, Any]:
        made = await self.served.http.post(f"/artifacts/{self.context}/shares", json=fields, headers=self.signed("ann"))
        share: dict[str, Any] = made.json()
        return share

    async def revoke(self) -> None:
        share = f"/artifacts/{self.context}/shares/{self.link['shareId']}"
        assert (await self.served.http.delete(share, headers=self.signed("ann"))).status_code == 204

    def signed(self, who: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.link['token'] if who == 'link' else KEYS[who]}"}

    async def get(self, who: str, offset: str = "", method: str = "GET", url: str = "", **query: str) -> httpx.Response:
        params = {"offset": offset or self.offset, **query}
        return await self.served.http.request(method, url + self.path, params=params, headers=self.signed(who))


@pytest_asyncio.fixture(loop_scope="module")
async def readers(served: Served) -> Readers:
    made = Readers(served)
    await made.begin()
    return made


async def test_only_what_a_link_shows_after_an_offset_may_be_stored(
    readers: Readers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_forms, "POLL_TICKS", 1)
    before = readers.offset
    await readers.write()
    for offset, query in ((before, {}), (before, {"live": "long-poll"}), ("", {"live": "long-poll"}), ("", {})):
        offset = offset or (await readers.get("ann", "now")).headers["Stream-Next-Offset"]
        by_link = await readers.get("link", offset, **query)
        seconds = re.fullmatch(r"public, max-age=(\d+)", by_link.headers["Cache-Control"])
        assert seconds
        assert int(seconds[1]) <= 10
        assert by_link.headers["Vary"] == "Authorization"
        for user in ("ann", "bob"):
            assert (await readers.get(user, offset, **query)).headers["Cache-Control"] == PRIVATE
    for offset, query in (("-1", {}), ("-1", {"live": "long-poll"}), ("now", {}), ("now", {"live": "long-poll"})):
        assert (await readers.get("link", offset, **query)).headers["Cache-Control"] == PRIVATE
    assert (await readers.get("link", method="HEAD")).headers["Cache-Control"] == PRIVATE
    assert (await readers.get("link", "0-0")).headers.get("Cache-Control", "no-store") != "public"
    events = readers.served.http.stream(
        "GET", f"{readers.path}?offset={before}&live=sse", headers=readers.signed("link")
    )
    async with events as response:
        assert response.headers["Cache-Control"] == f"{PRIVATE}, no-cache"


async def test_on_an_open_server_nothing_may_be_stored() -> None:
    async with serving(database="memory", grpc=False) as served:
        served.gate.open()
        message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "write report"}], "contextId": "c"}
        await served.rpc("SendMessage", {"message": message})
        offset = (await served.http.get("/artifacts/c/report/stream")).headers["Stream-Next-Offset"]
        answer = await served.http.get(f"/artifacts/c/report/stream?offset={offset}")
    assert answer.headers["Cache-Control"] == PRIVATE


async def test_readers_who_wait_are_let_go_when_the_link_ends(readers: Readers) -> None:
    polling = asyncio.create_task(readers.get("link", live="long-poll"))
    events = asyncio.create_task(readers.get("link", live="sse"))
    await readers.get("ann")
    await readers.revoke()
    async with asyncio.timeout(20):
        answers = [await polling, await events]
    assert answers[0].status_code in (401, 404, 503)
    assert '"streamClosed"' not in answers[1].text
    assert (await readers.get("link")).status_code in (401, 404)


async def test_readers_who_wait_are_let_go_when_the_context_is_removed(readers: Readers) -> None:
    polling = asyncio.create_task(readers.get("ann", live="long-poll"))
    await readers.get("ann")
    deleted = await readers.served.http.delete(f"/artifacts/{readers.context}", headers=readers.signed("ann"))
    assert deleted.status_code == 204
    assert (await polling).status_code in (404, 503)
    assert (await readers.get("ann")).status_code == 404


# ----------------------------------------------------------------------- behind nginx


async def test_nginx_as_documented_keeps_readers_apart_and_forgets_a_link(
    readers: Readers, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_nginx()
    monkeypatch.setattr(change_stream, "PUBLIC", change_stream.PUBLIC | {"Cache-Control": "public, max-age=1"})
    port = httpx.URL(readers.served.url).port
    assert port
    async with nginx.caching(port) as proxy:
        url = f"http://127.0.0.1:{proxy.port}"
        before = readers.offset
        await readers.write()
        stored = [await readers.get("link", before, url=url) for _ in range(3)]
        assert [each.content for each in stored] == [stored[0].content] * 3
        assert len([*proxy.passed()]) == 1
        # Nobody else gets it: neither without a credential, nor with another.
        assert (await readers.served.http.get(f"{url}{readers.path}?offset={before}")).status_code == 401
        by_bob = await readers.get("bob", before, url=url)
        assert (by_bob.status_code, by_bob.headers["Cache-Control"]) == (200, PRIVATE)
        head = await readers.get("link", before, "HEAD", url=url)
        assert head.headers["Cache-Control"] == PRIVATE

        await readers.revoke()
        async with asyncio.timeout(10):
            while (await readers.get("link", before, url=url)).status_code == 200:
                await readers.get("ann")


async def test_readers_behind_nginx_are_one_request_to_the_server(readers: Readers) -> None:
    need_nginx()
    port = httpx.URL(readers.served.url).port
    assert port
    async with nginx.caching(port) as proxy:
        url = f"http://127.0.0.1:{proxy.port}"
        asked = [asyncio.create_task(readers.get("link", url=url, live="long-poll")) for _ in range(30)]
        await readers.write()
        answers = await asyncio.gather(*asked)
        (passed,) = proxy.passed()
    assert passed.status == 200
    assert len({(each.content, each.headers["Stream-Next-Offset"]) for each in answers}) == 1
