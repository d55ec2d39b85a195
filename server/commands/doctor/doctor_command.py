"""`a2a-canvas doctor`: runs the checks and prints their findings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, TextIO

from a2a_canvas.server.commands.doctor.findings import Finding, as_json, as_lines, exit_code, failure, ok
from a2a_canvas.server.commands.doctor.local_checks import (
    check_broker,
    check_database,
    check_issuer,
    check_model,
    check_open_files,
    check_ports,
)
from a2a_canvas.server.commands.doctor.remote_checks import check_outside
from a2a_canvas.server.settings.settings import SettingsError, load
from a2a_canvas.server.settings.value_types import without_password


async def doctor_command(
    values: Mapping[str, Any],
    out: TextIO,
    *,
    url: str = "",
    grpc_url: str = "",
    token: str = "",
    model_call: bool = True,
    json: bool = False,
) -> int:
    """Check a server's environment, and how the server at `url` looks to clients.

    Args:
        values: the options of the command line, as `load` takes them.
        url: where clients find the server; empty for no check from outside.
        grpc_url: where they find gRPC; empty for the address in the card at `url`.
        token: sent as a client would.
        model_call: whether the model is called.
        json: write one JSON object.
    """
    findings = [each async for each in _here(values, model_call)]
    if url:
        findings += [each async for each in check_outside(url, token, grpc_url)]
    out.writelines(f"{line}\n" for line in ([as_json(findings)] if json else as_lines(findings)))
    return exit_code(findings)


async def _here(values: Mapping[str, Any], model_call: bool) -> AsyncIterator[Finding]:
    try:
        settings = load(values)
    except SettingsError as error:
        yield failure("settings", str(error))
        return
    yield ok("settings", f"The settings are valid; the database is {without_password(settings.database)}.")
    of_model = check_model(settings, call=model_call)
    of_data = check_database(settings), check_broker(settings)
    for findings in (of_model, *of_data, check_issuer(settings), check_ports(settings)):
        async for finding in findings:
            yield finding
    yield check_open_files(settings)
