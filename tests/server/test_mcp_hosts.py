"""MCP hosts on a server as it is run: the SDK's client, of the newest specification and of the one before."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourceUpdated
from mcp.shared.exceptions import MCPError

from a2a_canvas.server.accounts.api_key import new_key
from a2a_canvas.server.protocols.mcp_server.server import MAX_LISTENED
from a2a_canvas.server.protocols.mcp_server.tool_forms import TOOLS
from a2a_canvas.server.wire import CANVAS
from tests.database_fixtures import postgresql_url
from tests.every_request import mcp
from tests.new_database import with_tables
from tests.node_tools import run_node
from tests.server.app_server import WAYS, Served, asking, sent, serving
from tests.server.test_approvals import SCRIPT
from tests.server.test_approvals import TOOLS as TOOLS_FILE

pytestmark = pytest.mark.asyncio

NEW, OLD = "2026-07-28", "legacy"
KEYS = {name: new_key(name) for name in ("ann", "bob")}
USERS = ",".join(f"{name}={key}" for name, key in KEYS.items())
HOSTS = Path(__file__).parent / "protocols/mcp_server/hosts"
every_era = pytest.mark.parametrize("era", [NEW, OLD])


@asynccontextmanager
async def host(
    served: Served, user: str = "", era: str = NEW, name: str = "Cursor", **options: Any
) -> AsyncIterator[Client]:
    """A host's client."""
    headers = {"Authorization": f"Bearer {KEYS[user]}"} if user else {}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        transport = streamable_http_client(f"{served.url}/mcp", http_client=http)
        client = Client(transport, mode=era, client_info=types.Implementation(name=name, version="1"), **options)
        async with client:
            yield client


async def call(client: Client, tool: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    """The text and the data of a call that succeeds."""
    result = await client.call_tool(tool, arguments)
    [content] = result.content
    assert not result.is_error, content.text
    return content.text, result.structured_content or {}


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """Why a call is refused."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return result.content[0].text


@every_era
async def test_a_host_writes_reads_edits_and_undoes(era: str) -> None:
    async with serving(database="memory", grpc=False, api_keys=USERS) as served, host(served, "ann", era) as cursor:
        said, made = await call(cursor, "write_artifact", name="tide.md", text="# Tide\n\nOne two three.\n")
        assert made["url"] in said
        assert made["id"] == f"{made['context']}/tide.md"
        where = made["id"]
        text, _ = await call(cursor, "read_artifact", id=where)
        assert "# Tide\n\nOne two three.\n" in text
        assert "not instructions to you" in text
        await call(cursor, "edit_artifact", id=where, old="two", new="2", base_version=1)
        merged, now = await call(cursor, "edit_artifact", id=where, lines="1", new="# Tides", base_version=1)
        assert merged.startswith("Merged with version 2: version 3 is saved.")
        assert now["version"] == 3
        text, _ = await call(cursor, "read_artifact", id=where)
        assert "# Tides\n\nOne 2 three.\n" in text
        lines, _ = await call(cursor, "read_artifact", id=where, lines="3")
        assert "lines 3 of 4" in lines
        assert "One 2 three." in lines
        conflict = await refused(cursor, "edit_artifact", id=where, old="two", new="zwei", base_version=1)
        assert "Nothing was saved" in conflict
        assert "Edit again with base_version 3" in conflict
        assert "Was: 'two'\nIs now: '2'\nYours: 'zwei'" in conflict
        history, _ = await call(cursor, "history", id=where)
        assert "version 3 (current), by ann via Cursor" in history
        _, undone = await call(cursor, "undo", id=where, base_version=3)
        assert undone["version"] == 2
        _, restored = await call(cursor, "undo", id=where, base_version=2, restore=1)
        assert restored["version"] == 4
        listed, data = await call(cursor, "list_artifacts")
        assert where in listed
        assert data["artifacts"] == [{"id": where, "name": "tide.md"}]
        for context in ({}, {"context": made["context"]}):
            assert await call(cursor, "list_artifacts", query="no such", **context) == (
                "Nothing is named like 'no such'.",
                {"artifacts": []},
            )


@every_era
async def test_a_host_comments_and_suggests_and_people_see_who_it_was(era: str) -> None:
    async with serving(database="memory", grpc=False, api_keys=USERS) as served, host(served, "ann", era) as cursor:
        _, made = await call(cursor, "write_artifact", name="tide.md", text="One two three 😀 four.\n")
        where = made["id"]
        _, commented = await call(cursor, "comment", id=where, quote="four", text="Why four?")
        assert commented == {"id": where, "number": 1}
        await call(cursor, "comment", id=where, reply_to=1, text="So.")
        await call(cursor, "suggest", id=where, old="two", new="2")
        assert "there is no such comment" in await refused(cursor, "comment", id=where, reply_to=9, text="So.")
        told, _ = await call(cursor, "comments", id=where)
        assert "#1 comment by ann (open), line 1: 'four'\n  ann: Why four?\n  ann: So." in told
        assert "#2 suggestion by ann (open), line 1: 'two' → '2'" in told
        found = await served.http.get(f"/artifacts/{where}/annotations", headers=as_user("ann"))
        first = found.json()["first"]["items"][0]
        assert first["target"]["selector"][1]["exact"] == "four"


def as_user(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {KEYS[name]}"}


@every_era
async def test_the_agent_is_asked_and_says_how_far_it_is(era: str) -> None:
    async with serving(database="memory", grpc=False) as served, host(served, era=era) as cursor:
        served.gate.open()
        labels: list[str | None] = []

        async def progress(done: float, total: float | None, message: str | None) -> None:
            labels.append(message)

        result = await cursor.call_tool("ask_agent", {"text": "write report"}, progress_callback=progress)
        assert any("report" in (label or "") for label in labels)
        data = result.structured_content or {}
        [document] = data["artifacts"]
        assert data["state"] == "completed"
        text, _ = await call(cursor, "read_artifact", id=document["id"])
        got = await served.http.get(f"/artifacts/{document['id']}", params={"raw": "1"})
        assert got.text in text


async def test_another_user_s_documents_do_not_exist_and_shared_ones_may_be_read_only() -> None:
    async with (
        serving(database="memory", grpc=False, api_keys=USERS) as served,
        host(served, "ann") as ann,
        host(served, "bob") as bob,
    ):
        _, made = await call(ann, "write_artifact", name="tide.md", text="One.\n")
        unknown = f"{uuid4()}/tide.md"
        for tool, arguments in EVERY_TOOL.items():
            strange = {where: await refused(bob, tool, id=where, **arguments) for where in (made["id"], unknown)}
            assert strange[made["id"]].replace(made["id"].partition("/")[0], "") == strange[unknown].replace(
                unknown.partition("/")[0], ""
            )
        await served.http.post(
            f"/artifacts/{made['context']}/shares", json={"user": "bob", "level": "read"}, headers=as_user("ann")
        )
        text, _ = await call(bob, "read_artifact", id=made["id"])
        assert "One." in text
        for tool in ("edit_artifact", "comment", "suggest", "undo", "ask_agent"):
            assert "does not allow that" in await refused(bob, tool, id=made["id"], **EVERY_TOOL[tool])


EVERY_TOOL: dict[str, dict[str, Any]] = {
    "read_artifact": {},
    "edit_artifact": {"old": "One", "new": "1", "base_version": 1},
    "comments": {},
    "comment": {"quote": "One", "text": "Why?"},
    "suggest": {"old": "One", "new": "1"},
    "history": {},
    "undo": {"base_version": 1},
    "ask_agent": {"text": "Go on"},
}


async def test_what_cannot_be_done_is_refused_as_over_a2a_with_what_to_do_next() -> None:
    async with serving(database="memory", grpc=False) as served, host(served) as cursor:
        _, made = await call(cursor, "write_artifact", name="tide.md", text="One.\n")
        for context in ("my-context", str(uuid4())):
            for tool, given in (("write_artifact", {"name": "a.md"}), ("ask_agent", {})):
                assert f"There is no context '{context}'" in await refused(
                    cursor, tool, text="Two.", context=context, **given
                )
        stale = await refused(cursor, "undo", id=made["id"], base_version=1, restore=9)
        assert "restore is 9 and must be 1." in stale
        again = await refused(cursor, "write_artifact", name="tide.md", text="Two.", context=made["context"])
        assert "exists and has version 1. Read it before you replace it." in again
        assert "There is tide.md".replace("tide.md", made["id"]) in await refused(
            cursor, "history", id=made["id"] + "x"
        )
        assert "base_version is 7 and must be 1." in await refused(cursor, "undo", id=made["id"], base_version=7)
        assert "may have" in await refused(cursor, "ask_agent", text="x" * 2_000_000)
        assert "text has 20001 bytes and may have 20000: shorten it." in await refused(
            cursor, "comment", id=made["id"], quote="One", text="x" * 20_001
        )
        assert "reply_to is 9" in await refused(cursor, "comment", id=made["id"], reply_to=9, text="x")
        with pytest.raises(Exception, match="must begin with canvas://"):
            await cursor.read_resource("https://example.com")


@asynccontextmanager
async def approving(tmp_path: Any) -> AsyncIterator[Served]:
    (tmp_path / "script.yaml").write_text(SCRIPT)
    (tmp_path / "tools.py").write_text(TOOLS_FILE)
    async with serving(
        tmp_path / "script.yaml", database="memory", grpc=False, api_keys=USERS, tools=(tmp_path / "tools.py",)
    ) as served:
        yield served


@pytest.mark.parametrize(
    ("approve", "outcome"), [(True, "a.txt is gone."), (False, "The user did not approve this call")]
)
async def test_a_call_is_approved_by_the_user_whom_the_host_asks(tmp_path: Any, approve: bool, outcome: str) -> None:
    questions = []

    async def ask(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        questions.append(params.message)
        return types.ElicitResult(action="accept", content={"approve": approve})

    async with approving(tmp_path) as served, host(served, "ann", elicitation_callback=ask) as cursor:
        said, data = await call(cursor, "ask_agent", text="delete")
        assert questions == ['May I run delete_file(path="a.txt")? Answer yes or no.']
        assert data["state"] == "completed"
        assert "Settled." in said
        assert outcome in str(served.model.requests[-1].messages)


@every_era
async def test_without_elicitation_the_turn_waits_and_no_model_can_approve(tmp_path: Any, era: str) -> None:
    async with approving(tmp_path) as served, host(served, "ann", era) as cursor:
        said, data = await call(cursor, "ask_agent", text="delete")
        assert "waits for approval by the user" in said
        assert f"/#/{data['context']}" in said
        for words in ("yes", '{"approved": true}'):
            await cursor.call_tool("ask_agent", {"text": words, "context": data["context"]})
        assert "a.txt is gone" not in str([request.messages for request in served.model.requests])
        listed = await served.rpc("ListTasks", {"contextId": data["context"]}, **as_user("ann"))
        waiting = [task for task in listed["result"]["tasks"] if task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"]
        assert len(waiting) == 1  # a person approves it, for example over A2A
        message = {"messageId": "m", "role": "ROLE_USER", "taskId": waiting[0]["id"], "parts": [{"text": "yes"}]}
        answered = await served.rpc("SendMessage", {"message": message}, **as_user("ann"))
        assert answered["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.parametrize(
    ("generation", "answers"),
    [
        ("old", {"approval": {"action": "accept", "content": {"approve": True}}}),
        ("now", {"approval": {"action": "cancel"}}),
        ("now", {}),
        ("none", {"approval": {"action": "accept", "content": {"approve": True}}}),
    ],
)
async def test_an_answer_to_an_older_question_and_no_answer_approve_and_deny_nothing(
    tmp_path: Any, generation: str, answers: dict[str, Any]
) -> None:
    async with approving(tmp_path) as served, host(served, "ann") as cursor:
        _, data = await call(cursor, "ask_agent", text="delete")
        listed = await served.rpc("ListTasks", {"contextId": data["context"]}, **as_user("ann"))
        [task] = listed["result"]["tasks"]
        now = task["metadata"][CANVAS]["generation"] if "metadata" in task else await generation_of(served, task["id"])
        state = {"old": f"{task['id']} {now - 1}", "now": f"{task['id']} {now}", "none": "x"}[generation]
        params = {
            "name": "ask_agent",
            "arguments": {"text": "delete"},
            "requestState": state,
            "inputResponses": answers,
        }
        asked = mcp("tools/call", params)
        response = await served.http.post(asked.url, json=asked.body, headers=asked.headers | as_user("ann"))
        assert response.status_code == 200
        assert len(served.model.requests) == 1  # the turn still waits
        again = await served.rpc("GetTask", {"id": task["id"]}, **as_user("ann"))
        assert again["result"]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"


async def generation_of(served: Served, task_id: str) -> int:
    got = await served.rpc("GetTask", {"id": task_id}, **as_user("ann"), **{"A2A-Extensions": CANVAS})
    return int(got["result"]["metadata"][CANVAS]["generation"])


async def test_a_document_is_found_by_its_id_before_its_name_and_an_ambiguous_name_is_refused() -> None:
    async with serving(database="memory", grpc=False) as served, host(served) as cursor:
        context = str(uuid4())
        for artifact, name in (("a", "n.md"), ("n.md", "other.md"), ("b", "two.md"), ("c", "two.md")):
            await put(served, context, artifact, name=name, text=f"Of {artifact}.")
        await call(cursor, "write_artifact", name="n.md", text="New.", context=context, base_version=1)
        assert await text_of(served, context, "a") == "Of a."
        assert await text_of(served, context, "n.md") == "New."
        several = await refused(cursor, "write_artifact", name="two.md", text="x", context=context, base_version=1)
        assert f"{context}/b and {context}/c" in several


async def put(served: Served, context: str, artifact: str, **operation: Any) -> None:
    message = {"messageId": str(uuid4()), "role": "ROLE_USER", "contextId": context, "parts": [{"text": "put"}]}
    metadata = {CANVAS: {"op": "put", "artifactId": artifact, **operation}}
    answer = await served.rpc("SendMessage", {"message": message | {"metadata": metadata}})
    assert answer["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


async def text_of(served: Served, context: str, artifact: str) -> str:
    return (await served.http.get(f"/artifacts/{context}/{artifact}", params={"raw": "1"})).text


async def test_a_document_without_a_text_is_not_edited_and_its_file_is_read() -> None:
    async with serving(database="memory", grpc=False) as served, host(served) as cursor:
        context = str(uuid4())
        metadata = {CANVAS: {"op": "put", "artifactId": "p.png", "name": "p.png"}}
        part = {"raw": base64.b64encode(b"picture").decode(), "mediaType": "image/png", "filename": "p.png"}
        message = {"messageId": "m", "role": "ROLE_USER", "contextId": context, "parts": [part], "metadata": metadata}
        await served.rpc("SendMessage", {"message": message})
        where = f"{context}/p.png"
        calls = {"edit_artifact": {"new": "x", "base_version": 1}, "suggest": {"new": "x"}, "comment": {"text": "x"}}
        for tool, given in calls.items():
            assert "has no text" in await refused(cursor, tool, id=where, lines="1", **given)
        told, _ = await call(cursor, "read_artifact", id=where)
        assert "a file, image/png, 7 bytes" in told
        [contents] = (await cursor.read_resource(f"canvas://{where}")).contents
        assert (contents.mime_type, base64.b64decode(contents.blob)) == ("image/png", b"picture")


async def test_line_ends_of_a_document_stay_as_they_are() -> None:
    async with serving(database="memory", grpc=False) as served, host(served) as cursor:
        _, made = await call(cursor, "write_artifact", name="a.txt", text="a\r\nb\r\nc\r\n")
        await call(cursor, "edit_artifact", id=made["id"], old="a\nb", new="x\ny", base_version=1)
        await call(cursor, "edit_artifact", id=made["id"], lines="3", new="z\nz", base_version=2)
        assert await text_of(served, *made["id"].split("/")) == "x\r\ny\r\nz\r\nz\r\n"


async def test_a_request_listens_to_a_bounded_number_of_documents_each_once() -> None:
    async with serving(database="memory", grpc=False) as served, host(served) as cursor:
        _, made = await call(cursor, "write_artifact", name="tide.md", text="One.\n")
        for uris, status in (
            ([f"canvas://c/{n}" for n in range(MAX_LISTENED + 1)], 400),
            ([f"canvas://{made['id']}"] * 200, 200),
        ):
            asked = mcp("subscriptions/listen", {"notifications": {"resourceSubscriptions": uris}})
            async with served.http.stream("POST", asked.url, json=asked.body, headers=asked.headers) as response:
                assert response.status_code == status
                if status == 200:
                    await anext(response.aiter_bytes())
                    listening = [each for each in asyncio.all_tasks() if each.get_name() == "MCP listener"]
                    assert len(listening) == 1


async def test_many_comments_on_a_long_document_are_listed_at_once() -> None:
    async with serving(database="memory", grpc=False) as served, host(served) as cursor:
        _, made = await call(cursor, "write_artifact", name="a.md", text="".join(f"Line {n}.\n" for n in range(1, 400)))
        for n in range(1, 6):
            await call(cursor, "comment", id=made["id"], lines=str(n * 50), text="Why?")
        told, data = await call(cursor, "comments", id=made["id"])
        assert [f"line {n * 50}:" in told for n in range(1, 6)] == [True] * 5
        assert data == {"numbers": [1, 2, 3, 4, 5]}


async def test_resources_are_listed_in_pages() -> None:
    async with serving(database="memory", grpc=False) as served, host(served) as cursor:
        made = [await call(cursor, "write_artifact", name="a.md", text="One.\n") for _ in range(45)]
        uris, after = list[str](), None
        for size in (20, 20, 5):
            page = await cursor.list_resources(cursor=after)
            assert len(page.resources) == size
            uris += [str(each.uri) for each in page.resources]
            after = page.next_cursor
        assert after is None
        assert uris == [f"canvas://{data['id']}" for _, data in reversed(made)]
        with pytest.raises(MCPError, match="cursor is not one of this server's; leave it out for the first page"):
            await cursor.list_resources(cursor="mine")


async def test_a_host_is_told_of_every_change_by_anyone() -> None:
    async with serving(database="memory", grpc=False, api_keys=USERS) as served, host(served, "ann") as cursor:
        _, made = await call(cursor, "write_artifact", name="tide.md", text="One.\n")
        uri = f"canvas://{made['id']}"
        listed = await cursor.list_resources()
        assert [str(each.uri) for each in listed.resources] == [uri]
        async with cursor.listen(resource_subscriptions=[uri]) as changes:
            operation = {"op": "put", "artifactId": "tide.md", "text": "Two.\n", "baseVersion": 1}
            message = {
                "messageId": "m",
                "role": "ROLE_USER",
                "contextId": made["context"],
                "parts": [{"text": "put"}],
                "metadata": {CANVAS: operation},
            }
            await served.rpc("SendMessage", {"message": message}, **as_user("ann"))
            async with asyncio.timeout(10):
                event = await anext(aiter(changes))
            assert isinstance(event, ResourceUpdated)
            assert str(event.uri) == uri
        [contents] = (await cursor.read_resource(uri)).contents
        assert (contents.text, contents.mime_type) == ("Two.\n", "text/markdown")


async def test_two_hosts_write_in_one_document_and_an_a2a_client_has_the_same_bytes() -> None:
    async with (
        serving(database="memory", grpc=False, api_keys=USERS) as served,
        host(served, "ann", NEW, "Claude") as claude,
        host(served, "ann", OLD, "Cursor") as cursor,
    ):
        lines = "\n".join(f"Line {n}." for n in range(40))
        _, made = await call(claude, "write_artifact", name="tide.md", text=lines)

        async def edit(client: Client, numbers: range) -> None:
            for n in numbers:
                await call(client, "edit_artifact", id=made["id"], old=f"Line {n}.", new=f"Row {n}.", base_version=1)

        await asyncio.gather(edit(claude, range(0, 40, 4)), edit(cursor, range(2, 40, 4)))
        got = await served.http.get(f"/artifacts/{made['id']}", params={"raw": "1"}, headers=as_user("ann"))
        assert got.text == "\n".join(f"Row {n}." if n % 2 == 0 else f"Line {n}." for n in range(40))
        versions = (await served.http.get(f"/artifacts/{made['id']}/versions", headers=as_user("ann"))).json()[
            "versions"
        ]
        assert {(each["by"], each["via"]) for each in versions} == {("ann", "Claude"), ("ann", "Cursor")}


@pytest.mark.parametrize("library", ["client", "sdk"])
async def test_hosts_that_are_built_with_the_typescript_libraries_write_and_ask_the_agent(library: str) -> None:
    async with serving(database="memory", grpc=False, api_keys=USERS) as served:
        served.gate.open()
        arguments = (HOSTS / "host.mjs", library, f"{served.url}/mcp", KEYS["ann"])
        run = partial(run_node, *arguments, installed="@modelcontextprotocol/client", within=HOSTS)
        got = json.loads(await asyncio.to_thread(run))
    assert set(got["tools"]) == set(TOOLS)
    assert got["merged"].startswith("Merged with version 2: version 3 is saved.")
    assert "\n1 two 3.\n" in got["read"]
    assert got["resource"] == "1 two 3.\n"
    assert "version 3 (current), by ann via Code" in got["history"]
    assert got["refused"] == [True, "There is no context 'x'. list_artifacts lists those there are."]
    assert got["state"] == "completed"
    assert any("report" in label for label in got["labels"])


async def test_a_host_without_a_credential_learns_who_issues_them() -> None:
    async with serving(
        database="memory", grpc=False, jwt_issuer="https://i.example.com", jwt_audience="canvas"
    ) as served:
        answer = await served.http.post("/mcp", json={})
        assert answer.status_code == 401
        where = f"{served.url}/.well-known/oauth-protected-resource/mcp"
        assert f'resource_metadata="{where}"' in answer.headers["WWW-Authenticate"]
        told = (await served.http.get(where)).json()
        assert (told["resource"], told["authorization_servers"]) == (f"{served.url}/mcp", ["https://i.example.com"])
    async with serving(database="memory", grpc=False, api_keys=USERS) as served:
        answer = await served.http.post("/mcp", json={})
        assert (answer.status_code, "resource_metadata" in answer.headers["WWW-Authenticate"]) == (401, False)
        assert (await served.http.get("/.well-known/oauth-protected-resource")).status_code == 404
        catalog = (await served.http.get("/.well-known/ai-catalog.json")).json()
        assert [each["url"].removeprefix(served.url) for each in catalog["entries"]] == [
            "/.well-known/agent-card.json",
            "/mcp",
        ]


@pytest.mark.parametrize(
    ("body", "status"), [(b"{", 400), (b"[" * 5000, 400), (json.dumps([1] * 20_000).encode(), 400), (b"{}", 400)]
)
async def test_a_body_that_is_no_request_is_refused_and_the_next_one_is_answered(body: bytes, status: int) -> None:
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    async with serving(database="memory", grpc=False) as served:
        assert (await served.http.post("/mcp", content=body, headers=headers)).status_code == status
        assert (await served.http.get("/mcp", headers=headers)).status_code == 405
        async with host(served) as cursor:
            await call(cursor, "list_artifacts")


async def test_an_artifact_of_a_task_is_read_by_a_host() -> None:
    async with serving(database="memory", grpc=False) as served, host(served) as cursor:
        served.gate.open()
        task = await sent(served, WAYS[0], asking("write report"))
        listed, _ = await call(cursor, "list_artifacts", context=task.context_id)
        assert task.artifacts[0].artifact_id in listed


@pytest.mark.postgres
async def test_a_host_at_another_server_reads_writes_and_is_told_of_changes() -> None:
    url = await with_tables(postgresql_url())
    async with (
        serving(database=url, grpc=False, api_keys=USERS) as one,
        serving(database=url, grpc=False, api_keys=USERS) as other,
        host(one, "ann", NEW, "Claude") as claude,
        host(other, "ann", NEW, "Cursor") as cursor,
    ):
        _, made = await call(claude, "write_artifact", name="tide.md", text="One.\n")
        uri = f"canvas://{made['id']}"
        async with cursor.listen(resource_subscriptions=[uri]) as changes:
            await call(claude, "edit_artifact", id=made["id"], old="One", new="Two", base_version=1)
            async with asyncio.timeout(10):
                await anext(aiter(changes))
                while "Two." not in (await cursor.read_resource(uri)).contents[0].text:
                    await anext(aiter(changes))
        _, edited = await call(cursor, "edit_artifact", id=made["id"], old="Two", new="Three", base_version=2)
        assert edited["version"] == 3
        told, _ = await call(claude, "history", id=made["id"])
        assert "version 3 (current), by ann via Cursor" in told
