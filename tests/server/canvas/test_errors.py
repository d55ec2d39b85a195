"""Each code of the server has words of the page, or those of the server are shown (errors.test.mjs)."""

from __future__ import annotations

import re

from a2a.utils.errors import A2A_ERROR_MAPPING, JSON_RPC_ERROR_CODE_MAP

import a2a_canvas.server.app  # noqa: F401  (it enters the errors of this server)
from a2a_canvas.server.protocols.edge.error_tables import rpc_code
from tests.node_tools import ROOT

OF_THE_ROUTER = {405, 406, 421}


def test_every_code_of_the_server_has_its_words() -> None:
    tables = [(ROOT / path).read_text() for path in ("server/canvas/errors.js", "tests/server/canvas/errors.test.mjs")]
    known = {int(each) for text in tables for each in re.findall(r"-?\b\d{3,5}\b", text)}
    kinds = {*A2A_ERROR_MAPPING, *JSON_RPC_ERROR_CODE_MAP}
    codes = {rpc_code(kind) for kind in kinds} | {each.http_code for each in A2A_ERROR_MAPPING.values()}
    assert codes | OF_THE_ROUTER <= known
