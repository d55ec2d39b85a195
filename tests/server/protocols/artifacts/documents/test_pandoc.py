"""Running pandoc: what it makes, and that no text and no pandoc takes more than the limits."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from a2a_canvas.server.protocols.artifacts.documents import pandoc as pandoc_module
from a2a_canvas.server.protocols.artifacts.documents.document_formats import DOCUMENT_FORMATS, DocumentFormat
from a2a_canvas.server.protocols.artifacts.documents.pandoc import (
    RUNNING,
    WAITING,
    ConversionFailed,
    Pandoc,
    PandocBusy,
    PandocMissing,
)
from tests.pandoc_program import VERSION, need_pandoc, program, text_in

DOCX, LATEX = DOCUMENT_FORMATS["docx"], DOCUMENT_FORMATS["latex"]
EMPTY = """cat > /dev/null; echo '{"pandoc-api-version": [1, 22], "meta": {}, "blocks": []}'"""
"""What a pandoc does that finds nothing in any text."""


async def convert(pandoc: Pandoc, text: str = "# T", form: DocumentFormat = DOCX) -> bytes:
    return await pandoc.convert(await pandoc.find(), text, form, "Title")


# ------------------------------------------------------------------------- the installed pandoc

EACH = pytest.mark.parametrize("form", DOCUMENT_FORMATS.values(), ids=DOCUMENT_FORMATS)


@EACH
async def test_a_document_has_the_text(form: DocumentFormat) -> None:
    need_pandoc()
    text = "# Tides\n\nHigh *and* low ~~never~~.\n\n| a | b |\n|---|---|\n| 1 | 2 $x^2$ |\n\n- [x] done\n"
    read = text_in(await convert(Pandoc(), text, form), form.name)
    assert all(word in read for word in ("Tides", "High", "low", "1", "2", "done"))


@EACH
async def test_nothing_is_fetched_or_read_whatever_the_text_names(form: DocumentFormat, tmp_path: Path) -> None:
    need_pandoc()
    secret = tmp_path / "secret.png"
    secret.write_bytes(b"\x89PNG SECRET")
    asked: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readline())
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    text = (
        f"---\ncss: http://127.0.0.1:{port}/m\n---\n\n![a](http://127.0.0.1:{port}/a.png) ![b]({secret})\n\n"
        f'<img src="http://127.0.0.1:{port}/c.png">\n\n<iframe src="{secret}"></iframe>\n\n\\input{{{secret}}}\n'
    )
    async with server:
        document = await convert(Pandoc(), text, form)
    assert asked == []
    assert b"SECRET" not in document


async def test_a_text_that_is_nested_too_deeply_is_refused() -> None:
    need_pandoc()
    with pytest.raises(ConversionFailed):
        await convert(Pandoc(seconds=60), "> " * 20_000 + "x")


async def test_a_text_that_needs_more_memory_than_there_is_for_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    need_pandoc()
    monkeypatch.setattr(pandoc_module, "MEMORY", "8m")
    with pytest.raises(ConversionFailed, match="memory"):
        await convert(Pandoc(), "*word* `code` " * 20_000)


# ------------------------------------------------------------------------ programs in its place


async def test_without_pandoc_there_is_a_reason() -> None:
    pandoc = Pandoc("no-such-program")
    assert not pandoc.installed
    with pytest.raises(PandocMissing, match="has no pandoc"):
        await pandoc.find()


@pytest.mark.parametrize(
    ("version", "reason"),
    [("pandoc 2.14.2", "too old (2.14.2)"), ("something else", "too old (of an unknown version)")],
)
async def test_a_pandoc_without_a_sandbox_is_none(tmp_path: Path, version: str, reason: str) -> None:
    pandoc = Pandoc(program(tmp_path, EMPTY, version))
    assert pandoc.installed
    with pytest.raises(PandocMissing) as raised:
        await pandoc.find()
    assert reason in str(raised.value)


async def test_a_program_that_cannot_run_is_none(tmp_path: Path) -> None:
    broken = tmp_path / "pandoc"
    broken.write_bytes(b"\x7fELF nothing")
    broken.chmod(0o755)
    with pytest.raises(PandocMissing, match="does not run"):
        await Pandoc(str(broken)).find()


async def test_a_pandoc_that_is_installed_or_updated_later_is_found(tmp_path: Path) -> None:
    pandoc = Pandoc(str(tmp_path / "pandoc"))
    assert not pandoc.installed
    program(tmp_path, EMPTY)
    assert pandoc.installed
    assert (await pandoc.find()).version == VERSION.split()[1]
    os.utime(program(tmp_path, EMPTY, "pandoc 4.0"), ns=(0, 0))
    assert (await pandoc.find()).version == "4.0"


@contextmanager
def endless(folder: Path) -> Iterator[tuple[str, int]]:
    """A program that never ends, nor does its child, and the end of a pipe that both hold, after a line in it."""
    os.mkfifo(folder / "held")
    held = os.open(folder / "held", os.O_RDONLY | os.O_NONBLOCK)
    yield program(folder, f"exec 3> {folder}/held; echo x >&3; sleep 1000 & wait"), held
    os.close(held)


async def readable(held: int) -> None:
    """Wait until there is something in a pipe."""
    begun, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_reader(held, begun.set)
    await begun.wait()
    loop.remove_reader(held)


def rest_of(held: int) -> bytes:
    """What is in a pipe once nothing holds it."""
    os.set_blocking(held, True)
    with os.fdopen(os.dup(held), "rb") as pipe:
        return pipe.read()


async def test_a_run_that_takes_too_long_is_ended_with_its_children(tmp_path: Path) -> None:
    with endless(tmp_path) as (path, held):
        installed = await Pandoc(path).find()
        with pytest.raises(ConversionFailed, match="more than 2 seconds"):
            await Pandoc(path, seconds=2).convert(installed, "# T", DOCX, "Title")
        assert await asyncio.to_thread(rest_of, held) in (b"x\n", b"")


async def test_a_conversion_that_hangs_delays_no_other(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "held")
    held = os.open(tmp_path / "held", os.O_RDONLY | os.O_NONBLOCK)
    hanging = f"exec 3> {tmp_path}/held; echo x >&3; sleep 1000"
    pandoc = Pandoc(program(tmp_path, f"text=$(cat); case $text in HANG) {hanging};; esac; {EMPTY}"))
    hung = asyncio.create_task(convert(pandoc, "HANG"))
    await readable(held)
    await convert(pandoc)
    assert not hung.done()
    hung.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hung
    assert await asyncio.to_thread(rest_of, held) == b"x\n"
    os.close(held)


async def test_a_conversion_that_is_given_up_keeps_its_place_until_its_thread_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go, loop = asyncio.Semaphore(0), threading.Event(), asyncio.get_running_loop()
    clean_tree = pandoc_module.clean_tree

    def slow(*given: Any) -> Any:
        loop.call_soon_threadsafe(begun.release)
        go.wait()
        return clean_tree(*given)

    monkeypatch.setattr(pandoc_module, "clean_tree", slow)
    pandoc = Pandoc(program(tmp_path, EMPTY))
    await pandoc.find()
    running = [asyncio.create_task(convert(pandoc)) for _ in range(RUNNING)]
    for _ in running:
        await begun.acquire()
    waiting = asyncio.create_task(convert(pandoc))
    for _ in range(2):  # and by a server that stops
        running[0].cancel()
        for _ in range(10):
            await asyncio.sleep(0)
        assert not running[0].done()
    assert begun.locked()  # no other has begun
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await running[0]
    await asyncio.gather(running[1], waiting)


async def test_a_run_that_is_cancelled_is_ended_with_its_children(tmp_path: Path) -> None:
    with endless(tmp_path) as (path, held):
        conversion = asyncio.create_task(convert(Pandoc(path)))
        await readable(held)
        conversion.cancel()
        with pytest.raises(asyncio.CancelledError):
            await conversion
        assert await asyncio.to_thread(rest_of, held) == b"x\n"


async def test_a_run_that_is_cancelled_while_it_starts_leaves_nothing(tmp_path: Path) -> None:
    with endless(tmp_path) as (path, held):
        pandoc = Pandoc(path)
        await pandoc.find()
        for steps in range(30):
            conversion = asyncio.create_task(convert(pandoc))
            for _ in range(steps):
                await asyncio.sleep(0)
            conversion.cancel()
            await asyncio.gather(conversion, return_exceptions=True)
        assert (await asyncio.to_thread(rest_of, held)).replace(b"x\n", b"") == b""


async def test_a_document_beyond_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pandoc_module, "MAX_OUTPUT", 1000)
    with pytest.raises(ConversionFailed, match="more than 1,000 bytes"):
        await convert(Pandoc(program(tmp_path, "cat > /dev/null; head -c 100000 /dev/zero")))


async def test_a_program_that_fails_is_logged_and_says_nothing_to_the_client(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    failing = program(tmp_path, "head -c 100000 /dev/zero | tr '\\0' x >&2; exit 3")
    with pytest.raises(ConversionFailed) as raised:
        await convert(Pandoc(failing))
    assert str(raised.value) == "pandoc failed"
    assert "pandoc ended with 3: xxx" in caplog.text
    assert len(caplog.text) < 3000


async def test_a_program_has_no_variables_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    seen = tmp_path / "env"
    await convert(Pandoc(program(tmp_path, f"env > {seen}; {EMPTY}")))
    assert "secret" not in seen.read_text()


async def test_two_conversions_run_at_a_time_some_wait_and_more_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pandoc, begun, go = Pandoc(program(tmp_path, EMPTY)), asyncio.Semaphore(0), asyncio.Event()

    async def held(*_: object) -> bytes:
        begun.release()
        await go.wait()
        return b"document"

    monkeypatch.setattr(pandoc_module, "_convert", held)
    await pandoc.find()
    conversions = [asyncio.create_task(convert(pandoc)) for _ in range(RUNNING + WAITING)]
    for _ in range(RUNNING):
        await begun.acquire()
    with pytest.raises(PandocBusy):
        await convert(pandoc)
    assert begun.locked()  # no other has begun
    conversions.pop().cancel()
    go.set()
    assert await asyncio.gather(*conversions) == [b"document"] * (RUNNING + WAITING - 1)
