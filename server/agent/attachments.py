"""What a file is that a user has attached: a text, or something that a line stands for. Pure.

Rule 1: the media type decides. Without one the name's suffix does, if the bytes are UTF-8: clients send Markdown, JSON
        and source code without a type, or as `application/octet-stream`.
Rule 2: a text is decoded by the charset of its media type, else as UTF-8; nothing that it holds fails a request.
"""

from __future__ import annotations

import codecs
import re
from typing import Final

from a2a_canvas.server.agent.model import Attachment
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
"""Of names of text files."""
_NO_CHARSETS: Final = ("idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined")
"""Encodings of Python's that are no charset of a text; some take time that grows with the square of its length."""


def media_type_of(file: Attachment) -> str:
    """The bare media type, in lower case."""
    return file.media_type.partition(";")[0].strip().lower().replace("image/jpg", "image/jpeg")


def placeholder(file: Attachment) -> str:
    """A line that stands for the file."""
    where = f" at {file.url}" if file.url else ""
    return f"[Attached file: {file.name or 'unnamed'} ({media_type_of(file)}){where}]"


def is_text(file: Attachment) -> bool:
    """Whether the model is shown the file's text."""
    if not file.content:
        return False
    if (media_type := media_type_of(file)) not in _UNKNOWN:
        return bool(_TEXTS.fullmatch(media_type))
    return bool(_SUFFIXES.search(file.name)) and _is_utf_8(file.content)


def attachment_text(file: Attachment) -> str:
    """The text of a file that is one."""
    assert file.content is not None
    return replace_surrogates(_decoded(file.content, _charset(file.media_type)))


def _is_utf_8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in content


def _charset(media_type: str) -> str:
    return media_type.lower().partition("charset=")[2].partition(";")[0].strip(" \"'") or "utf-8"


def _decoded(content: bytes, charset: str) -> str:
    try:
        if codecs.lookup(charset).name.replace("-", "_") not in _NO_CHARSETS:
            return content.decode(charset, errors="replace").removeprefix("\ufeff")
    except (LookupError, ValueError):
        pass
    return content.decode(errors="replace").removeprefix("\ufeff")
