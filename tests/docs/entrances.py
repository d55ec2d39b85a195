"""What a caller can send to the server, found in the code: routes, parameters, headers, and fields of every request.

Rule 1: an entrance is a line such as `A2A Part.text`, `canvas:v1 selection`, `AG-UI messages`, `query raw` or
        `route POST /`. A2A 0.3 has none of its own: its requests are converted to these, and checked as such.
Rule 2: only what the server reads is one. What it ignores is bounded by the limits of the whole request.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ag_ui import core
from pydantic.alias_generators import to_camel

from a2a_canvas.server.agent.intent import OperationForm
from a2a_canvas.server.app import create_app
from a2a_canvas.server.protocols.agui.older import older_form
from a2a_canvas.server.protocols.guard.calls import REQUESTS
from a2a_canvas.server.settings import Settings
from tests.docs.pages import ROOT

_PARAMETER = re.compile(r'(?:query_params|request_params|given|query)(?:\.get\(|\[)"(\w+)"')
_READERS = ("artifacts/routes.py", "artifacts/context_forms.py", "identity/session_routes.py", "guard/rest.py")
_HEADER = re.compile(r'headers\.get(?:list)?\("([\w-]+)"')
_IGNORED = {"protocolVersion", "parentRunId", "state", "tools", "encryptedValue", "subagentRunId"}
"""Of a run of AG-UI."""


def entrances() -> list[str]:
    """All of them, sorted."""
    found = {*_routes(), *_a2a(), *_operations(), *_runs(), *_parameters(), *_headers()}
    return sorted(found)


def _routes() -> Iterator[str]:
    app = create_app(Settings(model="rehearsal", database="memory", oidc_client_id="x", jwt_issuer="http://127.0.0.1:1",
                              jwt_audience="x"))  # fmt: skip
    for route in app.routes:
        path: str = getattr(route, "path", "")
        yield f"route {re.sub('{(.*?)(:.*?)?}', '…', path)}"


def _a2a() -> Iterator[str]:
    seen: set[str] = set()
    for request in REQUESTS.values():
        yield from _fields(request.DESCRIPTOR, seen)


def _fields(message: Any, seen: set[str]) -> Iterator[str]:
    if message.full_name in seen or message.file.package.startswith("google."):
        return
    seen.add(message.full_name)
    for field in message.fields:
        yield f"A2A {message.name.removesuffix('Request')}.{field.json_name}"
        if field.message_type:
            yield from _fields(field.message_type, seen)


def _operations() -> Iterator[str]:
    todo: list[Any] = [OperationForm]
    while todo:
        form = todo.pop()
        todo += form.__subclasses__()
        yield from (f"canvas:v1 {to_camel(name)}" for name in form.model_fields)


def _runs() -> Iterator[str]:
    for form in (core.RunAgentInput, core.ResumeEntry, core.Context, core.UserMessage):
        names = {to_camel(name) for name in form.model_fields} - _IGNORED
        yield from (f"AG-UI {form.__name__}.{name}" for name in names)
    older = [form for form in vars(older_form).values() if isinstance(form, type) and hasattr(form, "model_fields")]
    for form in older:
        yield from (f"AG-UI older {to_camel(name)}" for name in form.model_fields)


def _parameters() -> Iterator[str]:
    for reader in _READERS:
        text = (ROOT / "server/protocols" / reader).read_text()
        yield from (f"query {name}" for name in _PARAMETER.findall(text))


def _headers() -> Iterator[str]:
    for path in (ROOT / "server/protocols").rglob("*.py"):
        yield from (f"header {name}" for name in _HEADER.findall(path.read_text()))
