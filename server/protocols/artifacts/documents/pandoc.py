"""Runs pandoc: a Markdown text becomes a document, within limits.

Rule 1: pandoc is a program that the operator may install. It is looked for at each conversion, so it needs no restart.
Rule 2: it runs twice. The first run parses the text of strangers in pandoc's sandbox; between the two the tree is
        cleaned (`document_formats.py`). The second writes a document that names nothing to fetch; Debian's pandoc
        cannot write in its sandbox, because that hides its own templates. For a text with suggestions, the one with
        them is parsed likewise, and the two trees become one (`word_review.py`).
Rule 3: a run has no terminal, no variables of the server, no proxy that answers, and nothing but its input on stdin. It
        has SECONDS and MEMORY, and its process group is killed at the end, whatever the end is.
Rule 4: RUNNING conversions run at a time, WAITING wait, and others are refused at once.
Rule 5: a conversion ends with its process and its thread. A thread cannot be killed, so a conversion that times out
        fails, and frees its place, when the current step of its thread ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import re
import shutil
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, ParamSpec, TypeVar

from a2a_canvas.server.protocols.artifacts.documents.document_formats import READER, DocumentFormat, clean_tree
from a2a_canvas.server.protocols.artifacts.documents.paragraph_ends import write_paragraph_ends
from a2a_canvas.server.protocols.artifacts.documents.source_tree import SOURCE_POSITIONS
from a2a_canvas.server.protocols.artifacts.documents.word_review import ReviewMark, WordReview
from a2a_canvas.store.threads import run_to_end

T = TypeVar("T")
_Args = ParamSpec("_Args")
logger = logging.getLogger(__name__)

RUNNING: Final = 2
WAITING: Final = 16
SECONDS: Final = 20.0
"""For both runs together."""
MEMORY: Final = "512m"
"""Of pandoc's heap, as its runtime reads it."""
MAX_TEXT: Final = 2**20
"""Bytes of a text: pandoc takes some seconds for that many."""
MAX_MARKED_TEXT: Final = 2**19
"""The same, with its comments and suggestions: the text is parsed twice, with positions."""
MAX_OUTPUT: Final = 64 * 2**20
MAX_COMPLAINT: Final = 2000
"""Bytes that are kept of what pandoc writes on stderr."""
ATTEMPTS: Final = 3
"""To track suggestions, each without those that could not be tracked before."""
OLDEST: Final = (2, 15)
"""The first pandoc with a sandbox."""

ENVIRONMENT: Final = {
    "PATH": os.defpath,
    "LC_ALL": "C.UTF-8",
    "http_proxy": "http://127.0.0.1:9",
    "https_proxy": "http://127.0.0.1:9",
}
_VERSION = re.compile(r"pandoc(?:\.exe)? (\d+(?:\.\d+)+)")


class PandocMissing(Exception):
    """There is no pandoc that can be used; `str()` says what to install."""


class PandocBusy(Exception):
    """Too many conversions are waiting."""


class ConversionFailed(Exception):
    """This text cannot be converted; `str()` is a sentence for the client."""


@dataclass(frozen=True, slots=True)
class PandocProgram:
    """An installed pandoc."""

    path: str
    version: str


class Pandoc:
    """Converts texts.

    Args:
        name: of the program, or its path.
        seconds: for one conversion.
    """

    def __init__(self, name: str = "pandoc", seconds: float = SECONDS) -> None:
        self._name, self._seconds = name, seconds
        self._slots = asyncio.Semaphore(RUNNING)
        self._waiting = 0
        self._known: tuple[tuple[str, int], PandocProgram] | None = None

    @property
    def installed(self) -> bool:
        """Whether there is a program of this name."""
        return shutil.which(self._name) is not None

    async def find(self) -> PandocProgram:
        """The program as it is now.

        Raises:
            PandocMissing: there is none, or it is too old.
        """
        path = shutil.which(self._name)
        if path is None:
            raise PandocMissing("This server has no pandoc")
        key = path, os.stat(path).st_mtime_ns
        if self._known is None or self._known[0] != key:
            self._known = key, PandocProgram(path, await self._version(path))
        return self._known[1]

    async def _version(self, path: str) -> str:
        try:
            async with asyncio.timeout(self._seconds):
                found = _VERSION.match((await _run([path, "--version"], b"")).decode(errors="replace"))
        except (TimeoutError, OSError, ConversionFailed) as error:
            raise PandocMissing(f"The pandoc of this server does not run ({error})") from None
        version = found[1] if found else "of an unknown version"
        if not found or tuple(map(int, version.split(".")[:2])) < OLDEST:
            raise PandocMissing(f"The pandoc of this server is too old ({version})")
        return version

    async def convert(
        self, program: PandocProgram, text: str, form: DocumentFormat, title: str, marks: Sequence[ReviewMark] = ()
    ) -> bytes:
        """The document.

        Args:
            marks: comments and suggestions, for a Word file.

        Raises:
            PandocBusy: too many conversions are waiting.
            ConversionFailed: pandoc refuses the text, or needs more than the limits for it.
        """
        if self._waiting >= WAITING:
            raise PandocBusy
        self._waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1
        try:
            async with asyncio.timeout(self._seconds):
                return await _convert(program, text, form, title, marks)
        except TimeoutError:
            raise ConversionFailed(f"The conversion took more than {self._seconds:.0f} seconds") from None
        except OSError as error:
            raise ConversionFailed(f"pandoc could not be run ({error.strerror})") from None
        finally:
            self._slots.release()


def _limits() -> tuple[str, ...]:
    return "+RTS", f"-M{MEMORY}", "-RTS"


async def _convert(
    program: PandocProgram, text: str, form: DocumentFormat, title: str, marks: Sequence[ReviewMark]
) -> bytes:
    return await _Conversion(program, text, form, title).run(marks)


@dataclass(frozen=True, slots=True)
class _Conversion:
    program: PandocProgram
    text: str
    form: DocumentFormat
    title: str

    async def run(self, marks: Sequence[ReviewMark]) -> bytes:
        if not marks:
            return await self._write(await self._tree(self.text))
        review = WordReview(self.text, marks)
        old = await self._tree(self.text, SOURCE_POSITIONS)
        file = await self._write({**old, "blocks": await self._make_blocks(review, old)})
        return await _in_thread(write_paragraph_ends, file)

    async def _make_blocks(self, review: WordReview, old: Mapping[str, Any]) -> list[Any]:
        for attempt in range(ATTEMPTS + 1):
            if attempt == ATTEMPTS:
                review.give_up()
            new = await self._tree(review.edits.text, SOURCE_POSITIONS) if review.edits.keys else old
            with _nesting():
                blocks = await _in_thread(review.make_blocks, old["blocks"], new["blocks"])
            if blocks is not None:
                return blocks
        raise AssertionError("without suggestions nothing is untracked")

    async def _tree(self, text: str, extensions: str = "") -> dict[str, Any]:
        """The tree of a text, cleaned."""
        source = text.encode()
        identifier = f"urn:sha256:{hashlib.sha256(source).hexdigest()}"
        command = [self.program.path, "--sandbox", "--from", READER + extensions, "--to", "json", *_limits()]
        parsed = await _run(command, source)
        with _nesting():
            return await _in_thread(_clean_json, parsed, self.form, self.title, identifier)

    async def _write(self, tree: Mapping[str, Any]) -> bytes:
        with _nesting():
            source = await _in_thread(json.dumps, tree, ensure_ascii=False)
        write = ("--from", "json", "--to", self.form.name, "--standalone", "--output", "-", "--data-dir", os.devnull)
        return await _run([self.program.path, *write, *_limits()], source.encode())


async def _in_thread(step: Callable[_Args, T], *args: _Args.args, **named: _Args.kwargs) -> T:
    """What a step returns, in a thread; a cancellation waits for its end (rule 5)."""
    return await run_to_end(asyncio.ensure_future(asyncio.to_thread(step, *args, **named)))


@contextlib.contextmanager
def _nesting() -> Iterator[None]:
    try:
        yield
    except RecursionError:
        raise ConversionFailed("The text is nested too deeply") from None


def _clean_json(parsed: bytes, form: DocumentFormat, title: str, identifier: str) -> dict[str, Any]:
    return clean_tree(json.loads(parsed), form, title, identifier)


async def _run(command: Sequence[str], source: bytes, env: Mapping[str, str] = ENVIRONMENT) -> bytes:
    """What a command writes to stdout.

    Raises:
        OSError: it cannot be started.
        ConversionFailed: it has failed.
    """
    start = asyncio.create_subprocess_exec(
        *command, env=env, cwd="/", stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True
    )
    starting = asyncio.create_task(start)  # which a cancellation must not interrupt: its group would stay
    try:
        process = await asyncio.shield(starting)
        assert process.stdout
        assert process.stderr
        async with asyncio.TaskGroup() as group:
            group.create_task(_feed(process, source))
            output = group.create_task(_read(process.stdout, MAX_OUTPUT))
            complaint = group.create_task(_read(process.stderr, MAX_COMPLAINT))
        code = await process.wait()
    finally:
        await _end(await starting)
    if code:
        logger.warning("pandoc ended with %d: %s", code, complaint.result()[0].decode(errors="replace").strip())
        raise ConversionFailed("pandoc cannot convert this text within its memory" if code == 251 else "pandoc failed")
    document, complete = output.result()
    if not complete:
        raise ConversionFailed(f"The document would have more than {MAX_OUTPUT:,} bytes")
    return document


async def _end(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process._transport.close()  # type: ignore[attr-defined]  # a child may hold its pipes open
    await process.wait()


async def _feed(process: Process, source: bytes) -> None:
    assert process.stdin
    with contextlib.suppress(ConnectionError):  # it has ended, and its code says why
        process.stdin.write(source)
        await process.stdin.drain()
    process.stdin.close()


async def _read(stream: asyncio.StreamReader, most: int) -> tuple[bytes, bool]:
    """The beginning of a stream, and whether that is all; reads on to the end, so that nothing waits for a reader."""
    kept = bytearray()
    complete = True
    while chunk := await stream.read(2**16):
        complete = complete and len(kept) + len(chunk) <= most
        kept += chunk[: most - len(kept)]
    return bytes(kept), complete
