"""What a tool returns or raises, and what becomes of it: text for the model, files for the context.

Rule: a text longer than `RESULT_LIMIT` becomes a file of an artifact. The model reads its beginning, and where the rest
      is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import assert_never

from pydantic import BaseModel

from a2a_canvas.store.text.unicode import replace_surrogates, valid_id

RESULT_LIMIT = 50_000
"""Characters of a result that the model reads."""
BEGINNING = 2_000
"""Characters of a longer one that it reads."""


class ToolError(Exception):
    """A tool cannot do what it was asked to. `str()` is what the model reads: say what to do instead.

    >>> raise ToolError("There is no city of that name. Ask for its country.")
    Traceback (most recent call last):
    a2a_canvas.tools.functions.results.ToolError: There is no city of that name. Ask for its country.
    """


@dataclass(frozen=True, slots=True)
class File:
    """A file that a tool returns or writes: `content` or `url`, exactly one of them.

    >>> File("notes.txt", "text/plain", b"Two lines").name
    'notes.txt'
    """

    name: str
    media_type: str = "application/octet-stream"
    content: bytes | None = None
    url: str = ""

    def __post_init__(self) -> None:
        if (self.content is None) == (not self.url):
            raise ValueError("A File has content or a url, exactly one of them.")


Single = str | BaseModel | File
Result = Single | Sequence[Single] | None
"""What a tool may return."""


@dataclass(frozen=True, slots=True)
class Digest:
    """A result as it is passed on: `text` for the model, `files` with the ids of their artifacts."""

    text: str
    files: tuple[tuple[str, File], ...] = ()


def digest(result: Result, tool: str, call_id: str) -> Digest:
    """What becomes of a result.

    Raises:
        TypeError: it is none of `Result`.
    """
    texts: list[str] = []
    files: list[tuple[str, File]] = []
    for item in _items(result, tool):
        match item:
            case str():
                texts.append(replace_surrogates(item))
            case BaseModel():
                texts.append(item.model_dump_json())
            case File():
                files.append((_artifact_id(item.name or f"{tool}-{call_id}"), item))
            case _:
                assert_never(item)
    text = "\n".join(texts)
    if len(text) > RESULT_LIMIT:
        whole = File(f"{tool}-{call_id}.txt", "text/plain", text.encode())
        files.append((_artifact_id(whole.name), whole))
        text = f"{text[:BEGINNING]}\n[These are the first {BEGINNING} of {len(text)} characters.]"
    notes = (f"[The file {file.name!r} ({_size(file)}) is in artifact {artifact_id!r}.]" for artifact_id, file in files)
    return Digest("\n".join(filter(None, (text, *notes))) or "Done; it returned nothing.", tuple(files))


def _items(result: Result, tool: str) -> Iterable[Single]:
    if result is None:
        return ()
    items = (result,) if isinstance(result, str | BaseModel | File) else result
    if isinstance(items, Sequence) and all(isinstance(item, str | BaseModel | File) for item in items):
        return items
    raise TypeError(f"{tool} returned {type(result).__name__}; a tool returns str, a pydantic model, a File or a list")


def _artifact_id(name: str) -> str:
    """The name of a file as the id of an artifact."""
    try:
        return valid_id(name.strip()[:200])
    except ValueError:
        return "".join(each if each.isprintable() else "_" for each in name)[:200]


def _size(file: File) -> str:
    return file.media_type if file.content is None else f"{file.media_type}, {len(file.content)} bytes"
