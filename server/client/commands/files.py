"""`a2a-canvas put`, `pull` and `open`: copy between an artifact and a file.

Rule 1: no text is lost. A file is saved on top of the version that it came from: if another version is current by then,
        the server merges the two. If it refuses, both texts are kept in files, whose names are printed. A file is
        overwritten only if its text is that of a version, or was merged into one.
Rule 2: a file is watched by its size and its modification time, an artifact by its number of versions: polling every
        half second needs no library, and works on every file system.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Awaitable
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path, PurePath

from a2a_canvas.server.client.commands.artifacts import show_diff
from a2a_canvas.server.client.conversation import connection
from a2a_canvas.server.client.conversation.canvas_session import CanvasSession, OperationFailed, open_canvas, text_of
from a2a_canvas.server.client.conversation.errors import CannotBeDone, ClientError, UserInterrupt
from a2a_canvas.server.client.conversation.invocation import Invocation, is_piped
from a2a_canvas.server.client.screen.display import size_of
from a2a_canvas.server.wire import EXTENSIONS_OF_FORMATS

INTERVAL = 0.25
"""Seconds between two checks of a followed file."""
EMPTY_LOOKS = 8
PULL_INTERVAL = 1.0


# ------------------------------------------------------------------------ from a file


async def put(
    invocation: Invocation,
    artifact: str,
    file: str | None,
    base: int | None,
    context: str | None,
    follow: bool,
    critic: bool = False,
) -> None:
    """Save the text of a file as a new version, of a new artifact if necessary. `follow`: at each save."""
    if file is None and (follow or not (sys.stdin and is_piped(sys.stdin))):
        artifact, file = PurePath(artifact).name, artifact
    if follow and (file == "-" or base):
        raise CannotBeDone("--follow needs a FILE, and no --base")
    if follow and critic:
        raise CannotBeDone("--critic saves a text once: omit --follow")
    text = text_of_file(file or "-")
    async with open_canvas(invocation, context, may_begin=True) as canvas:
        # A prefix of another artifact's name is not a match here.
        known = canvas.has(artifact)
        id_ = canvas.find(artifact) if known or base else artifact
        if follow:
            invocation.tell(f"Each save of {file} is a version of {id_}. Ctrl+C ends it.")
            await _FileSaver(canvas, id_, Path(file or "")).follow()
        await canvas.put(id_, text, base, name=None if known else artifact, critic=critic)


class _RetriedSteps:
    """Runs steps that survive a lost connection; prints each reason once."""

    def __init__(self, invocation: Invocation) -> None:
        self._invocation, self._told = invocation, ""

    async def try_step(self, step: Awaitable[bool]) -> bool:
        """Run a step; whether it is done."""
        try:
            done = await step
        except UserInterrupt:
            raise
        except Exception as error:
            reason = connection.explain(error, self._invocation.url)
            if reason != self._told:
                self._invocation.tell(f"{reason}. Trying again…")
            self._told = reason
            return False
        self._told = ""
        return done


@dataclass
class _FileSaver:
    """Saves a file as new versions.

    Attributes:
        version, text: the version that the file came from; 0 if the artifact does not exist.
    """

    canvas: CanvasSession
    artifact: str
    path: Path
    version: int = 0
    text: str = ""

    async def follow(self) -> None:
        """Save the text of the file whenever it changes. Never returns."""
        following, stamp, read, saved, looks = _RetriedSteps(self.canvas.invocation), _stamp(self.path), None, True, 0
        if number := self.canvas.version(self.artifact):
            await self._read(number)
        while True:
            await self.canvas.invocation.pause(INTERVAL)
            last, stamp = stamp, _stamp(self.path)
            looks = looks + 1 if stamp == last else 0
            # A file that has just changed may be half written; an empty one is usually written next.
            if stamp != read and looks >= (1 if stamp[0] > 0 else EMPTY_LOOKS):
                saved, read = False, stamp
            saved = saved or await following.try_step(self._save())

    async def _read(self, number: int) -> None:
        self.version, self.text = number, text_of(await self.canvas.read(self.artifact, "versions", str(number)))

    async def _save(self) -> bool:
        """Whether there is nothing left to do for this text."""
        text, invocation = text_of_file(str(self.path)), self.canvas.invocation
        if self.version and text == self.text:
            return True
        name = None if self.version else self.artifact
        try:
            await self._record_save(text, await self.canvas.put(self.artifact, text, self.version, name=name))
        except OperationFailed as error:
            if error.busy:
                raise
            if error.version:
                await self._conflict(text, error.version)
            else:
                invocation.tell(f"{self.path} is not saved: {error}")
        return True

    async def _record_save(self, text: str, number: int) -> None:
        if number == self.version + 1:
            self.version, self.text = number, text
            return
        merged = text_of(await self.canvas.read(self.artifact, "versions", str(number)))
        if merged != text:
            if text_of_file(str(self.path)) != text:
                return  # it came from the previous version, and is merged again
            self.path.write_bytes(merged.encode())
            self.canvas.invocation.tell(f"{self.path} now includes the changes of others.")
        self.version, self.text = number, merged

    async def _conflict(self, text: str, number: int) -> None:
        await self._read(number)
        if self.text != text:  # else this save was stored, or someone wrote the same
            kept = _keep(self.path, number, self.text.encode())
            self.canvas.invocation.tell(
                f"{self.path} is not saved: version {number} was made in the meantime. It is in {kept}. "
                f"Copy what you need from it, and save {self.path} again."
            )


# -------------------------------------------------------------------------- to a file


async def pull(
    invocation: Invocation,
    artifact: str,
    file: str | None,
    version: int | None,
    context: str | None,
    follow: bool,
    force: bool,
    form: str | None,
) -> None:
    """Write an artifact to a file; with `follow`, again at each new version."""
    if follow and version:
        raise CannotBeDone("--follow writes the current version: omit --version")
    if follow and form:
        raise CannotBeDone("--follow writes the text itself: omit --format")
    async with open_canvas(invocation, context) as canvas:
        id_ = canvas.find(artifact)
        own = PurePath(canvas.file_name(id_))
        name = own.with_suffix(EXTENSIONS_OF_FORMATS[form]) if form else own
        pulling = _FileWriter(canvas, id_, Path(file or name), follow, force)
        if form:
            await pulling.convert(version or canvas.version(id_), form)
            return
        if not follow:
            await pulling.pull(version or canvas.version(id_))
            return
        following = _RetriedSteps(invocation)
        while True:
            await following.try_step(pulling.pull(canvas.version(id_)))
            await invocation.pause(PULL_INTERVAL)
            await following.try_step(canvas.look())


@dataclass
class _FileWriter:
    """Writes versions of an artifact to a file. `version`: the last one written."""

    canvas: CanvasSession
    artifact: str
    path: Path
    follow: bool
    force: bool
    version: int = 0

    async def pull(self, number: int) -> bool:
        """Write a version, unless it was written last."""
        if number == self.version:
            return True
        if not number:
            raise ClientError(f"{self.artifact} is being written and has no version yet")
        content = await self.canvas.raw(self.artifact, "versions", str(number))
        there = self.path.read_bytes() if self.path.exists() else None
        said = f"{self.path} is version {number} of {self.artifact} ({size_of(len(content))})."
        if self.force or there is None or (there != content and await self._is_version(there)):
            self.path.write_bytes(content)
        elif there != content and self.follow:
            said = f"{self.path} has changed here. Version {number} is in {_keep(self.path, number, content)}."
        elif there != content:
            save = self.canvas.invocation.line("put", self.artifact, str(self.path), "--context", self.canvas.context)
            refused = f"The text of {self.path} is not a version of {self.artifact}. --force overwrites it"
            raise CannotBeDone(refused, f"To save it: {save}")
        self.canvas.invocation.say(said)
        self.version = number
        return True

    async def convert(self, number: int, form: str) -> None:
        """Write a version in another format, from which no file can be put back; so no file is overwritten."""
        if self.path.exists() and not self.force:
            raise CannotBeDone(f"{self.path} exists. --force overwrites it")
        if not number:
            raise ClientError(f"{self.artifact} is being written and has no version yet")
        content = await self.canvas.document(self.artifact, form, "versions", str(number))
        self.path.write_bytes(content)
        self.canvas.invocation.say(f"{self.path} is version {number} of {self.artifact} ({size_of(len(content))}).")

    async def _is_version(self, content: bytes) -> bool:
        versions = (await self.canvas.read(self.artifact, "versions"))["versions"]
        alike = [str(each["number"]) for each in versions if each["size"] == len(content) and not each.get("pruned")]
        for number in reversed(alike):
            if await self.canvas.raw(self.artifact, "versions", number) == content:
                return True
        return False


# ------------------------------------------------------------------------ in an editor


async def open_artifact(
    invocation: Invocation, artifact: str | None, context: str | None, critic: bool = False
) -> None:
    """Open an artifact in the user's editor, and save the result. `critic`: with its suggestions and comments."""
    async with open_canvas(invocation, context) as canvas:
        id_ = canvas.find(artifact)
        seen = await canvas.read_complete(id_)
        if not any("text" in part for part in seen.get("parts", [])):
            raise ClientError(f"{id_} has no text to edit")
        before = await canvas.critic(id_) if critic else text_of(seen)
        path = Path(tempfile.mkdtemp(prefix="a2a-canvas-")) / canvas.file_name(id_)
        path.write_bytes(before.encode())
        await _run_editor(path)
        text = text_of_file(str(path))
        if text == before:
            invocation.tell("Nothing has changed, so nothing is saved.")
        else:
            await _save_edit(canvas, id_, path, text, int(seen["version"]), critic=critic)
        shutil.rmtree(path.parent)


async def _save_edit(canvas: CanvasSession, artifact: str, path: Path, text: str, base: int, *, critic: bool) -> None:
    """Save the text on top of its base version. If that fails, the text stays in its file, whose name is printed."""
    invocation = canvas.invocation
    try:
        await canvas.put(artifact, text, base, critic=critic)
    except Exception as error:
        kept = f"Your text is in {path}"
        if not isinstance(error, OperationFailed) or not error.version:
            raise ClientError(connection.explain(error, invocation.url), kept) from error
        theirs = text_of(await canvas.read(artifact, "versions", str(error.version)))
        compared = unified_diff(_lines(theirs), _lines(text), f"version {error.version}", "your text")
        show_diff(invocation, "".join(compared))
        how = ["--base", str(error.version), *(["--critic"] if critic else [])]
        put = invocation.line("put", artifact, str(path), *how, "--context", canvas.context)
        raise ClientError(str(error), kept, f"To save it on top of version {error.version}: {put}") from error


async def _run_editor(path: Path) -> None:
    """Have the user edit a file; returns when the editor has ended."""
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    # Ctrl+C is for the editor. A handler of Python is not inherited by it, which SIG_IGN would be.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        code = await asyncio.to_thread(subprocess.call, [*editor, str(path)])
    except OSError as error:
        raise CannotBeDone(
            f"The editor {editor[0]} cannot be started: {error.strerror}. Set EDITOR to another"
        ) from None
    finally:
        signal.signal(signal.SIGINT, before)
    if code:
        raise ClientError(f"The editor ended with {code}; nothing is saved", f"Your text is in {path}")


# ------------------------------------------------------------------------------ files


def text_of_file(file: str) -> str:
    """The text of a file, `-` for the standard input.

    Raises:
        CannotBeDone: it cannot be read, or is not text.
    """
    try:
        return (sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()).decode()
    except OSError as error:
        raise CannotBeDone(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise CannotBeDone(f"{file} is not UTF-8 text: byte {error.start + 1} is wrong") from None


def _stamp(path: Path) -> tuple[int, int, int]:
    """The size of a file, and other marks of a change; (-1, 0, 0) while it does not exist."""
    try:
        now = path.stat()
    except FileNotFoundError:
        return -1, 0, 0
    return now.st_size, now.st_mtime_ns, now.st_ino


def _keep(path: Path, version: int, content: bytes) -> Path:
    """Write a version next to a file, under a free name."""
    names = (
        path.with_name(f"{path.stem}.v{version}{more}{path.suffix}") for more in ("", *map("-{}".format, range(2, 100)))
    )
    kept = next(each for each in names if not each.exists() or each.read_bytes() == content)
    kept.write_bytes(content)
    return kept


def _lines(text: str) -> list[str]:
    """The lines with their line ends; the last one gets one, too."""
    return [f"{line}\n" for line in text.split("\n")]
