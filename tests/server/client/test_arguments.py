"""The commands for artifacts as they are typed: what is understood, in which order, and what is refused."""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from a2a_canvas.server.cli import main
from a2a_canvas.server.client.operations import (
    REDO,
    REDO_STEP,
    UNDO,
    UNDO_STEP,
    ArtifactOperation,
    ArtifactTarget,
    EditRequest,
    LineRange,
    RequestHeader,
    RequestHeaders,
    SendRequest,
    TextMatch,
    put,
    restore,
)
from a2a_canvas.server.wire import TOKEN_VARIABLE

C = ["--context", "c"]


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """What is called, and with what, for a line that is typed."""
    called: list[tuple[Any, ...]] = []

    def record(name: str) -> Callable[..., Any]:
        async def run(*given: Any) -> int:
            called.append((name, *given[:-2]))
            return 0

        return run

    monkeypatch.setattr("a2a_canvas.server.client.edit.operate", record("operate"))
    monkeypatch.setattr("a2a_canvas.server.client.send.send", record("send"))
    for name in ("artifacts", "show", "versions", "diff"):
        monkeypatch.setattr(f"a2a_canvas.server.client.artifacts.{name}", record(name))
    monkeypatch.setattr("sys.argv", ["./a2a-canvas"])
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)

    def typed(*arguments: str) -> tuple[Any, ...]:
        assert main(arguments) == 0
        return called.pop()

    return typed


HERE = ArtifactTarget("c", "doc", program="./a2a-canvas")


@pytest.mark.parametrize(
    ("arguments", "edit"),
    [
        (["doc", "shorter", "--lines", "3"], EditRequest("shorter", LineRange(3, 3))),
        (["--lines", "3-5", "doc", "shorter"], EditRequest("shorter", LineRange(3, 5))),
        (["doc", "--match", "one two", "--after", "more"], EditRequest("more", TextMatch("one two"), "insert_after")),
        (
            ["doc", "--match=-x", "--before", "more", "--base", "7"],
            EditRequest("more", TextMatch("-x"), "insert_before", 7),
        ),
        (["--lines", "3", "--", "doc", "--shorter"], EditRequest("--shorter", LineRange(3, 3))),
        (["doc", "--lines", "3", "--", "-"], EditRequest("-", LineRange(3, 3))),
    ],
)
def test_an_edit_is_understood_in_any_order(typed: Callable[..., Any], arguments: list[str], edit: EditRequest) -> None:
    assert typed("edit", *C, *arguments) == ("operate", HERE, edit)


@pytest.mark.parametrize(
    ("arguments", "operation"),
    [
        (["undo", "doc"], UNDO),
        (["redo", "doc"], REDO),
        (["undo", "doc", "--step"], UNDO_STEP),
        (["redo", "--step", "doc"], REDO_STEP),
        (["restore", "doc", "3"], restore(3)),
    ],
)
def test_a_step_through_the_versions_is_understood(
    typed: Callable[..., Any], arguments: list[str], operation: ArtifactOperation
) -> None:
    assert typed(*arguments, *C) == ("operate", HERE, operation)
    assert typed(*arguments[:2], *C, *arguments[2:]) == ("operate", HERE, operation)


def test_a_text_is_put_from_a_file_or_from_the_standard_input(
    typed: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "new.txt"
    file.write_bytes("é\r\n".encode())
    assert typed("put", "doc", *C, str(file)) == ("operate", HERE, put("é\r\n", None))
    assert typed("put", "doc", str(file), *C, "--base", "2") == ("operate", HERE, put("é\r\n", 2))
    for arguments in ([], ["-"]):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("é\r\n".encode()), encoding="ascii"))
        assert typed("put", "doc", *C, *arguments) == ("operate", HERE, put("é\r\n", None))


@pytest.mark.parametrize(
    ("arguments", "call"),
    [
        (["artifacts"], ("artifacts", ArtifactTarget("c", program="./a2a-canvas"))),
        (["show", "doc"], ("show", HERE, None)),
        (["show", "doc", "--version", "2"], ("show", HERE, 2)),
        (["versions", "doc"], ("versions", HERE)),
        (["diff", "doc"], ("diff", HERE, None, None)),
        (["diff", "doc", "--from", "0", "3"], ("diff", HERE, 3, 0)),
        (["diff", "--from", "1", "doc"], ("diff", HERE, None, 1)),
    ],
)
def test_reading_is_understood(typed: Callable[..., Any], arguments: list[str], call: tuple[Any, ...]) -> None:
    assert typed(*arguments, *C) == call


COMMANDS = [
    "send",
    "edit doc --lines 1 x",
    "undo doc",
    "redo doc",
    "restore doc 1",
    "put doc /dev/null",
    "artifacts",
    "show doc",
    "versions doc",
    "diff doc",
]
TOKEN = RequestHeader("Authorization", "Bearer abc", "--token …")
KEY = RequestHeader("X-Api-Key", "a: b", "--header 'X-Api-Key: …'")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_the_server_headers_and_json(typed: Callable[..., Any], command: str) -> None:
    name, *rest = command.split()
    words = ["hello"] if name == "send" else []
    server = ["--url", "http://h", "--header", "X-Api-Key:  a: b ", "--token", "abc", "--json"]
    _, request, *_ = typed(name, *C, *server, *rest, *words)
    expected = {"context": "c", "url": "http://h", "json": True, "program": "./a2a-canvas", "headers": (KEY, TOKEN)}
    if words:
        assert request == SendRequest("hello", **expected)
    else:
        assert request == ArtifactTarget(artifact="" if name == "artifacts" else "doc", **expected)


@pytest.mark.parametrize("command", ["send hello", "edit doc x --lines 1 --context c"])
def test_thinking_is_shown_on_demand(typed: Callable[..., Any], command: str) -> None:
    assert [typed(*command.split(), *option)[1].thinking for option in ([], ["--thinking"])] == [False, True]


@pytest.mark.parametrize(
    ("options", "headers"),
    [
        ([], (RequestHeader("Authorization", "Bearer fromenv"),)),
        (["--token", "abc"], (TOKEN,)),
        (
            ["--header", "authorization: Basic eDp5"],
            (RequestHeader("authorization", "Basic eDp5", "--header 'authorization: …'"),),
        ),
        (["--header", "X-Api-Key:a: b"], (KEY, RequestHeader("Authorization", "Bearer fromenv"))),
    ],
)
def test_the_token_of_the_environment_is_sent_unless_another_one_is_typed(
    typed: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, options: list[str], headers: RequestHeaders
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, " fromenv\n")
    assert typed("versions", "doc", *C, *options)[1].headers == headers


@pytest.mark.parametrize(
    ("options", "token", "line"),
    [
        (["--header", "s3cr3t"], "", "argument --header: must be a name, a colon and a value, all in ASCII."),
        (["--header", "X-Key: "], "", "argument --header: must be a name, a colon and a value, all in ASCII."),
        (["--header", "X-Key: s3cr3t\r\nX: y"], "", "argument --header: must be a name, a colon and a value"),
        (["--header", "X-Key: s3cr3té"], "", "argument --header: must be a name, a colon and a value"),
        (["--token", "s3cr3t more"], "", "argument --token: must be one word of ASCII characters."),
        (["--token", ""], "", "argument --token: must be one word of ASCII characters."),
        (["--token", "s3cr3t", "--header", "authorization: s3cr3t"], "", "The header authorization is given twice"),
        (["--header", "X-Key: s3cr3t", "--header", "x-key: s3cr3t"], "", "The header x-key is given twice"),
        ([], "s3cr3t\nmore", f"{TOKEN_VARIABLE} must be one word of ASCII characters"),
    ],
)
def test_headers_that_cannot_be_sent_are_refused_without_repeating_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, options: list[str], token: str, line: str
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, token)
    try:
        code = main(["artifacts", *C, *options])
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    said = capsys.readouterr()
    assert (code, said.out, said.err.count("\n")) == (2, "", 1)
    assert line in said.err
    assert "s3cr3t" not in said.err


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["edit", "doc", "shorter", *C], "one of the arguments --lines --match is required."),
        (["edit", "doc", *C, "--lines", "1"], "the following arguments are required: INSTRUCTION."),
        (
            ["edit", "doc", "x", *C, "--lines", "1", "--match", "y"],
            "argument --match: not allowed with argument --lines.",
        ),
        (["edit", "doc", "x", *C, "--lines", "1", "--before", "--after"], "argument --after: not allowed with"),
        (["edit", "doc", "x", *C, "--lines", "5-3"], "argument --lines: ends before it begins: '5-3'."),
        (["edit", "doc", "x", *C, "--lines", "0"], "argument --lines: must be a line, as 3, or a range, as 3-5"),
        (["edit", "doc", "x", *C, "--lines", "a"], "argument --lines: must be a line, as 3, or a range, as 3-5"),
        (["edit", "doc", "x", *C, "--match", ""], "argument --match: must not be empty."),
        (["undo", "doc"], "the following arguments are required: --context."),
        (["undo", *C], "the following arguments are required: ARTIFACT."),
        (["undo", "doc", "--context", ""], "argument --context: must not be empty."),
        (["restore", "doc", *C], "the following arguments are required: VERSION."),
        (["restore", "doc", "0", *C], "argument VERSION: versions are counted from 1."),
        (["restore", "doc", "two", *C], "argument VERSION: must be the number of a version: 'two'."),
        (["show", "doc", "more", *C], None),
    ],
)
def test_what_cannot_be_understood_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], line: str | None
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    said = capsys.readouterr()
    assert (stopped.value.code, said.out, said.err.count("\n")) == (2, "", 1)
    if line is None:
        assert said.err == "a2a-canvas: unrecognized arguments: more. See a2a-canvas --help.\n"
    else:
        assert said.err.startswith(f"a2a-canvas {arguments[0]}: {line}")


def test_a_file_that_cannot_be_put_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"ab\xff")
    for file, why in (
        (binary, "is not text in UTF-8: byte 3 is wrong"),
        (tmp_path / "none", "cannot be read: No such file or directory"),
    ):
        assert main(["put", "doc", *C, str(file)]) == 2
        assert capsys.readouterr() == ("", f"a2a-canvas: {file} {why}\n")
