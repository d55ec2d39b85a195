"""What a caller can send to the server, found in the code: routes, parameters, headers, and fields of every request.

Rule 1: an entrance is a line such as `A2A Part.text`, `canvas:v1 selection`, `AG-UI messages`, `MCP undo.id`,
        `query raw` or `route POST /`. A2A 0.3 has none of its own: its requests are converted to these, and checked as
        such.
Rule 2: only what the server reads is one. What it ignores is bounded by the limits of the whole request.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from ag_ui import core
from pydantic.alias_generators import to_camel

from a2a_canvas.server.agent.operation_forms import OperationForm
from a2a_canvas.server.app import create_app
from a2a_canvas.server.protocols.agui.older import older_form
from a2a_canvas.server.protocols.guard.calls import REQUESTS
from a2a_canvas.server.protocols.mcp_server.tool_forms import TOOLS
from a2a_canvas.server.settings.settings import Settings
from a2a_canvas.server.wire import VERSION_HEADER
from tests.docs.pages import ROOT

_PROTOCOLS = ROOT / "server/protocols"
_READ = {
    "header": re.compile(r"(.*\.)?headers|Headers\(scope=scope\)"),
    "query": re.compile(r"(.*\.)?(query_params|request_params|query)"),
    "body": re.compile("body"),
}
"""What values are read from, by what they are: the code before `.get("name")`, `["name"]` or after `"name" in`."""
_PASSED = {
    "header name": ("header a2a-extensions", "header x-a2a-extensions", "header accept", "header accept-encoding"),
    "body resume": (),
}
"""What a name stands for that is a parameter of the function that reads; a field of a run of AG-UI is one already."""
_ELSEWHERE = (
    "header x-forwarded-for",
    "header x-forwarded-proto",
    f"query {VERSION_HEADER.lower()}",
    "query signature",
)
"""What is read by uvicorn, or found by comparing: in origins.py, http_pipeline.py and browser_sessions.py."""
_IGNORED = {"protocolVersion", "parentRunId", "tools", "encryptedValue", "subagentRunId"}
"""Of a run of AG-UI."""


def entrances() -> list[str]:
    """All of them, sorted."""
    found = {*_routes(), *_a2a(), *_operations(), *_runs(), *_tools(), *_read(), *_ELSEWHERE}
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


def _tools() -> Iterator[str]:
    yield from (f"MCP {tool}.{name}" for tool, form in TOOLS.items() for name in form.model_fields)
    yield from ("MCP clientInfo", "MCP inputResponses", "MCP requestState", "MCP uri")


def _read() -> Iterator[str]:
    for path in _PROTOCOLS.rglob("*.py"):
        module = ".".join(("a2a_canvas", *path.relative_to(ROOT).with_suffix("").parts))
        yield from read_by(path.read_text(), module)


def read_by(code: str, module: str) -> Iterator[str]:
    """The headers, parameters and members of a body that the code of a module reads."""
    for source, name in _lookups(ast.parse(code)):
        kind = next((kind for kind, of in _READ.items() if of.fullmatch(ast.unparse(source))), None)
        if kind:
            yield from _named(kind, name, module)


def _lookups(tree: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What is looked up by a name, and the name."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=source, attr="get" | "getlist"), args=[name, *_]):
                yield source, name
            case ast.Subscript(value=source, slice=name, ctx=ast.Load()):
                yield source, name
            case ast.Compare(left=name, ops=[ast.In() | ast.NotIn()], comparators=[source]):
                yield source, name


def _named(kind: str, name: ast.expr, module: str) -> Iterator[str]:
    """The entrances of a name: a literal, a constant of its module, or what it stands for."""
    text = ast.unparse(name)
    value = ast.literal_eval(name) if isinstance(name, ast.Constant) else getattr(import_module(module), text, None)
    known = f"{kind} {value.lower() if kind == 'header' else value}" if isinstance(value, str) else ""
    yield from _PASSED.get(known or f"{kind} {text}", (known or f"{kind} {text} in {module}",))
