"""Who answers what a task waits for: an approval, a question, a login; at each level, with links, over each binding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from a2a.client import A2AClientError, ClientCallContext
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import A2AError

from a2a_canvas.server.accounts.api_key import new_key
from tests.server.app_server import WAYS, Served, agent_options, asking, every_way, said

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEYS = {name: new_key(name) for name in ("ann", "approver", "editor", "reader")}
TOOLS = '''
from a2a_canvas import Canvas, tool


@tool(approval="ask")
async def publish(version: str, canvas: Canvas) -> str:
    """Publishes."""
    return f"published for {canvas.caller}"


@tool
async def choose(canvas: Canvas) -> str:
    """Lets the user choose."""
    return await canvas.ask("Which?")


@tool
async def log_in(canvas: Canvas) -> str:
    """Logs in."""
    await canvas.ask("Your code?", authentication=True)
    return f"{canvas.caller} is known"
'''
SCRIPT = """
rules:
  - match: {text: '^approval$'}
    rounds:
      - {tools: [{name: publish, input: {version: "1.0"}}]}
      - {text: "Settled."}
  - match: {text: '^question$'}
    rounds:
      - {tools: [{name: choose, input: {}}]}
      - {text: "Settled."}
  - match: {text: '^login$'}
    rounds:
      - {tools: [{name: log_in, input: {}}]}
      - {text: "Settled."}
  - match: {text: '.*'}
    rounds: [{text: "Said."}]
"""
KINDS = ("approval", "question", "login")
ASKERS = ("ann", "editor", "link to edit")
ASKED = [(kind, asker) for kind in KINDS for asker in (ASKERS if kind == "login" else ASKERS[:2])]
CALLERS = (*KEYS, "link to read", "link to edit", "link to approve")
READERS = ("reader", "link to read")
APPROVERS = ("ann", "approver", "link to approve")


@pytest.fixture(scope="module")
def app_options(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("agent")
    return agent_options(folder, SCRIPT, TOOLS, KEYS) | {"database": "memory"}


def answerers(kind: str, asker: str) -> tuple[str, ...]:
    """Who may answer."""
    match kind:
        case "approval":
            return APPROVERS
        case "login":
            return (asker,)
        case _:
            return tuple(each for each in CALLERS if each not in READERS)


def is_refusal(answer: str, reason: str, way: tuple[str, str]) -> bool:
    """Whether a caller may not do that. Over HTTP+JSON the SDK's client shows only the status."""
    return (reason if way[0] != "HTTP+JSON" else "403 Forbidden") in answer


@dataclass(frozen=True)
class Conversation:
    """A context of ann's that is shared at each level, with users and by links."""

    served: Served
    context: str
    tokens: dict[str, str]
    names: dict[str, str]

    def credentials(self, who: str) -> ClientCallContext:
        return ClientCallContext(service_parameters={"Authorization": f"Bearer {self.tokens[who]}"})

    async def send(self, who: str, text: str, task: str = "", way: tuple[str, str] = WAYS[0]) -> pb.Task | str:
        """The task that took the message, or why none did."""
        client = self.served.client(*way, streaming=False)
        request = asking(text, context=self.context, task=task)
        try:
            [event] = [each async for each in client.send_message(request, context=self.credentials(who))]
        except (A2AError, A2AClientError) as error:
            return str(error)
        return event.task

    async def begun(self, who: str, text: str) -> pb.Task:
        task = await self.send(who, text)
        assert isinstance(task, pb.Task)
        return task

    async def task(self, task_id: str) -> pb.Task:
        return await self.served.client().get_task(pb.GetTaskRequest(id=task_id), context=self.credentials("ann"))

    async def cancel(self, who: str, task_id: str) -> pb.Task:
        request = pb.CancelTaskRequest(id=task_id)
        return await self.served.client().cancel_task(request, context=self.credentials(who))


async def shared(served: Served, context: str) -> Conversation:
    served.gate.open()
    found = Conversation(served, context, dict(KEYS), {name: name for name in KEYS})
    await found.begun("ann", "hello")
    levels = {"approve": "approver", "edit": "editor", "read": "reader"}
    for level, user in levels.items():
        for given in ({"user": user}, {"link": True}):
            made = await served.http.post(
                f"/artifacts/{context}/shares",
                json={**given, "level": level},
                headers={"Authorization": f"Bearer {KEYS['ann']}"},
            )
            assert made.status_code == 201, made.text
            share = made.json()
            if "token" in share:
                found.tokens[f"link to {level}"] = share["token"]
                found.names[f"link to {level}"] = f"link {share['shareId']}"
    return found


@pytest.mark.parametrize(("kind", "asker"), ASKED, ids="-".join)
@every_way
async def test_an_answer_to_the_task_is_taken_from_whom_it_waits_for(
    served: Served, context: str, way: tuple[str, str], kind: str, asker: str
) -> None:
    there = await shared(served, context)
    for who in CALLERS:
        waiting = await there.begun(asker, kind)
        answer = await there.send(who, "yes", waiting.id, way)
        if who in answerers(kind, asker):
            assert isinstance(answer, pb.Task), (who, answer)
            assert (answer.id, said(answer.status)) == (waiting.id, "Settled.")
        else:
            assert isinstance(answer, str), who
            assert is_refusal(
                answer, "Your share of this context does not allow that" if who in READERS else "waits for", way
            )
            assert await there.task(waiting.id) == waiting
            await there.cancel("ann", waiting.id)


@pytest.mark.parametrize(("kind", "asker"), ASKED, ids="-".join)
@every_way
async def test_without_a_task_the_message_of_another_begins_one_of_its_own(
    served: Served, context: str, way: tuple[str, str], kind: str, asker: str
) -> None:
    there = await shared(served, context)
    for who in CALLERS:
        waiting = await there.begun(asker, kind)
        answer = await there.send(who, "yes", way=way)
        if who in READERS:
            assert is_refusal(str(answer), "Your share of this context does not allow that", way)
        else:
            assert isinstance(answer, pb.Task), (who, answer)
            taken = (waiting.id, "Settled.") == (answer.id, said(answer.status))
            own = answer.id != waiting.id and said(answer.status) == "Said."
            assert taken if who in answerers(kind, asker) else own, who
        if who not in answerers(kind, asker):
            assert await there.task(waiting.id) == waiting
            await there.cancel("ann", waiting.id)


@pytest.mark.parametrize("asker", ASKERS)
async def test_a_request_for_approval_says_whom_it_waits_for(served: Served, context: str, asker: str) -> None:
    there = await shared(served, context)
    question = said((await there.begun(asker, "approval")).status)
    if asker == "ann":
        assert question == 'May I run publish(version="1.0")? Answer yes or no.'
    else:
        assert question.startswith(
            f'May I run publish(version="1.0") for {there.names[asker]}? This waits for the owner'
        )


@pytest.mark.parametrize("asker", ASKERS)
async def test_a_login_says_for_whom_it_is(served: Served, context: str, asker: str) -> None:
    there = await shared(served, context)
    assert said((await there.begun(asker, "login")).status) == f"For {there.names[asker]}: Your code?"


async def test_a_call_that_another_has_approved_runs_for_the_caller_who_made_it(served: Served, context: str) -> None:
    there = await shared(served, context)
    waiting = await there.begun("editor", "approval")
    await there.send("ann", "yes", waiting.id)
    assert "published for editor" in str(served.model.requests[-1].messages)


async def test_who_may_not_answer_may_still_cancel(served: Served, context: str) -> None:
    there = await shared(served, context)
    for kind in KINDS:
        waiting = await there.begun("link to edit", kind)
        assert (await there.cancel("editor", waiting.id)).status.state == pb.TASK_STATE_CANCELED


async def test_the_answer_of_another_is_forbidden_over_http(served: Served, context: str) -> None:
    there = await shared(served, context)
    waiting = await there.begun("ann", "approval")
    message = {"messageId": "m", "role": "ROLE_USER", "taskId": waiting.id, "parts": [{"text": "yes"}]}
    for who, status in (("editor", 403), ("link to edit", 403), ("approver", 200)):
        answer = await served.http.post(
            "/rest/message:send",
            json={"message": message},
            headers={"Authorization": f"Bearer {there.tokens[who]}", "A2A-Version": "1.0"},
        )
        assert answer.status_code == status, answer.text


@pytest.mark.parametrize("status", ["resolved", "cancelled"])
async def test_so_is_it_in_ag_ui_where_an_interrupt_can_be_cancelled(served: Served, context: str, status: str) -> None:
    there = await shared(served, context)
    waiting = await there.begun("ann", "approval")
    body = {"threadId": context, "runId": "r", "messages": []}
    resume = [{"interruptId": waiting.id, "status": status, "payload": "yes"}]
    headers = {"Authorization": f"Bearer {there.tokens['link to edit']}"}
    answer = await served.http.post("/canvas/stream", json=body | {"resume": resume}, headers=headers)
    left = (await there.task(waiting.id)).status.state
    if status == "resolved":
        assert (answer.status_code, left) == (403, waiting.status.state)
    else:
        assert (answer.status_code, left) == (200, pb.TASK_STATE_CANCELED)
