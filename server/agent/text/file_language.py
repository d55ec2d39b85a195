"""The language of a text: "python", "markdown"… Pure.

Rule 1: a `language` in the metadata is used as it is; otherwise the media type decides, otherwise the file name.
Rule 2: a media type that is not in the table, such as `text/plain`, decides nothing; one that ends in `+json`, `+xml`
        or `+yaml` is of that language.
Rule 3: the whole file name decides (`Makefile`), otherwise its extension, otherwise the part before the first dot
        (`Dockerfile.dev`), in upper or lower case and without folders.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_TABLE: Final = (
    # language, media types, extensions, names of files
    ("markdown", "text/markdown text/x-markdown", "md markdown mdown mkd mdx", ""),
    ("html", "text/html application/xhtml+xml", "html htm xhtml", ""),
    ("css", "text/css", "css", ""),
    ("scss", "text/x-scss", "scss", ""),
    ("json", "application/json text/json text/x-json", "json geojson ipynb webmanifest", ""),
    ("jsonl", "application/jsonl application/x-ndjson", "jsonl ndjson", ""),
    ("yaml", "application/yaml application/x-yaml text/yaml text/x-yaml", "yaml yml", ""),
    ("toml", "application/toml text/x-toml", "toml", ""),
    ("xml", "application/xml text/xml", "xml xsd xsl xslt svg", ""),
    ("ini", "text/x-ini", "ini cfg conf properties", ".editorconfig"),
    ("csv", "text/csv", "csv", ""),
    ("python", "text/x-python application/x-python application/x-python-code", "py pyi pyw", ""),
    ("javascript", "text/javascript application/javascript application/x-javascript", "js mjs cjs jsx", ""),
    (
        "typescript",
        "text/typescript application/typescript application/x-typescript text/x-typescript",
        "ts mts cts tsx",
        "",
    ),
    ("java", "text/x-java text/x-java-source", "java", ""),
    ("kotlin", "text/x-kotlin", "kt kts", ""),
    ("scala", "text/x-scala", "scala sc", ""),
    ("go", "text/x-go", "go", ""),
    ("rust", "text/x-rust text/rust", "rs", ""),
    ("c", "text/x-c text/x-csrc text/x-chdr", "c h", ""),
    ("cpp", "text/x-c++ text/x-c++src text/x-c++hdr", "cpp cc cxx hpp hh hxx", ""),
    ("csharp", "text/x-csharp", "cs", ""),
    ("swift", "text/x-swift", "swift", ""),
    ("ruby", "text/x-ruby application/x-ruby", "rb", "gemfile rakefile"),
    ("php", "text/x-php application/x-php application/x-httpd-php", "php", ""),
    ("perl", "text/x-perl application/x-perl", "pl pm", ""),
    ("lua", "text/x-lua", "lua", ""),
    ("r", "text/x-r", "r", ""),
    ("haskell", "text/x-haskell", "hs", ""),
    ("elixir", "text/x-elixir", "ex exs", ""),
    ("sql", "application/sql text/x-sql", "sql", ""),
    ("graphql", "application/graphql", "graphql gql", ""),
    ("shell", "application/x-sh text/x-sh text/x-shellscript", "sh bash zsh", ".bashrc .profile .zshrc"),
    ("powershell", "text/x-powershell", "ps1 psm1", ""),
    ("dockerfile", "text/x-dockerfile", "dockerfile", "dockerfile containerfile"),
    ("makefile", "text/x-makefile", "mk mak", "makefile gnumakefile"),
    ("latex", "application/x-latex application/x-tex text/x-tex", "tex sty", ""),
    ("rst", "text/x-rst", "rst", ""),
    ("diff", "text/x-diff text/x-patch", "diff patch", ""),
)
_BY_MEDIA_TYPE: Final = {word: language for language, types, _, _ in _TABLE for word in types.split()}
_MEDIA_TYPES: Final = {language: types.split()[0] for language, types, _, _ in _TABLE if types}
_BY_EXTENSION: Final = {word: language for language, _, extensions, _ in _TABLE for word in extensions.split()}
_BY_NAME: Final = {word: language for language, _, _, names in _TABLE for word in names.split()}
_OF_MARKDOWN: Final = frozenset({"markdown", "md", "mdx"})
_OF_PROSE: Final = _OF_MARKDOWN | {"", "text", "plain", "rst", "latex"}


def language_of(name: str, media_type: str = "", metadata: Mapping[str, object] | None = None) -> str:
    """The language of a text, in lower case unless its metadata names it; empty if unknown.

    Args:
        name: the file's name, with or without folders.
        media_type: with or without parameters.
        metadata: of the text part.
    """
    given = (metadata or {}).get("language")
    if isinstance(given, str) and given.strip():
        return given.strip()
    return _of_media_type(media_type) or _of_name(name)


def media_type_by_name(name: str) -> str:
    """The media type of the language of a file name; empty if unknown."""
    return "image/svg+xml" if name.lower().endswith(".svg") else _MEDIA_TYPES.get(_of_name(name), "")


def is_markdown(language: str) -> bool:
    """Whether a language of `language_of` is Markdown."""
    return language.casefold() in _OF_MARKDOWN


def is_prose(language: str) -> bool:
    """Whether a text consists of paragraphs: a language of prose, or an unknown one."""
    return language.casefold() in _OF_PROSE


def _of_media_type(media_type: str) -> str:
    bare = media_type.partition(";")[0].strip().lower()
    suffix = bare.rpartition("+")[2]
    return _BY_MEDIA_TYPE.get(bare) or (suffix if "+" in bare and suffix in ("json", "xml", "yaml") else "")


def _of_name(name: str) -> str:
    file = re.split(r"[/\\]", name.strip())[-1].lower()
    stem, dot, extension = file.rpartition(".")
    by_extension = _BY_EXTENSION.get(extension, "") if dot and stem else ""
    return _BY_NAME.get(file) or by_extension or _BY_NAME.get(file.partition(".")[0], "")
