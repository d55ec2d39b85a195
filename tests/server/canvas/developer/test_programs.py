"""A copied request runs as it is, and what it contains cannot run: it reaches a real server exactly as it was sent."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest

from tests.node_tools import run_node
from tests.server.app_server import Served, envelope

pytestmark = pytest.mark.asyncio(loop_scope="module")

Program = Callable[[str, dict[str, Any]], str]

PRINTER = Path(__file__).parent / "print_program.mjs"
WAYS = ["sh", "bash", "bash with history", "python"]
HOSTILE = [
    "'; touch pwned; '",
    "'\\''; touch pwned; #",
    "$(touch pwned) `touch pwned` ${IFS}",
    "\nEND_OF_BODY\ntouch pwned\n",
    "@/etc/passwd",
    "-o pwned --output pwned",
    '"""\nimport os; os.system("touch pwned")\n"""',
    "\\'\\\"; __import__('os').system('touch pwned') #",
    "{0} %s %(x)s f\"{open('pwned', 'w')}\" \\N{BULLET} \\x41",
    "!! !touch !$ ^a^b",
    "a\rb\tc\x00d\x1b[2Je\x7ff\x9bg",
    "\u202egnp.exe\u2066 \u200b\u2028\u2029 \U000e0041",
    "grüße 😀 中文 \U0001f468\u200d\U0001f469",
    "\ud800",
]


@pytest.fixture
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """The program for a request, as the page makes it."""

    def program(way: str, request: dict[str, Any]) -> str:
        file = tmp_path_factory.mktemp("request") / "request.json"
        file.write_text(json.dumps(request))
        return run_node(PRINTER, "python" if way == "python" else "curl", file)

    return program


async def run(way: str, text: str, folder: Path) -> str:
    """What the program prints when it comes from the standard input, as from a terminal."""
    shell = "dash" if way == "sh" and shutil.which("dash") else way.split()[0]
    history = "set -o history -o histexpand\n" if way == "bash with history" else ""
    command = [sys.executable, "-"] if way == "python" else [shell, "-s"]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, cwd=folder, stdin=pipe, stdout=pipe, stderr=pipe)
    out, error = await process.communicate((history + text).encode())
    assert process.returncode == 0, error.decode()
    return out.decode()


def sending(served: Served, text: str, method: str = "SendMessage", **metadata: Any) -> dict[str, Any]:
    message = {"messageId": str(uuid4()), "role": "ROLE_USER", "parts": [{"text": text}], "metadata": metadata}
    headers = {"Content-Type": "application/json", "A2A-Version": "1.0"}
    body = json.dumps(envelope(method, {"message": message}))
    return {"url": served.url + "/", "method": "POST", "headers": headers, "body": body}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("text", HOSTILE, ids=[ascii(text)[:24] for text in HOSTILE])
async def test_a_copied_message_arrives_exactly(
    served: Served, tmp_path: Path, program: Program, way: str, text: str
) -> None:
    request = sending(served, "x" + text, note={text: [text, None, True, 1.5, {}, []]})

    answer = json.loads(await run(way, program(way, request), tmp_path))

    asked = json.loads(request["body"])["params"]["message"]
    if text == "\ud800":
        assert answer["error"]["code"] == -32600  # no character: no server takes it
    else:
        arrived = answer["result"]["task"]["history"][0]
        assert (arrived["parts"][0]["text"], arrived["metadata"]) == (asked["parts"][0]["text"], asked["metadata"])
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("way", WAYS)
async def test_a_large_document_is_no_argument_of_a_command(
    served: Served, tmp_path: Path, program: Program, way: str
) -> None:
    answer = json.loads(await run(way, program(way, sending(served, "long! " * 50_000)), tmp_path))

    assert len(answer["result"]["task"]["history"][0]["parts"][0]["text"]) == 300_000


@pytest.mark.parametrize("way", WAYS)
async def test_a_copied_stream_is_printed_as_it_arrives(
    served: Served, tmp_path: Path, program: Program, way: str
) -> None:
    served.gate.open()

    printed = await run(way, program(way, sending(served, "hello", "SendStreamingMessage")), tmp_path)

    events = [json.loads(line.removeprefix("data: ")) for line in printed.splitlines() if line.startswith("data: ")]
    assert list(events[0]["result"]) == ["task"]
    assert len(events) > 1


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("text", [text for text in HOSTILE if text != "\ud800" and "\x00" not in text])
async def test_an_address_and_a_header_are_quoted(
    served: Served, tmp_path: Path, program: Program, way: str, text: str
) -> None:
    path = quote(text, safe="!'()*")
    url = f"{served.url}/artifacts/{path}/[1-3]{{a,b}}"
    header = "".join(filter(str.isprintable, text)).encode("ascii", "ignore").decode().strip()
    request = {"url": url, "method": "GET", "headers": {"X-Note": header}, "body": None}

    answer = json.loads(await run(way, program(way, request), tmp_path))

    assert answer["error"]["code"] in (400, 404)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("kind", ["curl", "python"])
async def test_nothing_in_it_is_invisible(program: Program, kind: str) -> None:
    hostile = "".join(HOSTILE)
    headers = {"X-Note": hostile}
    request = {
        "url": f"http://a/{hostile}",
        "method": "POST",
        "headers": headers,
        "body": json.dumps({hostile: hostile}),
    }

    text = program(kind, request)

    assert [char for char in text if not char.isprintable() and char not in "\n"] == []
