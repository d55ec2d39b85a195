"""The linter finds a client that the server opens without the limits of `server/outbound`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
OPENED = [
    "import httpx\n\nCLIENT = httpx.AsyncClient()\n",
    "from httpx import AsyncClient\n\nCLIENT = AsyncClient()\n",
    "import httpx\n\nANSWER = httpx.get('https://a.example/')\n",
    "import httpx2\n\nCLIENT = httpx2.AsyncClient()\n",
    "import aiohttp\n\n\ndef opened() -> aiohttp.ClientSession:\n    return aiohttp.ClientSession()\n",
    "from urllib.request import urlopen\n\nANSWER = urlopen('https://a.example/')\n",
]


def finds(source: str, path: str) -> bool:
    """Whether the linter finds a client in this source of a module."""
    command = [sys.executable, "-m", "ruff", "check", "--output-format", "concise", "--stdin-filename", path, "-"]
    found = subprocess.run(command, cwd=ROOT, input=source, capture_output=True, text=True, check=False)
    return "TID251" in found.stdout


@pytest.mark.parametrize("source", OPENED)
def test_a_client_is_opened_in_outbound_alone(source: str) -> None:
    assert finds(source, "server/protocols/identity/issuer.py")
    assert finds(source, "server/new_module.py")
    assert not finds(source, "server/outbound/over_httpx.py")


def test_clients_of_the_server_and_what_looks_for_its_faults_open_their_own() -> None:
    for path in (
        "server/client/conversation/connection.py",
        "server/commands/doctor/remote_checks.py",
        "tests/test_x.py",
        "bench/x.py",
    ):
        assert not finds(OPENED[0], path)


def test_the_server_imports_itself_by_its_one_name_all_the_same() -> None:
    for path in ("server/new_module.py", "tests/test_x.py"):
        assert finds("import store\n\nprint(store)\n", path)
