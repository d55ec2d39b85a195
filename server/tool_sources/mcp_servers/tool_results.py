"""What an MCP tool returned, as the result of a function tool. Pure; its input is JSON as MCP has it.

Rule 1: text is for the model; images, audio and binary resources become files, links on the web files by reference.
Rule 2: `structuredContent` is JSON text, unless the content says the same already.
Rule 3: what is an error (`isError`) is raised as a `ToolError`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import mimetypes
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from a2a_canvas.tools.functions.results import File, ToolError

Part = str | File

MAX_ERROR = 4_000
"""Characters of an error that the model reads."""


def result_of(tool: str, result: Mapping[str, Any], read_resource: str = "") -> list[Part]:
    """The parts of a `CallToolResult`.

    Args:
        tool: its name, for those of files.
        read_resource: the tool that reads resources of this server, if there is one.

    Raises:
        ToolError: the tool failed, in the server's own words.
    """
    parts = [part for block in result.get("content", ()) if (part := _part(tool, block, read_resource)) != ""]
    if result.get("isError"):
        text = "\n".join(part for part in parts if isinstance(part, str))
        raise ToolError(text[:MAX_ERROR] or f"{tool} failed, and its server did not say why.")
    structured = result.get("structuredContent")
    if structured is not None and not _says(parts, structured):
        parts.append(json.dumps(structured, ensure_ascii=False))
    return parts


def contents_of(tool: str, contents: Sequence[Mapping[str, Any]]) -> list[Part]:
    """The parts of a resource that was read. Several texts have their URIs as headings."""
    with_uri = len(contents) > 1
    return [_resource(tool, each, with_uri=with_uri) for each in contents]


def _part(tool: str, block: Mapping[str, Any], read_resource: str) -> Part:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "image" | "audio" as kind, "data": str(data)}:
            return _file(tool, "", block.get("mimeType") or f"{kind}/*", data)
        case {"type": "resource", "resource": dict(resource)}:
            return _resource(tool, resource, with_uri=True)
        case {"type": "resource_link", "uri": str(uri)}:
            return _link(block, uri, read_resource)
        case _:
            return f"(content of a kind that this agent does not know: {str(block.get('type'))[:40]})"


def _resource(tool: str, resource: Mapping[str, Any], *, with_uri: bool) -> Part:
    uri = str(resource.get("uri", ""))
    match resource:
        case {"text": str(text)}:
            return f"{uri}:\n{text}" if with_uri and uri else text
        case {"blob": str(data)}:
            return _file(tool, name_of(uri), resource.get("mimeType") or "", data)
        case _:
            return f"({uri[:200]} has no content)"


def _link(block: Mapping[str, Any], uri: str, read_resource: str) -> Part:
    name = str(block.get("title") or block.get("name") or uri)
    if urlsplit(uri).scheme in ("http", "https"):
        return File(str(block.get("name") or name_of(uri) or name), block.get("mimeType") or "", url=uri)
    how = f", which {read_resource} reads" if read_resource else ""
    about = f": {block['description']}" if block.get("description") else ""
    return f"Resource {name} ({uri}{how}){about}"


def _file(tool: str, name: str, media_type: str, data: str) -> Part:
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return f"({media_type or 'a file'} that is not valid base64)"
    media_type = media_type or mimetypes.guess_type(name)[0] or "application/octet-stream"
    digest = hashlib.sha256(content).hexdigest()[:6]
    return File(name or f"{tool}-{digest}{mimetypes.guess_extension(media_type) or ''}", media_type, content)


def name_of(uri: str) -> str:
    """The last part of a URI's path."""
    try:
        return PurePosixPath(urlsplit(uri).path).name
    except ValueError:
        return ""


def _says(parts: Sequence[Part], structured: Any) -> bool:
    """Whether the texts say what is structured: all of it; or, as servers wrap what is no object, its `result`."""
    texts = [part for part in parts if isinstance(part, str)]
    said = [structured]
    if isinstance(structured, dict) and structured.keys() == {"result"}:
        said.append(structured["result"])
    values = [_value(text) for text in texts]
    return bool(texts) and any(value in (texts, values) or value in (*texts, *values) for value in said)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
