"""A window that does something wrong fails its test."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.server.app_server import Served
from tests.server.canvas.browser.browser_harness import NEEDS_CHROMIUM, OpenPage, chromium

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_the_page_loads_without_a_fault(window: OpenPage) -> None:
    await expect(window.page).to_have_title("a2a-canvas")


@pytest.mark.parametrize(
    ("program", "fault"),
    [
        ("console.error('lost')", "error: lost"),
        ("setTimeout(() => { throw new Error('thrown') })", "exception: thrown"),
        ("fetch('http://127.0.0.1:1/').catch(() => {})", "The policy refuses http://127.0.0.1:1"),
        ("setTimeout(() => eval('1'))", "The policy refuses trusted-types-sink"),
        (
            "document.body.append(Object.assign(document.createElement('img'), {src: 'https://example.com/a.png'}))",
            "img",
        ),
        (
            "const b = document.createElement('b'); document.body.append(b); b.setAttribute('onclick', 'x()')",
            "The policy refuses trusted-types-sink",
        ),
    ],
)
async def test_what_it_does_wrong_is_noticed(window: OpenPage, program: str, fault: str) -> None:
    await window.page.evaluate(f"() => {{ try {{ {program} }} catch (error) {{ console.log(error) }} }}")
    await window.noticed(fault)
    window.expects("")


async def test_a_network_can_be_slow_and_gone(window: OpenPage, served: Served) -> None:
    await window.slow_down(latency_ms=50, bytes_per_second=10_000)
    assert await window.page.evaluate("async () => (await fetch('./healthz')).status") == 200
    await window.disconnect()
    assert await window.page.evaluate("async () => fetch('./healthz').then(() => 1, () => 0)") == 0
    await window.reconnect()
    assert await window.page.evaluate("async () => (await fetch('./healthz')).status") == 200


@pytest.mark.parametrize(("needed", "outcome"), [("", pytest.skip.Exception), ("1", pytest.fail.Exception)])
async def test_without_chromium_a_test_is_skipped_and_fails_where_it_is_needed(
    monkeypatch: pytest.MonkeyPatch, needed: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setenv(NEEDS_CHROMIUM, needed)
    with pytest.raises(outcome, match="Chromium is not installed"):
        chromium()
