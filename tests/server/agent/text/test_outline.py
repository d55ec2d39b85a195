"""The outline of a document: headings, or what is defined without indentation, with the numbers of the lines."""

from __future__ import annotations

import pytest

from a2a_canvas.server.agent.text.outline import MAX_OUTLINE, outline_of


def test_of_markdown_it_is_the_headings_outside_of_fenced_blocks() -> None:
    text = "# Tea\r\n\n```sh\n# no\n```\n## Milk ##\n#no\n    # no\n   ### Sugar\n~~~\n# no\n"
    assert outline_of(text, "markdown", 1) == "1: # Tea\n6: ## Milk ##\n9:    ### Sugar"


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("python", "async def f(x: int) -> str:"),
        ("python", "class A(B):"),
        ("javascript", "export default function f() {"),
        ("typescript", "export const f = async (x) => {"),
        ("typescript", "export interface A {"),
        ("rust", "pub(crate) async fn f() {"),
        ("rust", "impl A for B {"),
        ("go", "func (a *A) f() {"),
        ("java", "public final class A {"),
        ("kotlin", "data class A(val b: Int)"),
        ("sql", "CREATE TABLE a ("),
    ],
)
def test_of_anything_else_it_is_what_is_defined_without_indentation(language: str, line: str) -> None:
    assert outline_of(f"x = 1\n{line}\n    {line}\n# {line}\n", language, 1) == f"2: {line}"


def test_a_text_of_which_nothing_is_known_is_prose() -> None:
    assert outline_of("table of contents\n# Tea\n", "", 1) == "2: # Tea"


def test_a_text_without_any_has_none() -> None:
    assert outline_of("one\ntwo\n", "markdown", 1) == outline_of("x = 1\n", "python", 1) == ""


def test_a_long_one_is_cut_to_what_is_near() -> None:
    text = "".join(f"def function_{n}():\n    pass\n" for n in range(1, 501))
    lines = outline_of(text, "python", 501).split("\n")
    assert "501: def function_251():" in lines
    assert len("\n".join(lines)) <= MAX_OUTLINE
    numbers = [int(line.partition(":")[0]) for line in lines]
    assert numbers == sorted(numbers)
    assert abs((501 - numbers[0]) - (numbers[-1] - 501)) <= 4
    assert len(outline_of("def f" + "x" * 999, "python", 1)) < 120
