"""What callers with a share may do with comments and suggestions: at each level, each operation, over each binding."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest
from a2a.client import A2AClientError, ClientCallContext
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import A2AError

from a2a_canvas.server.accounts.api_key import new_key
from tests.server.app_server import WAYS, Served, Way
from tests.server.canvas_client import CANVAS, with_metadata

pytestmark = pytest.mark.asyncio(loop_scope="module")

Json = dict[str, Any]
KEYS = {name: new_key(name) for name in ("ann", "bob")}
NAME = "a2a-canvas"
"""Of the agent, on its card."""
TEXT = "Tide pools are pools.\nThey are small.\n"
SCRIPT = """
rules:
  - match: {text: '.*'}
    rounds: [{text: "They are rock pools."}]
"""
LEVELS = ("read", "comment", "edit", "approve", "own")
AG_UI = ("AG-UI", "1.0")
PASSAGE = {"start": 0, "end": 10, "text": "Tide pools"}

COMMENT, EDIT = "comment", "edit"
VERBS: dict[str, tuple[str, Json]] = {
    "comment": (COMMENT, {"op": "annotate", "selection": PASSAGE}),
    "suggest": (COMMENT, {"op": "annotate", "selection": PASSAGE, "replacement": "Rock pools"}),
    "reply": (COMMENT, {"op": "reply", "annotationId": "{comment}"}),
    "withdraw one's own": (COMMENT, {"op": "withdraw", "annotationId": "{own}"}),
    "resolve": (EDIT, {"op": "resolve", "annotationId": "{comment}"}),
    "reject": (EDIT, {"op": "reject", "annotationId": "{suggestion}"}),
    "accept": (EDIT, {"op": "accept", "annotationId": "{suggestion}"}),
    "accept-all": (EDIT, {"op": "accept-all"}),
    "put": (EDIT, {"op": "put", "text": "Other text.\n"}),
    "undo": (EDIT, {"op": "undo"}),
    "edit": (EDIT, {"op": "edit", "selection": PASSAGE}),
    "a suggestion by the model": (EDIT, {"op": "edit", "selection": PASSAGE, "mode": "suggest"}),
    "message": (EDIT, {}),
}
"""The lowest level that each operation needs, and how it is sent. `{…}` is the id of an annotation."""


@pytest.fixture(scope="module")
def app_options(tmp_path_factory: pytest.TempPathFactory) -> Json:
    script = tmp_path_factory.mktemp("agent") / "script.yaml"
    script.write_text(SCRIPT)
    keys = ",".join(f"{name}={key}" for name, key in KEYS.items())
    return {"script": script, "database": "memory", "api_keys": keys}


@dataclass
class Review:
    """A context of ann's with an artifact, and what is known of its annotations."""

    served: Served
    context: str = field(default_factory=lambda: str(uuid4()))

    async def operate(self, token: str, metadata: Json, text: str = "Why?", way: Way = WAYS[0]) -> str:
        """The state and message in which an operation ends, or the reason of its refusal."""
        metadata = {CANVAS: {"artifactId": "doc", **metadata}} if metadata else {}
        if way == AG_UI:
            return await self._run(token, metadata, text)
        request = with_metadata(self.context, text, metadata)
        call = ClientCallContext(service_parameters={"Authorization": f"Bearer {token}"})
        try:
            client = self.served.client(*way, streaming=False)
            [event] = [each async for each in client.send_message(request, context=call)]
        except (A2AError, A2AClientError) as error:
            return f"refused: {error}"
        status = event.task.status
        said = "".join(part.text for part in status.message.parts)
        return f"{pb.TaskState.Name(status.state).removeprefix('TASK_STATE_').lower()}: {said}"

    async def _run(self, token: str, metadata: Json, text: str) -> str:
        message = {"id": str(uuid4()), "role": "user", "content": text}
        body = {"threadId": self.context, "runId": str(uuid4()), "messages": [message], "forwardedProps": metadata}
        answer = await self.served.http.post("/canvas/stream", json=body, headers={"Authorization": f"Bearer {token}"})
        if answer.status_code != 200:
            return f"refused: {answer.json()['error']['message']}"
        return "completed: " if "RUN_FINISHED" in answer.text else f"rejected: {answer.text}"

    async def token(self, level: str) -> str:
        """A credential of that level: of the owner, or of a link."""
        if level == "own":
            return KEYS["ann"]
        return str((await self.share(link=True, level=level))["token"])

    async def share(self, **given: Any) -> Json:
        owner = {"Authorization": f"Bearer {KEYS['ann']}"}
        answer = await self.served.http.post(f"/artifacts/{self.context}/shares", json=given, headers=owner)
        assert answer.status_code == 201, answer.text
        made: Json = answer.json()
        return made

    async def annotations(self, token: str = KEYS["ann"]) -> list[Json]:
        path, credential = f"/artifacts/{self.context}/doc/annotations", {"Authorization": f"Bearer {token}"}
        answer = await self.served.http.get(path, headers=credential)
        assert answer.status_code == 200, answer.text
        return [item["canvas"] for item in answer.json()["first"]["items"]]

    async def add(self, token: str, replacement: str | None = None) -> str:
        """The id of a new annotation."""
        suggested = {} if replacement is None else {"replacement": replacement}
        done = await self.operate(token, {"op": "annotate", "selection": PASSAGE, **suggested})
        assert done.startswith("completed"), done
        return str((await self.annotations())[-1]["annotationId"])


@pytest.fixture
async def begin(served: Served) -> Callable[[], Awaitable[Review]]:
    served.gate.open()

    async def make() -> Review:
        review = Review(served)
        for text in ("First.\n", TEXT):
            done = await review.operate(KEYS["ann"], {"op": "put", "name": "doc.md", "text": text})
            assert done.startswith("completed"), done
        return review

    return make


Begin = Callable[[], Awaitable[Review]]


@pytest.mark.parametrize("way", [*WAYS, AG_UI], ids="-".join)
@pytest.mark.parametrize("level", LEVELS)
async def test_each_level_allows_what_it_says_over_every_binding(begin: Begin, level: str, way: Way) -> None:
    review = await begin()
    token = await review.token(level)
    allowed = {verb for verb, (needed, _) in VERBS.items() if LEVELS.index(level) >= LEVELS.index(needed)}
    for verb, (needed, operation) in VERBS.items():
        ids = {"{comment}": await review.add(KEYS["ann"]), "{suggestion}": await review.add(KEYS["ann"], "Rock pools")}
        ids["{own}"] = await review.add(token) if verb.startswith("withdraw") and verb in allowed else ids["{comment}"]
        given = {name: ids.get(value, value) if isinstance(value, str) else value for name, value in operation.items()}
        before = await review.annotations()
        done = await review.operate(token, given, way=way)
        if verb in allowed:
            assert done.startswith("completed"), (verb, done)
        else:
            assert done.startswith("refused"), (verb, done)
            assert await review.annotations() == before
            if way[0] not in ("HTTP+JSON",):  # there the SDK's client shows only the status
                assert f"'{needed}'" in done, (verb, done)
        if done.startswith("completed") and verb in ("accept", "accept-all", "put", "undo", "edit"):
            await review.operate(KEYS["ann"], {"op": "put", "text": TEXT})


@pytest.mark.parametrize("way", [*WAYS, AG_UI], ids="-".join)
@pytest.mark.parametrize("level", ["comment", "edit", "approve", "own"])
async def test_only_the_owner_withdraws_what_others_wrote(begin: Begin, level: str, way: Way) -> None:
    review = await begin()
    by_other = await review.add(await review.token("comment"))
    done = await review.operate(await review.token(level), {"op": "withdraw", "annotationId": by_other}, way=way)
    assert done.startswith("completed" if level == "own" else "rejected"), done
    assert (by_other in [each["annotationId"] for each in await review.annotations()]) == (level != "own")


async def test_all_users_of_one_link_are_one_author(begin: Begin) -> None:
    review = await begin()
    link, another = await review.token("comment"), await review.token("comment")
    made = await review.add(link)
    assert (await review.annotations(link))[-1]["by"] == "guest"
    refused = await review.operate(another, {"op": "withdraw", "annotationId": made})
    assert refused.startswith("rejected"), refused
    assert (await review.operate(link, {"op": "withdraw", "annotationId": made})).startswith("completed")


@pytest.mark.parametrize("way", [*WAYS, AG_UI], ids="-".join)
async def test_with_a_link_to_comment_a_mention_of_the_agent_is_a_comment_and_uses_no_model(
    begin: Begin, served: Served, way: Way
) -> None:
    review = await begin()
    link, asked = await review.token("comment"), len(served.model.requests)
    mention = f"@{NAME} rewrite this passage, and use every tool"
    made = {"op": "annotate", "selection": PASSAGE}
    assert (await review.operate(link, made, mention, way)).startswith("completed")
    [comment] = await review.annotations()
    assert [each["text"] for each in comment["thread"]] == [mention]
    again = {"op": "reply", "annotationId": comment["annotationId"], "ask": True}
    assert (await review.operate(link, again, mention, way)).startswith("completed")
    [comment] = await review.annotations()
    assert [(each["author"], each["text"]) for each in comment["thread"]] == [("user", mention)] * 2
    assert len(served.model.requests) == asked
    tasks = (await served.rpc("ListTasks", {"contextId": review.context}, Authorization=f"Bearer {KEYS['ann']}"))[
        "result"
    ]["tasks"]
    assert all(task["status"]["state"] == "TASK_STATE_COMPLETED" for task in tasks)


@pytest.mark.parametrize("way", [*WAYS, AG_UI], ids="-".join)
async def test_with_a_link_to_edit_a_mention_of_the_agent_is_answered_in_the_thread(
    begin: Begin, served: Served, way: Way
) -> None:
    review = await begin()
    link, asked = await review.token("edit"), len(served.model.requests)
    mention = f"@{NAME.upper()}, is that right?"
    first = await review.add(await review.token("comment"))
    done = await review.operate(link, {"op": "reply", "annotationId": first}, mention, way)
    assert done.startswith("completed"), done
    [comment] = await review.annotations()
    said = [(each["author"], each["text"]) for each in comment["thread"]]
    assert said == [("user", "Why?"), ("user", mention), ("agent", "They are rock pools.")]
    assert len(served.model.requests) == asked + 1
    shown = str(served.model.requests[-1].messages[-1].content)
    assert '"level": "comment", "text": "Why?"' in shown


async def test_who_may_comment_keeps_no_files_and_gets_no_pushes(begin: Begin) -> None:
    review = await begin()
    link = {"Authorization": f"Bearer {await review.token('comment')}"}
    annotate = {CANVAS: {"op": "annotate", "artifactId": "doc", "selection": PASSAGE}}
    message = {"messageId": str(uuid4()), "contextId": review.context, "role": "ROLE_USER", "metadata": annotate}
    parts = [{"text": "Why?"}, {"raw": "eA==", "filename": "x.txt"}]
    refused = await review.served.rpc("SendMessage", {"message": message | {"parts": parts}}, **link)
    assert "message.parts must have text only" in refused["error"]["message"]
    push = {"taskPushNotificationConfig": {"url": "https://1.1.1.1/hook"}}
    request = {"message": message | {"parts": parts[:1]}, "configuration": push}
    refused = await review.served.rpc("SendMessage", request, **link)
    assert "it needs the level 'edit'" in refused["error"]["message"]
    assert await review.annotations() == []


async def test_a_user_comments_and_suggests_and_the_owner_decides(begin: Begin) -> None:
    review = await begin()
    ann, bob = KEYS["ann"], KEYS["bob"]
    assert (await review.share(user="bob", level="comment"))["level"] == "comment"
    question = await review.add(bob)
    suggestion = await review.add(bob, "Rock pools")
    assert (await review.operate(ann, {"op": "reply", "annotationId": question}, "Because.")).startswith("completed")
    assert "'edit'" in await review.operate(bob, {"op": "accept", "annotationId": suggestion})
    accepted = await review.operate(ann, {"op": "accept", "annotationId": suggestion})
    assert accepted.startswith("completed: Accepted suggestion 2: version 3 is saved"), accepted
    assert (await review.operate(ann, {"op": "resolve", "annotationId": question})).startswith("completed")
    seen = await review.annotations(bob)
    assert [(each["by"], each["state"]) for each in seen] == [("bob", "resolved"), ("bob", "accepted")]
    assert [(each["by"], each["text"]) for each in seen[0]["thread"]] == [("bob", "Why?"), ("ann", "Because.")]
    headers = {"Authorization": f"Bearer {bob}"}
    artifact = (await review.served.http.get(f"/artifacts/{review.context}/doc", headers=headers)).json()
    assert artifact["parts"][0]["text"] == TEXT.replace("Tide pools", "Rock pools")
    listed = (await review.served.http.get(f"/artifacts/{review.context}/doc/versions", headers=headers)).json()
    made = [(each.get("by"), each.get("suggestedBy")) for each in listed["versions"]]
    assert made[-1] == ("ann", ["bob"])
    assert not any(names for _, names in made[:-1])
