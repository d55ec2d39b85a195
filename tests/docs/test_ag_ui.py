"""docs/ag-ui.md: its requests are runs, and the state has the fields shown."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tests.docs.curl import Curl
from tests.docs.pages import ADDRESS, blocks, page, section

PAGE = page("ag-ui")
ASK = {"id": "q", "role": "user", "content": "Ask me my name"}
WRITE = {"id": "w", "role": "user", "content": "Write an outline about tide pools"}


def post_run(address: str, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    answer = Curl(f"{ADDRESS}/canvas/stream", {"Content-Type": "application/json"}, json.dumps(body)).send(address)
    assert answer.status == 200, answer.text
    return answer.events


def test_every_request_in_json_is_a_run(address: str) -> None:
    asked = post_run(address, {"threadId": "pools", "runId": "run-0", "messages": [ASK]})[-1]
    [interrupt] = asked["outcome"]["interrupts"]
    requests = [block for block in blocks(PAGE, "json") if re.search('"(threadId|thread_id)"', block)]
    assert len(requests) == 3
    post_run(address, {"threadId": "reef", "runId": "run-1", "messages": [WRITE]})
    for request in reversed(requests):
        run = post_run(address, json.loads(request.replace("TASK_ID", interrupt["id"])))
        assert run[-1]["outcome"] == {"type": "success"}


def test_the_state_has_the_fields_shown(address: str) -> None:
    state, older = (
        json.loads(blocks(section(PAGE, heading), "json")[at])
        for heading, at in (("The state", 0), ("Legacy requests", 1))
    )
    post_run(address, {"threadId": "state", "runId": "r", "messages": [WRITE]})
    [begun] = [
        event["snapshot"]
        for event in post_run(address, {"thread_id": "state", "message": "Hello"})
        if "snapshot" in event
    ]
    assert begun.keys() == state.keys() | older.keys()
    [shown], [artifact] = state["artifacts"].values(), begun["artifacts"].values()
    assert artifact.keys() == shown.keys()
    assert artifact["versions"] == shown["versions"]
    assert artifact["parts"][0].keys() == shown["parts"][0].keys()
    assert begun["artifact"].keys() == older["artifact"].keys()
    assert begun["artifact"]["contents"][0].keys() - {"fullMarkdown"} == older["artifact"]["contents"][0].keys() - {
        "code"
    }
