"""The results of a tool, and their conversion: text for the model, files for the context.

Rule 1: a text longer than `RESULT_LIMIT` becomes a file of an artifact. The model reads its beginning, and where to
        find the rest.
Rule 2: anything but a text, a file or a model is converted to JSON. A list of only those three, or with a file in it,
        is converted item by item.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json

from a2a_canvas.store.text.unicode import replace_surrogates, valid_id

RESULT_LIMIT = 50_000
"""The longest result that the model reads whole, in characters."""
BEGINNING = 2_000
"""The characters that it reads of a longer one."""

TO_THE_MODEL = " Do without it, or tell the user."
"""May end the text of a failed call. It is advice for a model, which replies to the user omit."""

RETURNED = "a tool returns str, a JSON value, a pydantic model, a File, or a list of these."
WRAP_BYTES = 'return them as a File, such as File("tides.png", "image/png", content).'


class ToolError(Exception):
    """A tool cannot do what it was asked to. `str()` is what the model reads: say what to do instead.

    >>> raise ToolError("There is no city of that name. Ask for its country.")
    Traceback (most recent call last):
    a2a_canvas.tools.functions.results.ToolError: There is no city of that name. Ask for its country.
    """


class EditError(ToolError):
    """A passage of an artifact cannot be edited. `str()` tells a model how to quote it.

    Attributes:
        artifact_id: of the artifact.
    """

    def __init__(self, artifact_id: str, advice: str) -> None:
        super().__init__(advice)
        self.artifact_id = artifact_id


@dataclass(frozen=True, slots=True, init=False)
class File:
    """A file that a tool returns or writes: `content` or `url`, exactly one of them.

    Args:
        name: with its extension.
        media_type: `text/plain` for content that is a `str`, unless given; otherwise `application/octet-stream`.
        content: `bytes`, or a `str`, which becomes UTF-8.
        url: where the file is.

    Raises:
        TypeError: one of them has another type.
        ValueError: there are both content and a url, or none.

    >>> File("tides.csv", "text/csv", "port,high\\nBrest,5.9\\n").content
    b'port,high\\nBrest,5.9\\n'
    """

    name: str
    media_type: str
    content: bytes | None
    url: str

    def __init__(self, name: str, media_type: str = "", content: bytes | str | None = None, url: str = "") -> None:
        for field, value in (("name", name), ("media_type", media_type), ("url", url)):
            if not isinstance(value, str):
                raise TypeError(f"The {field} of a File is a str, not {type(value).__name__}.")
        if not isinstance(content, bytes | str | None):
            raise TypeError(f"The content of a File is bytes or str, not {type(content).__name__}.")
        if (content is None) == (not url):
            raise ValueError(f"A File has content or a url, exactly one of them; {name!r} has {_has(url)}.")
        default = "text/plain" if isinstance(content, str) else "application/octet-stream"
        encoded = replace_surrogates(content).encode() if isinstance(content, str) else content
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "media_type", media_type or default)
        object.__setattr__(self, "content", encoded)
        object.__setattr__(self, "url", url)


def _has(url: str) -> str:
    return "both" if url else "none"


Single = str | BaseModel | File
Result = Any
"""What a tool may return: `Single`, a list of these, None, or what pydantic can write as JSON."""


@dataclass(frozen=True, slots=True)
class Digest:
    """A converted result: `text` for the model, `files` with the ids of their artifacts."""

    text: str
    files: tuple[tuple[str, File], ...] = ()


def digest(result: Result, tool: str, call_id: str) -> Digest:
    """Convert a result.

    Raises:
        TypeError: it cannot be a result.
    """
    texts: list[str] = []
    files: list[tuple[str, File]] = []
    for item in _items(result):
        if isinstance(item, File):
            files.append((_artifact_id(item.name or f"{tool}-{call_id}"), item))
        else:
            texts.append(_text(item, tool))
    text = "\n".join(texts)
    if len(text) > RESULT_LIMIT:
        whole = File(f"{tool}-{call_id}.txt", "text/plain", text.encode())
        files.append((_artifact_id(whole.name), whole))
        text = f"{text[:BEGINNING]}\n[These are the first {BEGINNING} of {len(text)} characters.]"
    notes = (f"[The file {file.name!r} ({_size(file)}) is in artifact {artifact_id!r}.]" for artifact_id, file in files)
    return Digest("\n".join(filter(None, (text, *notes))) or "Done; it returned nothing.", tuple(files))


def _items(result: Result) -> Sequence[Any]:
    """The parts of a result that are converted one by one (rule 2)."""
    if result is None:
        return ()
    if isinstance(result, list | tuple) and (
        all(isinstance(item, Single) for item in result) or any(isinstance(item, File) for item in result)
    ):
        return result
    return (result,)


def _text(item: Any, tool: str) -> str:
    if isinstance(item, str):
        return replace_surrogates(item)
    if isinstance(item, BaseModel):
        return item.model_dump_json()
    if isinstance(item, bytes | bytearray | memoryview):
        raise TypeError(f"{tool} returned {type(item).__name__}: {WRAP_BYTES}")
    try:
        return to_json(item).decode()
    except (PydanticSerializationError, ValueError):
        raise TypeError(f"{tool} returned {type(item).__name__}: {RETURNED}") from None


def _artifact_id(name: str) -> str:
    """The name of a file as the id of an artifact."""
    try:
        return valid_id(name.strip()[:200])
    except ValueError:
        return "".join(each if each.isprintable() else "_" for each in name)[:200]


def _size(file: File) -> str:
    return file.media_type if file.content is None else f"{file.media_type}, {len(file.content)} bytes"
