"""`a2a-canvas acp` as an editor starts it, with the protocol's own client library."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import acp
import pytest
from acp import schema

from a2a_canvas.server.accounts.api_key import new_key
from a2a_canvas.server.agent.models.rehearsal.rehearsal import Rehearsal
from a2a_canvas.server.wire import TOKEN_VARIABLE
from tests.free_port import free_port
from tests.server.app_server import Served, serving
from tests.server.test_approvals import SCRIPT
from tests.server.test_approvals import TOOLS as TOOLS_FILE

pytestmark = pytest.mark.process

KEY = new_key("ann")
AS_ANN = {"Authorization": f"Bearer {KEY}"}


WRITES = """
rules:
  - match: {text: '^Summarize'}
    rounds:
      - tools:
          - name: artifact_update
            input: {append: false, artifact: {artifact_id: summary.md, parts: [{kind: text, text: "It is short."}]}}
      - {text: "Done."}
"""


@dataclass
class Editor:
    """An editor: what it shows, what its user answers, and its open files, by path."""

    allows: list[bool] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    updates: list[Any] = field(default_factory=list)
    asked: list[schema.ToolCallUpdate] = field(default_factory=list)
    agent: Any = None

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)

    async def request_permission(
        self, session_id: str, tool_call: schema.ToolCallUpdate, options: list[schema.PermissionOption], **_: Any
    ) -> schema.RequestPermissionResponse:
        self.asked.append(tool_call)
        if not self.allows:
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        kind = "allow_once" if self.allows.pop(0) else "reject_once"
        [chosen] = [each.option_id for each in options if each.kind == kind]
        return schema.RequestPermissionResponse(outcome=schema.AllowedOutcome(outcome="selected", option_id=chosen))

    async def read_text_file(self, session_id: str, path: str, **_: Any) -> schema.ReadTextFileResponse:
        if path not in self.files:
            raise acp.RequestError.resource_not_found(path)
        return schema.ReadTextFileResponse(content=self.files[path])

    async def write_text_file(self, session_id: str, path: str, content: str, **_: Any) -> None:
        self.files[path] = content

    def on_connect(self, conn: Any) -> None:
        pass

    @property
    def text(self) -> str:
        """What the agent has said."""
        said = [each.content.text for each in self.updates if isinstance(each, schema.AgentMessageChunk)]
        return "".join(said)

    @property
    def diffs(self) -> list[Any]:
        progress = [each for each in self.updates if isinstance(each, schema.ToolCallProgress)]
        return [part for each in progress for part in each.content or () if part.type == "diff"]


@asynccontextmanager
async def editing(url: str, folder: Path, editor: Editor, *, files: bool = True) -> AsyncIterator[str]:
    """A session of an editor with the agent's process; its id."""
    pipe = asyncio.subprocess.PIPE
    arguments = ("-m", "a2a_canvas", "acp", "--url", url)
    environment = {TOKEN_VARIABLE: KEY, "XDG_STATE_HOME": str(folder / ".state")}
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdin=pipe, stdout=pipe, env=environment)
    try:
        editor.agent = agent = acp.connect_to_agent(editor, process.stdin, process.stdout)
        can = schema.FileSystemCapabilities(read_text_file=files, write_text_file=files)
        known = await agent.initialize(protocol_version=1, client_capabilities=schema.ClientCapabilities(fs=can))
        assert known.agent_capabilities.prompt_capabilities.embedded_context
        yield (await agent.new_session(cwd=str(folder), mcp_servers=[])).session_id
        await agent.close()
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@asynccontextmanager
async def server(**options: Any) -> AsyncIterator[Served]:
    async with serving(database="memory", grpc=False, api_keys=f"ann={KEY}", **options) as served:
        served.gate.open()
        yield served


def said(text: str) -> list[Any]:
    return [acp.text_block(text)]


@pytest.mark.parametrize("allows", [True, False])
async def test_a_prompt_is_a_turn_and_its_document_is_a_diff_that_is_saved_if_the_user_says_yes(
    tmp_path: Path, allows: bool
) -> None:
    editor = Editor([allows])
    async with server() as served, editing(served.url, tmp_path, editor) as session:
        done = await editor.agent.prompt(session_id=session, prompt=said("write report"))
        assert done.stop_reason == "end_turn"
        listed = await served.http.get(f"/artifacts/{session}", headers=AS_ANN)
        [artifact] = listed.json()["artifacts"]
        raw = await served.http.get(
            f"/artifacts/{session}/{artifact['artifactId']}",
            params={"raw": 1},
            headers=AS_ANN,
        )
    [diff] = editor.diffs
    path = str(tmp_path / artifact["name"])
    assert (diff.path, diff.old_text, diff.new_text) == (path, None, raw.text)
    [started] = [each for each in editor.updates if isinstance(each, schema.ToolCallStart)]
    assert (started.kind, started.locations[0].path) == ("edit", path)
    assert editor.text
    assert [each.title for each in editor.asked] == [f"Save {artifact['name']}"]
    assert editor.files == ({path: raw.text} if allows else {})


async def test_selected_lines_of_a_file_are_rewritten_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "notes" / "tide.md"
    editor = Editor([True], {str(path): "# Tide\n\nThis line is long and says little.\n\nThe end.\n"})
    selected = acp.embedded_text_resource(f"{path.as_uri()}#L3", "This line is long and says little.")
    async with server(model=Rehearsal(delay=0)) as served, editing(served.url, tmp_path, editor) as session:
        before = editor.files[str(path)]
        await editor.agent.prompt(session_id=session, prompt=[*said("make it shorter"), acp.resource_block(selected)])
        assert len(served.model.requests) == 1
        after = editor.files[str(path)]
    assert after != before
    assert (after.splitlines()[0], after.splitlines()[-1]) == ("# Tide", "The end.")
    [diff] = editor.diffs
    assert (diff.path, diff.old_text, diff.new_text) == (str(path), before, after)


@pytest.mark.parametrize(
    ("allows", "outcome"), [([True], "a.txt is gone."), ([False], "did not approve"), ([], "did not approve")]
)
async def test_a_call_that_needs_approval_is_a_permission_request(
    tmp_path: Path, allows: list[bool], outcome: str
) -> None:
    (tmp_path / "script.yaml").write_text(SCRIPT)
    (tmp_path / "tools.py").write_text(TOOLS_FILE)
    editor = Editor([*allows])
    options = {"script": tmp_path / "script.yaml", "tools": (tmp_path / "tools.py",)}
    async with server(**options) as served, editing(served.url, tmp_path, editor) as session:
        await editor.agent.prompt(session_id=session, prompt=said("delete"))
        assert outcome in str(served.model.requests[-1].messages)
    [call] = editor.asked
    assert call.title == 'May I run delete_file(path="a.txt")? Answer yes or no.'
    assert call.raw_input == [{"tool": "delete_file", "input": {"path": "a.txt"}}]
    assert editor.text.endswith("Settled.")


async def test_a_turn_is_cancelled_and_the_next_prompt_runs(tmp_path: Path) -> None:
    editor = Editor()
    async with server() as served, editing(served.url, tmp_path, editor) as session:
        served.gate.close()
        prompting = asyncio.create_task(editor.agent.prompt(session_id=session, prompt=said("slowly report")))
        await served.gate.reached.wait()
        await editor.agent.cancel(session_id=session)
        assert (await prompting).stop_reason == "cancelled"
        served.gate.open()
        assert (await editor.agent.prompt(session_id=session, prompt=said("write report"))).stop_reason == "end_turn"


async def test_without_a_server_and_without_a_session_it_says_what_to_do(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(acp.RequestError, match="No server answers at"):
        async with editing(url, tmp_path, Editor()):
            pass
    editor = Editor()
    async with server() as served, editing(served.url, tmp_path, editor):
        with pytest.raises(acp.RequestError, match="Invalid params"):
            await editor.agent.prompt(session_id="nope", prompt=said("Hello"))


async def test_an_editor_without_files_has_those_of_the_disk(tmp_path: Path) -> None:
    (tmp_path / "tide.md").write_text("One.\n")
    editor = Editor([True])
    (tmp_path / "script.yaml").write_text(WRITES)
    link = acp.resource_link_block("tide.md", (tmp_path / "tide.md").as_uri())
    script = tmp_path / "script.yaml"
    async with server(script=script) as served, editing(served.url, tmp_path, editor, files=False) as session:
        await editor.agent.prompt(session_id=session, prompt=[*said("Summarize"), link])
        listed = await served.http.get(f"/artifacts/{session}", headers=AS_ANN)
    names = {each["artifactId"] for each in listed.json()["artifacts"]}
    assert "tide.md" in names
    [new] = names - {"tide.md"}
    assert (tmp_path / new).read_text() == editor.diffs[0].new_text
