from typing import Any

import pytest

from a2a_canvas.server.tool_sources.mcp_servers.elicitation import ElicitationAnswer, UnclearAnswer, answer, question

NAME = {"type": "string", "title": "Full name", "maxLength": 10}
COLOUR = {"type": "string", "enum": ["red", "blue"]}
SIZE = {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]}
MANY = {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}}
AGE = {"type": "integer", "minimum": 18, "maximum": 99}


def form(required: list[str] | None = None, **fields: Any) -> dict[str, Any]:
    needed = list(fields) if required is None else required
    schema = {"type": "object", "properties": fields, "required": needed}
    return {"mode": "form", "message": "Tell me.", "requestedSchema": schema}


def test_a_question_names_who_asks_and_what() -> None:
    assert question("shop", form(name=NAME)) == (
        "shop asks: Tell me.\n\nname (Full name) [text]\n\nIf you do not want to say, answer “decline”."
    )


def test_a_question_with_several_fields_shows_how_to_answer() -> None:
    asked = question("shop", form(["colour"], colour=COLOUR, size={**SIZE, "default": "s"}, many=MANY))
    assert "- colour [one of red, blue]\n" in asked
    assert '- size [one of s (Small), l (Large); may be left out; otherwise "s"]\n' in asked
    assert "- many [any of a, b, c, separated by commas; may be left out]\n" in asked
    assert "Answer with one line for each, such as:\n\ncolour: …\nsize: …" in asked


def test_a_field_is_shown_with_its_description() -> None:
    asked = question("shop", form(name={**NAME, "description": "As in your passport."}))
    assert "\n\nname (Full name): As in your passport. [text]\n\n" in asked


def test_a_question_without_fields_is_answered_with_yes() -> None:
    asked = form()
    assert "Answer “yes”, or “decline”." in question("shop", asked)
    assert answer(asked, "Yes") == ElicitationAnswer("accept", {})
    assert answer(asked, "no") == ElicitationAnswer("decline")


def test_an_address_to_open_is_shown() -> None:
    asked = {"mode": "url", "message": "Log in.", "url": "https://h/login"}
    assert "Open https://h/login and answer “done” after that." in question("shop", asked)
    assert answer(asked, "done") == ElicitationAnswer("accept")
    assert answer(asked, "Decline.") == ElicitationAnswer("decline")


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        (NAME, " Ann ", "Ann"),
        (NAME, '{"field": "Ann"}', "Ann"),
        (NAME, "field: Ann", "Ann"),
        (NAME, "full name: Ann", "Ann"),
        (NAME, '"decline"', "decline"),
        ({"type": "string"}, "a: b\nc", "a: b\nc"),
        (COLOUR, "Red", "red"),
        (SIZE, "large", "l"),
        (MANY, "a, c", ["a", "c"]),
        (MANY, '["b"]', ["b"]),
        (AGE, "42", 42),
        (AGE, '{"field": 42}', 42),
        ({"type": "number"}, "1.5", 1.5),
        ({"type": "boolean"}, "Yes.", True),
        ({"type": "boolean"}, "n", False),
    ],
)
def test_a_field_is_answered_by_its_value(field: dict[str, Any], text: str, value: Any) -> None:
    assert answer(form(field=field), text) == ElicitationAnswer("accept", {"field": value})


@pytest.mark.parametrize("text", ['{"name": "Ann", "Age": 30}', "name: Ann\nage: 30", "- Full name = Ann\n- AGE = 30"])
def test_several_fields_are_answered_by_json_or_by_lines(text: str) -> None:
    assert answer(form(name=NAME, age=AGE), text) == ElicitationAnswer("accept", {"name": "Ann", "age": 30})


def test_what_may_be_left_out_has_its_default() -> None:
    asked = form(["name"], name=NAME, colour={**COLOUR, "default": "blue"}, size=SIZE)
    assert answer(asked, "Ann") == ElicitationAnswer("accept", {"name": "Ann", "colour": "blue"})


@pytest.mark.parametrize("text", ["decline", "Decline.", "CANCEL"])
def test_the_user_may_decline_or_cancel(text: str) -> None:
    assert answer(form(name=NAME, age=AGE), text) == ElicitationAnswer(
        "cancel" if "C" in text[:1] and "D" not in text else "decline"
    )


@pytest.mark.parametrize(
    ("fields", "text", "reason"),
    [
        ({"age": AGE}, "young", "age must be a whole number"),
        ({"age": AGE}, "17", "age must be from 18 to 99"),
        ({"colour": COLOUR}, "green", "colour is “green” and must be one of red, blue"),
        ({"many": MANY}, "a, z", "many is “z” and must be one of a, b, c"),
        ({"sure": {"type": "boolean"}}, "maybe", "sure must be yes or no"),
        ({"name": NAME}, "x" * 11, "name must have 0 to 10 characters"),
        ({"name": NAME, "age": AGE}, "name: Ann", "age is missing"),
        ({"name": NAME, "age": AGE}, "Ann", "the answer needs a line for each of name, age, such as “name: …”"),
    ],
)
def test_an_answer_that_does_not_fit_says_why(fields: dict[str, Any], text: str, reason: str) -> None:
    assert answer(form(**fields), text) == UnclearAnswer(reason)
