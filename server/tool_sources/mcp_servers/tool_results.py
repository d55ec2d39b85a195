"""Converts an MCP tool's result to that of a function tool. Pure; its input is MCP's JSON.

Rule 1: text is for the model; images, audio and binary resources become files, web links files by reference.
Rule 2: `structuredContent` becomes JSON text, without what the content repeats: servers return both for clients that
        read only one of them.
Rule 3: an error (`isError`) is raised as a `ToolError`.
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
from a2a_canvas.tools.json_values import value_of_json

Part = str | File

MAX_ERROR = 4_000
"""The maximum length of an error for the model."""
LONG = 200
"""The minimum length of a text value that counts as a repetition."""


def result_of(tool: str, result: Mapping[str, Any], read_resource: str = "") -> list[Part]:
    """The parts of a `CallToolResult`.

    Args:
        tool: its name, for the names of files.
        read_resource: the tool that reads resources of this server, if any.

    Raises:
        ToolError: the tool failed, in the server's own words.
    """
    parts = [part for block in result.get("content", ()) if (part := _part(tool, block, read_resource)) != ""]
    if result.get("isError"):
        text = "\n".join(part for part in parts if isinstance(part, str))
        raise ToolError(text[:MAX_ERROR] or f"{tool} failed, and its server did not say why.")
    structured = result.get("structuredContent")
    rest = None if structured is None else _missing_from_content(structured, result.get("content", ()))
    if rest is not None:
        parts.append(json.dumps(rest, ensure_ascii=False))
    return parts


def contents_of(tool: str, contents: Sequence[Mapping[str, Any]]) -> list[Part]:
    """The parts of a resource. Several texts have their URIs as headings."""
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


def _missing_from_content(structured: Any, content: Sequence[Mapping[str, Any]]) -> Any:
    """The part of `structuredContent` that the content lacks; None if it lacks nothing."""
    texts = [block["text"] for block in content if isinstance(block.get("text"), str)]
    values = [value_of_json(text, text) for text in texts]
    said = [*texts, *values, *((texts, values) if texts else ())]
    if structured in said or _unwrap_single(structured) in said:
        return None
    blocks = [*content, *(block["resource"] for block in content if "resource" in block)]
    rest = _without_repeats(structured, texts, blocks)
    if isinstance(rest, dict):
        others = {key: _without_repeats(value, texts, blocks) for key, value in rest.items()}
        rest = {key: others[key] for key, value in rest.items() if others[key] or not value}
    return rest if rest or not structured else None


def _unwrap_single(structured: Any) -> Any:
    """The value of an object with one key, in which servers wrap other values."""
    return next(iter(structured.values())) if isinstance(structured, dict) and len(structured) == 1 else structured


def _without_repeats(value: Any, texts: Sequence[str], blocks: Sequence[Any]) -> Any:
    """A value without what the content repeats; an empty value of its type if nothing remains."""
    match value:
        case [*items]:
            return [each for each in items if not any(_is_same(each, block) for block in blocks)]
        case str() if len(value) >= LONG and value in texts:
            return ""
        case {} if any(_is_same(value, block) for block in blocks):
            return {}
        case _:
            return value


def _is_same(one: Any, block: Any) -> bool:
    """Whether two blocks are the same, or have the same binary data."""
    if one == block or not (isinstance(one, dict) and isinstance(block, dict)):
        return bool(one == block)
    return any(isinstance(one.get(key), str) and one[key] == block.get(key) for key in ("data", "blob"))
