"""Runs against a server whose tools, agents and issuer are hostile, and against one whose gRPC port gets frames."""

from __future__ import annotations

import asyncio
import base64
import json
import signal
import tempfile
from contextlib import ExitStack, suppress
from typing import Any

import grpc
import grpc.aio
import httpx

from a2a_canvas.server.accounts.api_key import new_key
from bench.fuzz.frames import flood
from bench.fuzz.hostile_servers import hostile_server
from bench.fuzz.run import faults_of_end, log_of
from bench.servers import MEMORY, Checkout, Server, end, script, shipped, start
from tests.free_port import free_port
from tests.victims import FRIEND, RULES, VICTIM, Victim

MAX_GROWTH = 400 * 2**20
"""Bytes of memory that hostile answers and frames may take."""
CALL_SECONDS = 30.0
_TOOLS: list[dict[str, Any]] = [{"name": name, "input": {}} for name in ("b__boom", "ask_boom")]
SCRIPT = json.dumps(
    {
        "rules": [
            *RULES,
            {"match": {"text": "^use"}, "rounds": [{"tools": [tool]} for tool in _TOOLS] + [{"text": "Done."}]},
            {"match": {"text": ""}, "rounds": [{"text": "Done."}]},
        ]
    }
)


class _Run:
    """One server, a victim on it, and the faults that were seen."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.faults: list[str] = []
        self.keys = {user: new_key(user) for user in (VICTIM, FRIEND)}
        self.credentials = {user: {"Authorization": f"Bearer {key}"} for user, key in self.keys.items()}
        self.port, self.rpc = free_port(), free_port()

    def fault(self, text: str) -> None:
        self.faults.append(f"{self.name}: {text}")

    async def check(self, victim: Victim) -> None:
        if fault := await victim.next_fault():
            self.fault(fault)

    async def serve(self, options: tuple[str, ...], attack: Any) -> None:
        with ExitStack() as stack:
            path = stack.enter_context(script(SCRIPT))
            said = stack.enter_context(tempfile.TemporaryFile())
            command = shipped(
                f"script:{path}", MEMORY, "--grpc-port", str(self.rpc), "--push-allow", "127.0.0.1", *options
            )
            keys = ",".join(f"{user}={key}" for user, key in self.keys.items())
            process = await start(command, self.port, said, Checkout(environ={"A2A_CANVAS_API_KEYS": keys}))
            server = Server(self.port, process.pid)
            base = f"http://127.0.0.1:{self.port}"
            try:
                async with httpx.AsyncClient(base_url=base, trust_env=False, timeout=CALL_SECONDS) as http:
                    victim = Victim(http, self.credentials)
                    await victim.begin()
                    before = server.rss()
                    await attack(http, victim)
                    grown = server.rss() - before
            finally:
                await end(process, signal.SIGTERM)
            if grown > MAX_GROWTH:
                self.fault(f"{grown / 2**20:.0f} MB of memory")
            for fault in faults_of_end(process.returncode, log_of(said), "Traceback"):
                self.fault(fault)


async def against_servers(count: int, seed: int) -> tuple[list[str], dict[str, int]]:
    """Calls of a hostile MCP server and a hostile agent, and tokens that a hostile issuer is asked about.

    Returns:
        The faults, and how often the hostile server answered in each way.
    """
    run, port = _Run("hostile servers"), free_port()
    with tempfile.NamedTemporaryFile(suffix=".json") as config:
        servers = {"b": {"type": "http", "url": f"http://127.0.0.1:{port}/mcp"}}
        config.write(json.dumps({"mcpServers": servers}).encode())
        config.flush()
        async with hostile_server(port, seed) as hostile:

            async def attack(http: httpx.AsyncClient, victim: Victim) -> None:
                for number in range(count):
                    await _use(http, run, number)
                    await _claim(http, hostile.url, number)
                    await run.check(victim)

            options = ("--mcp-config", config.name, "--agent", hostile.url, "--jwt-issuer", hostile.url)
            await run.serve((*options, "--jwt-audience", "canvas"), attack)
            return run.faults, hostile.answered


async def _use(http: httpx.AsyncClient, run: _Run, number: int) -> None:
    """A turn that calls the tools. It may wait for them, but not for ever."""
    message = {"messageId": f"use {number}", "role": "ROLE_USER", "parts": [{"text": "use them"}]}
    headers = {**run.credentials[VICTIM], "A2A-Version": "1.0"}
    body = {"message": message, "configuration": {"returnImmediately": True}}
    answer = await http.post("/rest/message:send", json=body, headers=headers)
    if answer.status_code != 200:
        run.fault(f"a turn: {answer.status_code} {answer.text[:300]}")


async def _claim(http: httpx.AsyncClient, issuer: str, number: int) -> None:
    """A request with a token of the issuer, whose key it does not publish."""
    parts = ({"alg": "RS256", "kid": str(number)}, {"iss": issuer, "sub": "x", "aud": "canvas", "exp": 2**33})
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    with suppress(httpx.TimeoutException):
        await http.get("/artifacts", headers={"Authorization": f"Bearer {'.'.join(encoded)}.AAAA"}, timeout=10)


async def against_frames(seed: int, seconds: float) -> tuple[list[str], int]:
    """The faults, and how many bytes of frames the server took."""
    run, sent = _Run("frames"), 0

    async def attack(http: httpx.AsyncClient, victim: Victim) -> None:
        nonlocal sent
        flooding = asyncio.create_task(flood(run.rpc, seed, seconds))
        while not flooding.done():
            await run.check(victim)
            await asyncio.sleep(0.05)
        sent = await flooding
        channel: Any = grpc.aio.insecure_channel(f"127.0.0.1:{run.rpc}")
        async with channel:
            call = channel.unary_unary("/lf.a2a.v1.A2AService/ListTasks")
            try:
                await call(b"", metadata=[("authorization", f"Bearer {run.keys[VICTIM]}")], timeout=CALL_SECONDS)
            except grpc.aio.AioRpcError as error:
                run.fault(f"a call afterwards: {error.code().name} {error.details()}")

    await run.serve((), attack)
    return run.faults, sent
