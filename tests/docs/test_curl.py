"""Every curl command of the pages is answered as its page says. They are sent in the order of the pages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.docs.curl import Answer, Curl, Sent, curls, send_all
from tests.docs.pages import page

PAGES_WITH_CURL = {name: page(name) for name in ("a2a", "editing", "artifacts", "ag-ui")}
CURLS = [(name, curl) for name, text in PAGES_WITH_CURL.items() for curl in curls(text)]


@pytest.fixture(scope="module")
def sent(address: str) -> Sent:
    return send_all(address, [curl for _, curl in CURLS])


@pytest.mark.parametrize(
    "number", range(len(CURLS)), ids=[f"{name}-{number}-{curl.path}" for number, (name, curl) in enumerate(CURLS)]
)
def test_every_curl_command_is_answered(number: int, sent: Sent) -> None:
    curl, answer = sent[number]
    if "If-None-Match" in curl.headers:
        assert (answer.status, answer.text) == (304, "")
        return
    if curl.path.endswith("/presence"):
        assert (answer.status, answer.text) == (204, "")
        return
    assert answer.status == 200, answer.text
    if curl.path.startswith("/artifacts"):
        assert answer.text
    elif curl.path == "/canvas/stream":
        assert answer.events[0]["type"] == "RUN_STARTED"
        assert answer.events[-1]["outcome"] == {"type": "success"}
    elif "tream" in curl.url + curl.body:
        assert_completed_stream(answer)
    else:
        [result] = answer.results
        assert_result(curl, result)


def assert_result(curl: Curl, result: dict[str, Any]) -> None:
    """The answer to a request without a stream, over either binding."""
    call = json.loads(curl.body) if curl.path == "/" else {}
    match call.get("method") or curl.path.rpartition("/")[0]:
        case "SendMessage" | "/rest":
            assert result["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
        case "GetTask" | "/rest/tasks":
            assert result["id"] == (call["params"]["id"] if call else curl.path.rpartition("/")[2])
            assert result["status"]["state"] == "TASK_STATE_COMPLETED"
        case "ListTasks":
            assert 0 < len(result["tasks"]) <= call["params"]["pageSize"]
        case other:
            pytest.fail(f"no check for {other}")


def assert_completed_stream(answer: Answer) -> None:
    assert "task" in answer.results[0]
    assert answer.results[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert any("artifactUpdate" in event for event in answer.results)


def test_the_curl_commands_use_every_binding_of_http_and_its_methods() -> None:
    every = [curl for _, curl in CURLS]
    methods = {json.loads(curl.body)["method"] for curl in every if curl.path == "/"}
    assert methods == {"SendMessage", "SendStreamingMessage", "GetTask", "ListTasks"}
    paths = {curl.path for curl in every}
    assert {"/", "/rest/message:stream", "/rest/message:send", "/rest/tasks/TASK_ID", "/canvas/stream"} <= paths


def test_each_page_has_its_requests() -> None:
    assert all(curls(text) for text in PAGES_WITH_CURL.values())
    assert [type(curl) for _, curl in CURLS] == [Curl] * len(CURLS)
