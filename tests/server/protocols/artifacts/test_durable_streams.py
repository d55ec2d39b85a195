"""The conformance suite of Durable Streams against the streams of artifacts, behind an adapter that has its writes.

`durable_streams/left_out.json` has the tests that are left out, all of writes, by name and reason. All others pass.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from a2a_canvas.server.protocols.artifacts import change_forms
from tests.loopback import serving_app
from tests.node_tools import need_node
from tests.server.app_server import serving
from tests.server.protocols.artifacts.durable_streams_adapter import Adapter

HERE = Path(__file__).parent / "durable_streams"
VITEST = HERE / "node_modules/vitest/vitest.mjs"
ALL_TESTS = 338
LEFT_OUT: dict[str, list[str]] = json.loads((HERE / "left_out.json").read_text())
LARGE = 50_000_000
"""Bytes: the suite writes 10 MB, and the adapter Base64 of it."""


async def run_suite(url: str, left_out: list[str], report: Path) -> list[dict[str, Any]]:
    """The results of all tests; those that are left out are skipped."""
    chosen = f"^(?!({'|'.join(map(re.escape, left_out))})$)".replace(r"\ ", " ")
    vitest = await asyncio.create_subprocess_exec(
        *("node", VITEST, "run", "--no-watch", "--testTimeout=60000", "--testNamePattern", chosen),
        *(f"--root={HERE}", "--reporter=json", f"--outputFile={report}"),
        env={**os.environ, "CONFORMANCE_URL": url},
        cwd=HERE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await vitest.communicate()
    try:
        files = json.loads(report.read_text())["testResults"]  # noqa: ASYNC240 - nothing else runs then
    except OSError:
        raise AssertionError(output.decode()) from None
    return [each for file in files for each in file["assertionResults"]]


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_reads_conform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_node("vitest", within=HERE)
    monkeypatch.setattr(change_forms, "POLL_TICKS", 4)
    adapter, left_out = Adapter(), sorted(name for names in LEFT_OUT.values() for name in names)
    sizes = {"max_artifact_bytes": LARGE, "max_body_bytes": LARGE}
    async with (
        serving(
            loop=adapter.agent,
            grpc=False,
            max_turns=10_000,
            database="memory",
            cors_origin="https://example.com",
            **sizes,
        ) as server,
        httpx.AsyncClient(base_url=server.url, trust_env=False, timeout=60, limits=httpx.Limits()) as client,
        serving_app(lambda _: adapter) as url,
    ):
        adapter.server = client
        results = await run_suite(url, left_out, tmp_path / "report.json")
    failed = {each["fullName"]: each["failureMessages"] for each in results if each["status"] == "failed"}
    assert failed == {}
    assert sorted(each["fullName"] for each in results if each["status"] != "passed") == left_out
    assert len(results) == ALL_TESTS
