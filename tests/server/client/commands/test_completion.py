"""What a shell offers for an id or a name, against the whole application on loopback."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
from click.shell_completion import ShellComplete

from a2a_canvas.server.commands.cli import NAME, cli
from tests.server.app_server import serving
from tests.server.canvas_client import SCRIPT, Doc, made
from tests.server.client.client_harness import typed, unused_url


@pytest.fixture
async def doc() -> AsyncIterator[Doc]:
    async with serving(SCRIPT, grpc=False) as served:
        served.gate.open()
        yield await made(served, "one", "tide.txt")


async def offered(url: str, words: str, incomplete: str = "") -> list[str]:
    command, *rest = words.split()
    shell = ShellComplete(cli, {}, NAME, "_COMPLETE")
    found = await asyncio.to_thread(shell.get_completions, [command, "--url", url, *rest], incomplete)
    return [each.value for each in found]


async def test_ids_and_names_are_offered_that_begin_as_typed(doc: Doc) -> None:
    url, context, [(task, _)] = doc.served.url, doc.context, await doc.tasks()
    for words in ("send --context", "chat --context", "tasks --context", "show doc --context"):
        assert await offered(url, words, context[:8]) == [context]
    for words in ("watch", "cancel", "send --task"):
        assert await offered(url, words, task[:8]) == [task]
    assert await offered(url, "watch", context[:8]) == [context]
    for words in ("show", "edit", "undo", "pull"):
        assert await offered(url, f"{words} --context {context}") == ["doc", "tide.txt"]
        assert await offered(url, f"{words} --context {context}", "ti") == ["tide.txt"]
        assert await offered(url, words) == []


async def test_numbers_of_what_is_open_are_offered_after_the_artifact(doc: Doc) -> None:
    url, at = doc.served.url, ("--context", doc.context, "--url", doc.served.url)
    assert (await typed("comment", "doc", "one", "Why?", *at)).code == 0
    for new in ("1", "uno"):
        assert (await typed("suggest", "doc", "one", new, *at)).code == 0
    assert (await typed("reject", "doc", "3", *at)).code == 0
    there = f"--context {doc.context}"
    assert await offered(url, f"comments {there}") == ["doc", "tide.txt"]
    assert await offered(url, f"accept {there}") == ["2", "doc", "tide.txt"]
    assert await offered(url, f"accept {there} doc") == ["2"]
    assert await offered(url, f"accept {there} doc 2") == []
    assert await offered(url, f"resolve {there} doc") == ["1"]
    assert await offered(url, f"reply {there} doc") == ["1", "2"]


async def test_a_name_that_a_shell_would_carry_out_is_not_offered(doc: Doc) -> None:
    at = ("--url", doc.served.url, "--context", doc.context)
    assert (await typed("put", "$(date)", "-", *at, stdin="x")).code == 0
    assert await offered(doc.served.url, f"show --context {doc.context}") == ["doc", "tide.txt"]


async def test_where_no_server_answers_nothing_is_offered_or_said(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for url in (unused_url(), f"http://127.0.0.1:{silent.getsockname()[1]}"):
            assert await offered(url, "watch") == []
    assert capfd.readouterr() == ("", "")
