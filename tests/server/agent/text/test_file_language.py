"""Which language a text is in: its metadata, its media type, its name, in this order."""

import pytest

from a2a_canvas.server.agent.text.file_language import is_markdown, language_of


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("a.py", "python"),
        ("A.PY", "python"),
        ("src/a.tsx", "typescript"),
        ("src\\a.md", "markdown"),
        ("notes.v2.json", "json"),
        ("Dockerfile", "dockerfile"),
        ("docker/Dockerfile.dev", "dockerfile"),
        ("makefile", "makefile"),
        ("makefile.py", "python"),
        (".bashrc", "shell"),
        ("notes.txt", ""),
        ("notes", ""),
        (".py", ""),
        ("py", ""),
        ("a.py/notes", ""),
        ("", ""),
    ],
)
def test_a_file_s_name_tells_the_language(name, language) -> None:
    assert language_of(name) == language


@pytest.mark.parametrize(
    ("media_type", "language"),
    [
        ("text/x-python", "python"),
        ("Text/Markdown; charset=utf-8", "markdown"),
        ("text/html", "html"),
        ("application/json", "json"),
        ("application/ld+json", "json"),
        ("image/svg+xml", "xml"),
        ("application/vnd.x+zip", ""),
        ("application/octet-stream", ""),
    ],
)
def test_a_media_type_tells_the_language(media_type, language) -> None:
    assert language_of("notes", media_type) == language


def test_the_media_type_wins_over_the_name() -> None:
    assert language_of("a.py", "text/html") == "html"


@pytest.mark.parametrize("media_type", ["", "text/plain", "text/plain; charset=utf-8", "text/x-tea", "+json+"])
def test_a_media_type_that_says_nothing_leaves_it_to_the_name(media_type) -> None:
    assert language_of("a.py", media_type) == "python"


def test_metadata_wins_over_both() -> None:
    assert language_of("a.py", "text/html", {"language": "Rust"}) == "Rust"


@pytest.mark.parametrize("metadata", [None, {}, {"language": ""}, {"language": " "}, {"language": 3}, {"lang": "go"}])
def test_metadata_without_a_language_says_nothing(metadata) -> None:
    assert language_of("a.py", "", metadata) == "python"


def test_markdown_is_known_by_its_names() -> None:
    assert all(map(is_markdown, ["markdown", "Markdown", "md", "mdx", language_of("README.md")]))
    assert not any(map(is_markdown, ["", "html", "rst", "text"]))
