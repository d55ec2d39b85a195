"""The commands of the client as they are typed: what is understood, in which order, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_canvas.server.client.conversation.address import RequestHeader, all_headers
from a2a_canvas.server.commands.cli import main
from a2a_canvas.server.wire import TOKEN_VARIABLE, URL_VARIABLE
from tests.command_line import commands, parsed

C = ["--context", "c"]
TOKEN = RequestHeader("Authorization", "Bearer abc", "--token …")
KEY = RequestHeader("X-Api-Key", "a: b", "--header 'X-Api-Key: …'")
OF_THE_SERVER = {
    *("new", "serve", "models", "demo", "completion", "db upgrade", "db check", "db prune"),
    *("key new", "key list", "key revoke", "session revoke", "doctor", "card verify"),
    "usage",
}


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    monkeypatch.delenv(URL_VARIABLE, raising=False)


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        (["send", "write", "a haiku", "--task", "t"], {"words": ("write", "a haiku"), "task": "t"}),
        (["send", "--", "-x"], {"words": ("-x",)}),
        (["edit", "--lines", "3-5", "doc", "shorter"], {"lines": (3, 5), "words": ("shorter",)}),
        (["edit", "doc", "--match=-x", "more", "--after"], {"match": "-x", "after": True, "before": False}),
        (["edit", "doc", "--lines", "3", "--", "-"], {"words": ("-",)}),
        (["undo", "--step", "doc"], {"artifact": "doc", "step": True}),
        (["put", "doc"], {"file": None, "base": None, "follow": False}),
        (["put", "doc", "new.md", "--base", "2"], {"file": "new.md", "base": 2}),
        (["diff", "doc", "0", "3"], {"numbers": (0, 3)}),
    ],
)
def test_arguments_and_options_are_understood_in_any_order(arguments: list[str], values: dict[str, Any]) -> None:
    name, *rest = arguments
    found = parsed(name, *C, *rest)[1]
    assert found["context"] == "c"
    assert values.items() <= found.items()


@pytest.mark.parametrize("name", [name for name, _ in commands() if name not in OF_THE_SERVER])
def test_every_command_of_the_client_takes_the_server_and_the_form_of_the_output(name: str) -> None:
    typed = ["--url", "http://h", "--header", "X-Api-Key:  a: b ", "--token", "abc", "--json", "--color", "never"]
    command = dict(commands())[name]
    values = {param.name: param for param in command.params}
    assert {"url", "headers", "token", "json", "color"} <= values.keys()
    context = command.make_context(name, list(typed), resilient_parsing=True)
    assert context.params["headers"] == (KEY,)
    assert context.params["token"] == TOKEN


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ((), (RequestHeader("Authorization", "Bearer fromenv"),)),
        ((TOKEN,), (TOKEN,)),
        ((KEY,), (KEY, RequestHeader("Authorization", "Bearer fromenv"))),
    ],
)
def test_the_token_of_the_environment_is_sent_unless_another_one_is_typed(
    monkeypatch: pytest.MonkeyPatch, typed: tuple[RequestHeader, ...], sent: tuple[RequestHeader, ...]
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, " fromenv\n")
    assert all_headers(typed) == sent


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    return said.err


@pytest.mark.parametrize(
    ("options", "token", "line"),
    [
        (["--header", "s3cr3t"], "", "'--header': must be a name, a colon and a value, all in ASCII."),
        (["--header", "X-Key: "], "", "'--header': must be a name, a colon and a value, all in ASCII."),
        (["--header", "X-Key: s3cr3t\r\nX: y"], "", "'--header': must be a name, a colon and a value"),
        (["--header", "X-Key: s3cr3té"], "", "'--header': must be a name, a colon and a value"),
        (["--token", "s3cr3t more"], "", "'--token': must be one word of ASCII characters."),
        (["--token", ""], "", "'--token': must be one word of ASCII characters."),
        (["--token", "s3cr3t", "--header", "authorization: s3cr3t"], "", "The header authorization is given twice"),
        (["--header", "X-Key: s3cr3t", "--header", "x-key: s3cr3t"], "", "The header x-key is given twice"),
        ([], "s3cr3t\nmore", f"{TOKEN_VARIABLE} must be one word of ASCII characters"),
    ],
)
def test_headers_that_cannot_be_sent_are_refused_without_repeating_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, options: list[str], token: str, line: str
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, token)
    said = refused(capsys, "artifacts", *C, *options)
    assert line in said
    assert "s3cr3t" not in said


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["edit", "doc", *C, "--lines", "1"], "Missing argument 'INSTRUCTION'."),
        (["edit", "doc", "x", *C, "--lines", "5-3"], "Invalid value for '--lines': ends before it begins: '5-3'."),
        (["edit", "doc", "x", *C, "--lines", "0"], "Invalid value for '--lines': must be a line such as 3 or a range"),
        (["edit", "doc", "x", *C, "--match", ""], "Invalid value for '--match': must not be empty."),
        (["restore", *C], "Missing argument 'ARTIFACT'."),
        (["restore", "doc", "0", *C], "Invalid value for 'VERSION': versions are counted from 1."),
        (["restore", "doc", "two", *C], "Invalid value for 'VERSION': must be a version number: 'two'."),
        (["show", "doc", "more", *C], "Got unexpected extra argument (more)."),
        (["send", "hi", "--contxt", "c"], "No such option '--contxt'."),
    ],
)
def test_what_cannot_be_understood_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], line: str
) -> None:
    said = refused(capsys, *arguments).removeprefix("a2a-canvas: ")
    assert said.startswith(line)
