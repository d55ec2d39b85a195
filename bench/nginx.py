"""nginx with the configuration of docs/deploy.md, started privately: a cache in front of the streams of artifacts."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.servers import ROOT, accepts, end
from tests.free_port import free_port

PAGE = ROOT / "docs" / "deploy.md"
_BLOCK = re.compile(r"```nginx\n(# Streams of artifacts.*?)```", re.DOTALL)
_REST = """\
daemon off;
worker_processes 1;
pid {folder}/pid;
error_log {folder}/error.log;
{user}
events {{ worker_connections 8192; }}
http {{
    log_format reached '$msec $upstream_addr $status $request_uri';
    access_log {folder}/access.log reached;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    keepalive_requests 1000000;
{cache}
}}
"""


@dataclass(frozen=True, slots=True)
class Passed:
    """A request that reached the server. `at`: seconds since 1970 when it was answered."""

    at: float
    status: int
    uri: str


@dataclass(frozen=True, slots=True)
class Proxy:
    """nginx while it runs."""

    port: int
    log: Path

    def passed(self) -> Iterator[Passed]:
        """The requests that nginx has passed on so far."""
        for line in self.log.read_text().splitlines():
            at, upstream, status, uri = line.split(" ", 3)
            if upstream != "-":
                yield Passed(float(at), int(status), uri)


def why_not() -> str:
    """What is missing; empty if nothing is."""
    return "" if shutil.which("nginx") else "nginx is not installed (Debian: apt-get install nginx)"


def documented() -> str:
    """The part of the page that caches streams."""
    found = _BLOCK.search(PAGE.read_text())
    assert found, f"{PAGE} has no configuration of a cache"
    return found[1]


@asynccontextmanager
async def caching(server: int) -> AsyncIterator[Proxy]:
    """nginx in front of the server at a port.

    Raises:
        RuntimeError: it is not installed, or does not start.
    """
    if missing := why_not():
        raise RuntimeError(missing)
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        process = _start(Path(folder), port, server)
        try:
            if not await accepts(process, port):
                raise RuntimeError(f"nginx did not start:\n{_errors(Path(folder))}")
            yield Proxy(port, Path(folder, "access.log"))
        finally:
            await end(process, signal.SIGTERM)


def _start(folder: Path, port: int, server: int) -> subprocess.Popen[bytes]:
    cache = documented().replace("/var/cache/nginx/canvas", f"{folder}/cache")
    cache = cache.replace("127.0.0.1:8000", f"127.0.0.1:{server}")
    cache = cache.replace("listen 443 ssl;", f"listen 127.0.0.1:{port};")
    cache = re.sub(r" *(ssl_\w+|server_name) .*;\n", "", cache)
    user = "user root;" if os.geteuid() == 0 else ""
    conf = folder / "nginx.conf"
    conf.write_text(_REST.format(folder=folder, user=user, cache=cache))
    return subprocess.Popen(["nginx", "-c", conf, "-e", folder / "error.log"])


def _errors(folder: Path) -> str:
    return (folder / "error.log").read_text()
