"""How an attached file is presented to the model: as text, as an image or PDF, or as a placeholder line. Pure.

Rule 1: the media type decides. Without one the name's suffix does, if the bytes are UTF-8: clients send Markdown, JSON
        and source code without a type, or as `application/octet-stream`.
Rule 2: text is decoded by the charset of its media type, or as UTF-8; no content makes a request fail.
"""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from typing import Final

from a2a_canvas.server.agent.model import Attachment, ModelContent, ModelRequest, ModelText, map_content
from a2a_canvas.store.text.unicode import replace_surrogates

_UNKNOWN: Final = ("", "application/octet-stream", "binary/octet-stream")
_TEXTS: Final = re.compile(
    r"text/.*|application/(.+\+(json|xml|yaml)"
    r"|(x-)?(json|json5|jsonl|jsonlines|ndjson|xml|yaml|toml|javascript|ecmascript|typescript|sql|sh|graphql))"
)
"""Media types of text."""
_SUFFIXES: Final = re.compile(
    r"\.(md|markdown|mdx|rst|adoc|tex|txt|text|log|csv|tsv|json|jsonl|ndjson|json5|ipynb|xml|html?|xhtml|css|scss|less"
    r"|ya?ml|toml|ini|cfg|conf|env|properties|js|mjs|cjs|jsx|ts|tsx|vue|svelte|py|pyi|rb|php|pl|lua|r|jl|java|kts?"
    r"|scala|groovy|c|h|cc|cpp|hpp|cs|go|rs|swift|m|sh|bash|zsh|fish|ps1|bat|sql|graphql|proto|tf|diff|patch|srt|vtt"
    r"|ics|vcf)$",
    re.IGNORECASE,
)
"""File name suffixes of text."""
PDF: Final = "application/pdf"
_IMAGES: Final = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF.{4}WEBP", re.DOTALL),
}
"""The images that models read, and their magic bytes: providers reject an image whose bytes contradict its type."""
_MAX_IMAGE: Final = 5 * 1024 * 1024
"""The limit of the Messages API for one image, in characters of base64."""
_NO_CHARSETS: Final = ("idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined")
"""Python codecs that are not charsets of text; some take quadratic time."""


def media_type_of(file: Attachment) -> str:
    """The bare media type, in lower case."""
    return file.media_type.partition(";")[0].strip().lower().replace("image/jpg", "image/jpeg")


def placeholder(file: Attachment) -> str:
    """The placeholder line of a file."""
    where = f" at {file.url}" if file.url else ""
    return f"[Attached file: {file.name or 'unnamed'} ({media_type_of(file)}){where}]"


def is_text(file: Attachment) -> bool:
    """Whether the file is shown as text."""
    if not file.content:
        return False
    if (media_type := media_type_of(file)) not in _UNKNOWN:
        return bool(_TEXTS.fullmatch(media_type))
    return bool(_SUFFIXES.search(file.name)) and _is_utf_8(file.content)


def attachment_text(file: Attachment) -> str:
    """The text of a file for which `is_text` holds."""
    assert file.content is not None
    charset = file.media_type.lower().partition("charset=")[2].partition(";")[0].strip(" \"'")
    return replace_surrogates(_decode(file.content, charset or "utf-8"))


def medium_of(file: Attachment) -> str | None:
    """The media type of an image or PDF that the model is shown as such; None for any other file."""
    named_type = media_type_of(file)
    if named_type != PDF and named_type not in _IMAGES:
        return None
    if not file.content:
        return named_type if file.url.startswith("https://") else None
    if named_type == PDF:  # readers of PDF look for its mark in the first kilobyte
        return PDF if b"%PDF-" in file.content[:1024] else None
    return _image_type(file.content)


def without_media(request: ModelRequest) -> ModelRequest:
    """The request with a placeholder for each image and PDF."""

    def shorten(content: ModelContent) -> ModelContent:
        if isinstance(content, Attachment) and medium_of(content):
            return ModelText(placeholder(content))
        return content

    return map_content(request, shorten)


def _image_type(content: bytes) -> str | None:
    """The type according to the bytes, whatever the sender claims; None if the image is too large."""
    if -(-len(content) // 3) * 4 > _MAX_IMAGE:
        return None
    return next((media_type for media_type, begins in _IMAGES.items() if begins.match(content)), None)


def _is_utf_8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in content


def _decode(content: bytes, charset: str) -> str:
    with suppress(LookupError, ValueError):
        if codecs.lookup(charset).name.replace("-", "_") not in _NO_CHARSETS:
            return content.decode(charset, errors="replace").removeprefix("\ufeff")
    return content.decode(errors="replace").removeprefix("\ufeff")
