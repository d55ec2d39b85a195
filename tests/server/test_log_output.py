"""The lines of the log: their form, and the task that each belongs to. `test_serve.py` reads those of a server."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from typing import Any

import pytest

from a2a_canvas.server.accounts.api_key import new_key
from a2a_canvas.server.accounts.sharing import new_link_token
from a2a_canvas.server.log_output import FORMATS, LineFormatter, about, set_task, without_signatures
from a2a_canvas.store.ids import context_key

SECRET = "my diary"
MADE_AT = 1_795_352_701.1239


def line(form: str, message: str = "Done", *, failed: bool = False, **record: Any) -> str:
    """What is written of a record."""
    try:
        raise RuntimeError("no \x1b[1mluck")
    except RuntimeError as error:
        exc_info = (RuntimeError, error, error.__traceback__) if failed else None
    made = logging.LogRecord("a2a_canvas.server.x", logging.WARNING, __file__, 1, message, (), exc_info)
    made.created, made.msecs = MADE_AT, 123.9
    vars(made).update(record)
    return LineFormatter(form).format(made)


@pytest.fixture(params=sorted(FORMATS))
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_text_has_time_level_message_and_fields() -> None:
    fields = about("t-1", "pools", state="completed", seconds=1.5, artifacts={"a": 1, "b": 2})
    assert line("text", **fields) == (
        "2026-11-22T13:05:01.123Z WARNING Done task=t-1 context=pools state=completed seconds=1.5 artifacts=a:1,b:2"
    )


def test_json_is_an_object_with_the_same() -> None:
    assert json.loads(line("json", **about("t-1", "pools", seconds=1.5, artifacts={"a": 1}))) == {
        "time": "2026-11-22T13:05:01.123Z",
        "level": "warning",
        "logger": "a2a_canvas.server.x",
        "message": "Done",
        "task": "t-1",
        "context": "pools",
        "seconds": 1.5,
        "artifacts": {"a": 1},
    }


@pytest.mark.parametrize(
    "name", ["two words", "a\nb", "a\rb", "a\x1b[2Jb", "a\x85b", "a\u2028b", 'a"b', "a\udc80b", ""]
)
def test_a_name_or_a_message_of_others_makes_no_line_of_its_own_and_nothing_that_a_terminal_obeys(
    form: str, name: str
) -> None:
    written = line(form, f"Met {name}", **about("t", context_id=name, note=name))
    assert len(written.splitlines()) == 1
    assert not any(ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0 for character in written)
    if form == "json":
        assert json.loads(written)["message"] == f"Met {name}"


def test_a_trace_follows_the_line_in_a_text_and_is_a_field_in_json() -> None:
    first, *trace = line("text", failed=True).splitlines()
    assert first == "2026-11-22T13:05:01.123Z WARNING Done"
    assert (trace[0], trace[-1]) == ("Traceback (most recent call last):", r"RuntimeError: no \x1b[1mluck")
    assert json.loads(line("json", failed=True))["trace"].startswith("Traceback (most recent call last):\n")


def test_the_row_that_a_database_quotes_is_left_out_of_a_trace(form: str) -> None:
    error = f"check constraint\nDETAIL:  Failing row contains ({SECRET},\n\n{SECRET}).\nHINT:  Mend it."
    try:
        try:
            raise ValueError(error)
        except ValueError as cause:
            raise RuntimeError(f"{error}\n[SQL: INSERT]") from cause
    except RuntimeError as failure:
        written = line(form, exc_info=(RuntimeError, failure, failure.__traceback__))
    assert SECRET not in written
    assert all(words in written for words in ("check constraint", "HINT:  Mend it.", "direct cause", "[SQL: INSERT]"))


@pytest.mark.parametrize(
    ("message", "written"),
    [
        (f"key {new_key('ann')}.", "key a2ac_***."),
        (f"link {new_link_token(context_key('', 'c'))}", "link a2al_***"),
        ("Authorization: Bearer 0123456789abcdef", "Authorization: Bearer ***"),
        ("postgresql://canvas:s3cret@db/canvas is not there", "postgresql://canvas:***@db/canvas is not there"),
        ("POST /?access_token=0123&x=1 HTTP/1.1", "POST /?access_token=***&x=1 HTTP/1.1"),
        ("GET /auth/callback?code=a&state=b", "GET /auth/callback?code=***&state=***"),
        ("sk-ant-REDACTED is refused", "sk-*** is refused"),
        ("token eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4ifQ.c2ln ends", "token eyJ*** ends"),
        (
            "GET /artifacts/notes?pageSize=5 at http://127.0.0.1:8000",
            "GET /artifacts/notes?pageSize=5 at http://127.0.0.1:8000",
        ),
    ],
    ids=range(9),
)
def test_what_looks_like_a_secret_is_masked(form: str, message: str, written: str) -> None:
    assert written in line(form, message)


async def test_every_line_of_a_tasks_own_code_has_its_ids_and_no_other_line_has() -> None:
    async def works(task_id: str, context_id: str) -> str:
        set_task(task_id, context_id)
        await asyncio.sleep(0)
        return await asyncio.create_task(helps())

    async def helps() -> str:
        return line("text")

    both = await asyncio.gather(works("t-1", "c-1"), works("t-2", ""))
    assert [each.partition("Done")[2] for each in both] == [" task=t-1 context=c-1", " task=t-2"]
    assert line("text").endswith("Done")


async def test_a_line_about_another_task_names_that_one() -> None:
    async def works() -> str:
        set_task("t-1", "c-1")
        return line("text", **about("t-2", "c-2"))

    assert (await asyncio.create_task(works())).endswith("Done task=t-2 context=c-2")


@pytest.mark.parametrize("path", ["/artifacts?query=a&signature=e30.x-_", "/auth/callback?code=abc&state=def"])
def test_the_address_of_a_request_is_logged_without_what_signs_somebody_in(path: str) -> None:
    arguments = ("127.0.0.1:1", "GET", path, "1.1", 200)
    record = logging.LogRecord("uvicorn.access", logging.INFO, __file__, 1, '%s - "%s %s HTTP/%s" %d', arguments, None)
    assert without_signatures(record)
    assert not re.search("e30|abc|def", record.getMessage())
    assert path.partition("?")[0] in record.getMessage()


@pytest.mark.parametrize(("form", "end"), [("text", "Done worker=2"), ("json", '"message": "Done", "worker": 2}')])
def test_a_line_names_its_worker(form: str, end: str) -> None:
    record = logging.LogRecord("a2a_canvas", logging.INFO, __file__, 1, "Done", None, None)
    assert LineFormatter(form, 2).format(record).endswith(end)
