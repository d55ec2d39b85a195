"""The current artifacts of a context as a ZIP file. Pure.

Rule 1: a part is a file: text in UTF-8, bytes as they are, a URL as an Internet shortcut (`.url`), data as JSON. An
        artifact with several parts is a folder of them. Names are those of artifacts and files (`file_names.py`).
Rule 2: the same artifacts make the same bytes, so that the file has an ETag: no entry has a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import assert_never
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from a2a_canvas.server.protocols.artifacts.file_names import file_name, split_extension, unused_name
from a2a_canvas.store.models import Artifact, DataPart, FilePart, Part, TextPart

ZIP = "application/zip"


def archive(artifacts: Iterable[Artifact]) -> bytes:
    """The bytes of the file. Reading changes ropes: pass copies that no other thread uses."""
    body = BytesIO()
    with ZipFile(body, "w") as file:
        for path, content in _files(artifacts):
            file.writestr(ZipInfo(path), content, ZIP_DEFLATED)
    return body.getvalue()


def _files(artifacts: Iterable[Artifact]) -> Iterator[tuple[str, bytes]]:
    taken: set[str] = set()
    for artifact in artifacts:
        match artifact.parts:
            case ():
                pass
            case (part,):
                yield unused_name(_name(artifact, part), taken), _content(part)
            case parts:
                folder = unused_name(split_extension(file_name(artifact.name, artifact.artifact_id))[0], taken)
                below: set[str] = set()
                for part in parts:
                    yield f"{folder}/{unused_name(_name(artifact, part), below)}", _content(part)


def _name(artifact: Artifact, part: Part) -> str:
    own = (artifact.name, artifact.artifact_id)
    match part:
        case TextPart():
            return file_name(*own, media_type=part.media_type or "text/plain")
        case FilePart(content=None):
            return f"{split_extension(file_name(part.name, *own))[0]}.url"
        case FilePart():
            return file_name(part.name, *own, media_type=part.media_type or "application/octet-stream")
        case DataPart():
            return f"{split_extension(file_name(*own))[0]}.json"
        case _:
            assert_never(part)


def _content(part: Part) -> bytes:
    match part:
        case TextPart():
            return part.text.encode()
        case FilePart(content=None):
            return f"[InternetShortcut]\r\nURL={''.join(part.url.split())}\r\n".encode()  # one line
        case FilePart(content=bytes() as content):
            return content
        case DataPart():
            return json.dumps(part.data, ensure_ascii=False, indent=2).encode() + b"\n"
        case _:
            raise AssertionError("a file has bytes or a URL")
