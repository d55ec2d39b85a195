"""The application below a path: card, page, cookies, push, shares, artifacts and AG-UI keep that path."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import pytest_asyncio
from fastapi import FastAPI
from starlette.applications import Starlette

from a2a_canvas import Settings, create_app
from a2a_canvas.server.accounts.api_key import new_key
from tests.loopback import serving_app
from tests.open_id_provider import Provider, signing_in_with
from tests.server.push.receiver import receiving

PATH = "/team/reef"
KEY = new_key("ann")
USER = {"Authorization": f"Bearer {KEY}", "A2A-Version": "1.0"}


@pytest.fixture(params=[Starlette, FastAPI], ids=["starlette", "fastapi"])
def outer(request: pytest.FixtureRequest) -> type[Starlette]:
    """The kind of the outer application."""
    kind: type[Starlette] = request.param
    return kind


@asynccontextmanager
async def mounted(outer: type[Starlette], **settings: Any) -> AsyncIterator[str]:
    """The address of a mounted application, with its path."""

    def make(url: str) -> Starlette:
        given = {"database": "memory", "model": "rehearsal", **settings}
        inner = create_app(Settings(public_url=url + PATH, **given))
        app = outer(lifespan=lambda _: inner.router.lifespan_context(inner))
        app.mount(PATH, inner)
        return app

    async with serving_app(make, lifespan="on") as address:
        yield address + PATH


@pytest_asyncio.fixture
async def url(outer: type[Starlette]) -> AsyncIterator[str]:
    async with mounted(outer, api_keys=f"ann={KEY}", push_allow="127.0.0.1") as url:
        yield url


@pytest_asyncio.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False, headers=USER, timeout=30) as http:
        yield http


async def rpc(http: httpx.AsyncClient, url: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
    answer = await http.post(f"{url}/", json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    result: dict[str, Any] = answer.json()["result"]
    return result


async def sent(http: httpx.AsyncClient, url: str, **params: Any) -> dict[str, Any]:
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "Write a haiku about rain"}]}
    task: dict[str, Any] = (await rpc(http, url, "SendMessage", {"message": message, **params}))["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    return task


async def test_the_card_names_addresses_that_answer(url: str, http: httpx.AsyncClient) -> None:
    card = (await http.get(f"{url}/.well-known/agent-card.json")).json()
    bindings = {each["protocolBinding"]: each["url"] for each in card["supportedInterfaces"]}
    assert all(each.startswith(url) for each in bindings.values())
    task = await sent(http, bindings["JSONRPC"].removesuffix("/"))
    found = await http.get(f"{bindings['HTTP+JSON'].removesuffix('/')}/tasks/{task['id']}")
    assert found.json()["id"] == task["id"]


async def test_the_page_and_its_files_are_below_the_path(url: str, http: httpx.AsyncClient) -> None:
    page = await http.get(f"{url}/", headers={"Accept": "text/html"})
    files = re.findall(r'(?:src|href)="([^"#:]+)"', page.text)
    assert files
    for each in files:
        assert (await http.get(str(page.url.join(each)))).status_code == 200, each
    about = (await http.get(f"{url}/", headers={"Accept": "application/json"})).json()
    assert (about["page"], about["agentCard"]) == (f"{url}/", f"{url}/.well-known/agent-card.json")


async def test_signing_in_sets_cookies_for_the_path_and_returns_to_the_page(outer: type[Starlette]) -> None:
    provider = Provider()
    async with (
        serving_app(provider.app) as issuer,
        mounted(outer, **signing_in_with(issuer)) as url,
        httpx.AsyncClient(trust_env=False) as browser,
    ):
        begun = await browser.get(f"{url}/auth/sign-in", params={"return": "#/notes"})
        code, asked = provider.code_for(begun.headers["Location"])
        assert asked["redirect_uri"] == f"{url}/auth/callback"
        done = await browser.get(asked["redirect_uri"], params={"code": code, "state": asked["state"]})
        assert urlsplit(done.headers["Location"]).path == f"{PATH}/"
        cookies = [*begun.headers.get_list("set-cookie"), *done.headers.get_list("set-cookie")]
        assert len(cookies) >= 2
        assert all(f"Path={PATH}/;" in each for each in cookies)
        assert (await browser.get(f"{url}/auth/session")).json()["user"] == "ann"


async def test_a_link_leads_to_the_page_and_opens_the_context(url: str, http: httpx.AsyncClient) -> None:
    task = await sent(http, url)
    shares = f"{url}/artifacts/{task['contextId']}/shares"
    made = (await http.post(shares, json={"link": True})).json()
    assert made["url"].startswith(f"{url}/#")
    guest = {"Authorization": f"Bearer {made['token']}"}
    listed = (await http.get(f"{url}/artifacts/{task['contextId']}", headers=guest)).json()
    assert [each["artifactId"] for each in listed["artifacts"]] == [task["artifacts"][0]["artifactId"]]


async def test_artifacts_name_addresses_that_answer(url: str, http: httpx.AsyncClient) -> None:
    task = await sent(http, url)
    listed = (await http.get(f"{url}/artifacts/{task['contextId']}")).json()
    for address in listed["artifacts"][0]["urls"].values():
        below = url + address if not address.startswith(PATH) else url.removesuffix(PATH) + address
        assert (await http.get(below)).status_code == 200, address


async def test_push_notifications_are_sent(url: str, http: httpx.AsyncClient) -> None:
    async with receiving() as receiver:
        await sent(http, url, configuration={"taskPushNotificationConfig": {"url": receiver.url}})
        await receiver.until_state("TASK_STATE_COMPLETED")


async def test_agui_runs(url: str, http: httpx.AsyncClient) -> None:
    body = {"threadId": "t", "runId": "r", "state": {}, "tools": [], "context": [], "forwardedProps": {}}
    messages = [{"id": "m", "role": "user", "content": "Write a haiku about rain"}]
    answer = await http.post(f"{url}/canvas/stream", json={**body, "messages": messages})
    events = [json.loads(line[5:])["type"] for line in answer.text.splitlines() if line.startswith("data:")]
    assert (events[0], events[-1]) == ("RUN_STARTED", "RUN_FINISHED")
    assert urlsplit(str(answer.url)).path == f"{PATH}/canvas/stream"
