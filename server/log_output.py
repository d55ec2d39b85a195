"""The log: the form of its lines, their level, and the task that a line belongs to. Imports nothing else of the server.

Rule 1: a line has a time (UTC), a level and a message, and fields; as text, or as one JSON object (`--log-format`).
Rule 2: a line that belongs to a task has the fields `task` and `context`. Code that works for one task calls
        `set_task` at its beginning; a line about another task names it with `about`. A line of one of several workers
        has the field `worker`.
Rule 3: the level is that of our own messages. Libraries log warnings and errors alone, at any level.
Rule 4: no line has the text of a prompt or of an artifact, or a secret. Nobody logs one; what looks like one is masked
        nevertheless, because a client may send it where it does not belong, such as in an address.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from a2a_canvas.store.ids import public_id

PACKAGE = "a2a_canvas"

Fields = Mapping[str, Any]

_NO_FIELDS: Fields = {}
_task: ContextVar[Fields] = ContextVar("task", default=_NO_FIELDS)

_PLAIN = re.compile(r"[\w.:/@+-]+")
_CONTROL = {code: repr(chr(code))[1:-1] for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)}
"""What a terminal would obey, and the ends of lines: names and messages of others must not make lines of their own."""
_CONTROL_IN_TRACES = {code: escaped for code, escaped in _CONTROL.items() if chr(code) not in "\n\t"}

_ROW = re.compile(
    r"^DETAIL:.*?(?=^(?:\[SQL|The above|During handling|Traceback|HINT:|CONTEXT:)|\Z)", re.MULTILINE | re.DOTALL
)
"""What PostgreSQL adds to an error: the row that it could not write (rule 4)."""

MASK = "***"
_SECRETS = (
    re.compile(r"\b(a2a[cl]_)[\w-]+"),  # API keys, tokens of links
    re.compile(r"\b(sk-)[\w-]{8,}"),  # keys of providers
    re.compile(r"\b(eyJ)[\w-]+\.[\w-]+\.[\w-]*"),  # JSON Web Tokens
    re.compile(r"\b((?:Bearer|Basic) )[\w.~+/=-]{8,}", re.IGNORECASE),
    re.compile(r"(://[^:/@\s\"]*:)[^@/\s\"]+(?=@)"),  # a password in an address
    re.compile(
        r"([?&][\w.-]*(?:token|key|secret|sig|signature|password|code|state)=)[^&\s\"]+",
        re.IGNORECASE,
    ),
)


def mask_secrets(text: str) -> str:
    """A text without what looks like a secret (rule 4)."""
    for secret in _SECRETS:
        text = secret.sub(rf"\1{MASK}", text)
    return text


def set_task(task_id: str = "", context_id: str = "") -> None:
    """Name the task, or the context alone, that all further lines of this `asyncio.Task` belong to (rule 2)."""
    _task.set(_ids(task_id, context_id))


def about(task_id: str = "", context_id: str = "", **fields: Any) -> dict[str, Fields]:
    """The argument `extra` of a line that belongs to a task, or has other fields."""
    return {"fields": _ids(task_id, context_id) | fields}


def _ids(task_id: str, context_id: str) -> dict[str, Any]:
    return {name: value for name, value in (("task", task_id), ("context", public_id(context_id))) if value}


_SIGNED_IN = re.compile(r"\b(signature|code|state)=[^&\s]*")


class LineFormatter(logging.Formatter):
    """Writes a record with its time, its fields and the trace of its exception.

    Args:
        form: one of `FORMATS`.
        worker: the number of this process among those of one server; 0 if it is the only one.
    """

    def __init__(self, form: str, worker: int = 0) -> None:
        super().__init__()
        self._line = FORMATS[form]
        self._process: Fields = {"worker": worker} if worker else _NO_FIELDS

    def format(self, record: logging.LogRecord) -> str:
        fields = {**self._process, **_task.get(), **getattr(record, "fields", _NO_FIELDS)}
        trace = _ROW.sub("", self.formatException(record.exc_info)) if record.exc_info else ""
        return mask_secrets(self._line(record, fields, trace))


def _text_line(record: logging.LogRecord, fields: Fields, trace: str) -> str:
    """`2026-11-22T13:05:01.123Z INFO    Task completed task=… context=…`; a trace follows in lines of its own."""
    shown = "".join(f" {name}={_text(value)}" for name, value in fields.items())
    line = f"{_time(record)} {record.levelname:<7} {record.getMessage().translate(_CONTROL)}{shown}"
    return f"{line}\n{trace.translate(_CONTROL_IN_TRACES)}" if trace else line


def _json_line(record: logging.LogRecord, fields: Fields, trace: str) -> str:
    line = {"time": _time(record), "level": record.levelname.lower(), "logger": record.name}
    line |= {"message": record.getMessage(), **fields}
    return json.dumps(line | ({"trace": trace} if trace else {}), default=str)


FORMATS: Mapping[str, Callable[[logging.LogRecord, Fields, str], str]] = {"text": _text_line, "json": _json_line}


def _time(record: logging.LogRecord) -> str:
    return f"{datetime.fromtimestamp(record.created, UTC):%Y-%m-%dT%H:%M:%S}.{int(record.msecs):03}Z"


def _text(value: Any) -> str:
    """A value in a text: as it is, or quoted as in JSON if it has other characters than those of a name."""
    if isinstance(value, Mapping):
        return ",".join(f"{_text(key)}:{_text(each)}" for key, each in value.items())
    text = str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text.translate(_CONTROL), ensure_ascii=False)


def configure(level: str, form: str, worker: int = 0) -> None:
    """Write the log of this process to stderr.

    Args:
        level: of our own messages (rule 3).
        form: one of `FORMATS`.
        worker: as for `LineFormatter`.
    """
    own = logging.getLevelNamesMapping()[level.upper()]
    handler = logging.StreamHandler()
    handler.setFormatter(LineFormatter(form, worker))
    logging.basicConfig(handlers=[handler], level=max(own, logging.WARNING))
    logging.getLogger(PACKAGE).setLevel(own)
    # The SDK logs every refused request with its traceback; what matters of it is in the answer.
    logging.getLogger("a2a").setLevel(logging.ERROR)
    # The requests, one line each; `serve` turns them on.
    requests = logging.getLogger("uvicorn.access")
    requests.setLevel(max(own, logging.INFO))
    requests.addFilter(without_signatures)


def without_signatures(record: logging.LogRecord) -> bool:
    """Leave out what signs somebody in from the address of a request."""
    if isinstance(record.args, tuple):
        record.args = tuple(_SIGNED_IN.sub(r"\1=***", each) if isinstance(each, str) else each for each in record.args)
    return True
