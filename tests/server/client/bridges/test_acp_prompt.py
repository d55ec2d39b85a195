"""What an editor's prompt says."""

from __future__ import annotations

import acp
import pytest

from a2a_canvas.server.client.bridges.acp_prompt import MentionedFile, read_prompt

HERE = "/home/ann/book"


def link(uri: str) -> acp.schema.ResourceContentBlock:
    return acp.resource_link_block("a file", uri)


@pytest.mark.parametrize(
    ("uri", "file"),
    [
        ("file:///home/ann/book/tide.md", MentionedFile("tide.md")),
        ("file:///home/ann/book/a%20b/t.md#L3", MentionedFile("a b/t.md", None, (3, 3))),
        ("file:///home/ann/book/tide.md#L3:7", MentionedFile("tide.md", None, (3, 7))),
        ("file:///home/ann/book/tide.md#L3-L7", MentionedFile("tide.md", None, (3, 7))),
        ("file:///home/ann/book/tide.md#top", MentionedFile("tide.md")),
        ("file:///home/ann/other/tide.md", None),
        ("file:///home/ann/book/../secret", None),
        ("file:///home/ann/book", None),
        ("https://example.com/home/ann/book/tide.md", None),
    ],
)
def test_files_of_the_folder_are_artifacts_and_others_are_only_named(uri: str, file: MentionedFile | None) -> None:
    prompt = read_prompt([acp.text_block("Shorten"), link(uri)], HERE)
    assert prompt.files == ([file] if file else [])
    assert prompt.text == f"Shorten {file.name if file else uri}"


def test_a_selection_of_one_file_is_rewritten_and_of_several_it_is_context() -> None:
    one = acp.resource_block(acp.embedded_text_resource(f"file://{HERE}/a.md#L3", "Line three."))
    other = acp.resource_block(acp.embedded_text_resource(f"file://{HERE}/b.md", "All of it."))
    selected = MentionedFile("a.md", None, (3, 3))
    assert read_prompt([acp.text_block("Shorten"), one], HERE).selection == selected
    both = read_prompt([acp.text_block("Compare"), one, other], HERE)
    assert (both.selection, both.files) == (None, [selected, MentionedFile("b.md", "All of it.")])


def test_pictures_are_parts_and_what_is_no_base64_is_empty() -> None:
    prompt = read_prompt(
        [acp.text_block("Look"), acp.image_block("aGk=", "image/png"), acp.image_block("?", "image/png")], HERE
    )
    assert [part.raw for part in prompt.parts] == [b"hi", b""]
