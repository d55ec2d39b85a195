"""`export --git` against the whole application on loopback: `git log -p` is the history."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from uuid import uuid4

import pytest

from a2a_canvas.server.accounts.api_key import new_key
from a2a_canvas.server.client.commands.export import export
from tests.server.app_server import Served, serving
from tests.server.canvas_client import SCRIPT, Doc, made
from tests.server.client.artifact_runs import run
from tests.server.client.client_harness import Result, typed
from tests.server.protocols.identity.tokens import SigningKey
from tests.server.test_authentication import issuing


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
    return done.stdout


async def exported(doc: Doc, folder: Path, artifact: str | None = None) -> Result:
    return await run(export, doc.served.url, artifact=artifact, folder=str(folder), context=doc.context)


def subjects(folder: Path) -> list[str]:
    """Of all commits, the oldest first."""
    return git(folder, "log", "--reverse", "--format=%s").splitlines()


@pytest.fixture
async def doc(served: Served) -> Doc:
    return await made(served, "one\n", "doc.md")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "history"


async def test_each_version_is_a_commit_with_its_time_author_request_and_change(doc: Doc, folder: Path) -> None:
    await doc.run(doc.operation("put", "Say two", text="one\ntwo\n"))
    assert await exported(doc, folder) == Result(0, f"{folder} has 2 new commits.\n", "")
    listed = (await doc.served.http.get(f"/artifacts/{doc.context}/doc/versions")).json()["versions"]
    times = git(folder, "log", "--reverse", "--date=format-local:%Y-%m-%dT%H:%M:%S", "--format=%ad").splitlines()
    assert times == [each["timestamp"][:19] for each in listed]
    assert git(folder, "log", "-1", "--format=%an|%ae|%s") == "user|user@a2a-canvas.invalid|Say two\n"
    assert git(folder, "log", "-1", "-p", "--format=").endswith("@@ -1 +1,2 @@\n one\n+two\n")
    assert (folder / "doc.md").read_text() == "one\ntwo\n"
    assert git(folder, "status", "--porcelain") == ""
    assert git(folder, "symbolic-ref", "HEAD") == "refs/heads/main\n"
    git(folder, "fsck", "--strict")


async def test_a_second_export_continues_the_repository_and_keeps_commits_of_others(doc: Doc, folder: Path) -> None:
    await exported(doc, folder)
    (folder / "mine.txt").write_text("mine\n")
    git(folder, "add", "mine.txt")
    git(folder, "-c", "user.name=me", "-c", "user.email=me@here", "commit", "-qm", "Mine")
    await doc.run(doc.operation("put", "Say two", text="two\n"))
    assert (await exported(doc, folder)).out == f"{folder} has 1 new commits.\n"
    assert subjects(folder) == [*subjects(folder)[:1], "Mine", "Say two"]
    assert (folder / "mine.txt").exists()
    assert (await exported(doc, folder)).out == f"{folder} has 0 new commits.\n"


async def test_after_an_undo_the_next_version_is_the_change_of_its_parent(doc: Doc, folder: Path) -> None:
    await doc.run(doc.operation("put", "Say two", text="one\ntwo\n"))
    await doc.run(doc.operation("undo"))
    await doc.run(doc.operation("put", "Say three", text="one\nthree\n"))
    await exported(doc, folder)
    assert subjects(folder)[1:] == ["Say two", "Back to version 1 of doc.md", "Say three"]
    assert git(folder, "log", "-1", "-p", "--format=").endswith("@@ -1 +1,2 @@\n one\n+three\n")
    await doc.run(doc.operation("undo"))
    await exported(doc, folder)
    assert subjects(folder)[4:] == ["Back to version 1 of doc.md"]
    assert (folder / "doc.md").read_text() == "one\n"


async def test_what_is_gone_is_removed_by_a_commit_and_what_has_its_id_starts_over(doc: Doc, folder: Path) -> None:
    """A conversation can be deleted, and its id used again."""
    other = Doc(doc.served, doc.context, artifact_id="other")
    await other.run(other.operation("put", "Save other", text="x\n", name="other.md"))
    await exported(doc, folder)
    (await doc.served.http.delete(f"/artifacts/{doc.context}")).raise_for_status()
    await doc.run(doc.operation("put", "Begin again", text="new\n", name="doc.md"))
    assert (await exported(doc, folder)).out == f"{folder} has 3 new commits.\n"
    assert subjects(folder)[2:] == ["Remove doc.md", "Remove other.md", "Begin again"]
    assert git(folder, "log", "-1", "--skip=1", "--format=%an", "--name-status").split() == ["user", "D", "other.md"]
    assert git(folder, "log", "-1", "-p", "--format=").endswith("@@ -0,0 +1 @@\n+new\n")
    assert git(folder, "ls-files") == "doc.md\n"
    assert (await exported(doc, folder)).out == f"{folder} has 0 new commits.\n"


async def test_what_has_the_id_is_exported_whole_also_as_it_outgrows_what_is_gone(
    doc: Doc, folder: Path, tmp_path: Path
) -> None:
    async def put(*requests: str) -> None:
        for each in requests:
            await doc.run(doc.operation("put", each, text=f"{each}\n", name="doc.md"))

    await put(*(f"Old {number}" for number in range(2, 8)))
    await exported(doc, folder)
    (await doc.served.http.delete(f"/artifacts/{doc.context}")).raise_for_status()
    await put("New 1", "New 2", "New 3")
    assert (await exported(doc, folder)).out == f"{folder} has 4 new commits.\n"
    await put("New 4", "New 5", "New 6", "New 7")
    assert (await exported(doc, folder)).out == f"{folder} has 4 new commits.\n"
    assert subjects(folder)[7:] == ["Remove doc.md", *(f"New {number}" for number in range(1, 8))]
    await put("New 8")
    await exported(doc, folder)
    once = tmp_path / "once"
    await exported(doc, once)
    assert subjects(once) == subjects(folder)[8:]
    assert git(once, "rev-parse", "HEAD^{tree}") == git(folder, "rev-parse", "HEAD^{tree}")
    assert (await exported(doc, folder)).out == f"{folder} has 0 new commits.\n"


async def test_all_artifacts_of_a_conversation_are_files_or_one_alone(doc: Doc, folder: Path, tmp_path: Path) -> None:
    other = Doc(doc.served, doc.context, artifact_id="other")
    await other.run(other.operation("put", text="x\n", name="DOC.md"))
    await exported(doc, folder)
    assert git(folder, "ls-files").splitlines() == ["DOC (2).md", "doc.md"]
    await exported(doc, tmp_path / "one", "other")
    assert git(tmp_path / "one", "ls-files").splitlines() == ["DOC.md"]


async def test_who_wrote_who_asked_and_who_suggested_is_in_the_log(folder: Path) -> None:
    ann, bob = new_key("ann"), new_key("bob")
    unique = "5f1c0f8e-2f0b-4f55-9d4e-0f6a1c3b2d70"
    async with serving(SCRIPT, grpc=False, database="memory", api_keys=f"ann={ann},bob={bob}") as served:
        served.gate.open()

        async def by(key: str, *words: str, stdin: str = "") -> None:
            done = await typed(*words, "--url", served.url, "--token", key, stdin=stdin)
            assert done.code == 0, done.err

        await by(ann, "send", "--context", unique, "make doc doc.md text/plain\none two")
        await by(ann, "share", unique, "--with", "bob", "--level", "edit")
        await by(bob, "put", "doc", "-", "--context", unique, stdin="one two three\n")
        await by(bob, "suggest", "doc", "two", "2", "--context", unique)
        await by(ann, "accept", "doc", "1", "--context", unique)
        await by(ann, "send", "--context", unique, "make doc renamed.md text/plain\none 2 three, four\n")
        await by(ann, "export", "--git", str(folder), "--context", unique)
    trailers = "%(trailers:key=Requested-by,key=Suggested-by,separator=%x2C)"
    agent = "a2a-canvas|make doc"
    assert git(folder, "log", "--reverse", f"--format=%an|%s|{trailers}").splitlines() == [
        f"{agent} doc.md text/plain one two|Requested-by: ann",
        "bob|Save doc.md|",
        "ann|Accept #1|Suggested-by: bob",
        f"{agent} renamed.md text/plain one 2 three, four|Requested-by: ann",
    ]
    changed = git(folder, "log", "-1", "--no-renames", "--name-status", "--format=")
    assert changed.splitlines() == ["D\tdoc.md", "A\trenamed.md"]
    git(folder, "fsck", "--strict")


@pytest.mark.parametrize("said", ["A2A-Task: x", "A2A-Version: {context}/doc/versions/99", "A2A-File: mine.txt"])
async def test_a_user_or_a_request_called_like_a_trailer_forges_none(folder: Path, said: str) -> None:
    context, key = str(uuid4()), SigningKey("1")
    said = said.format(context=context)
    async with (
        issuing(key) as issuer,
        serving(SCRIPT, grpc=False, database="memory", jwt_issuer=issuer, jwt_audience="canvas") as served,
    ):
        served.gate.open()

        async def by(user: str, *words: str, stdin: str = "") -> str:
            token = key.token(iss=issuer, sub=user)
            done = await typed(*words, "--url", served.url, "--token", token, stdin=stdin)
            assert done.code == 0, done.err
            return done.out

        await by("ann", "send", "--context", context, "make doc doc.md text/plain\none two")
        await by("ann", "share", context, "--with", said, "--level", "edit")
        await by(said, "suggest", "doc", "two", "2", "--context", context)
        await by("ann", "accept", "doc", "1", "--context", context)
        await by(said, "send", "--context", context, f"make doc doc.md text/plain\nx\n\n{said}")
        assert " 3 new commits" in await by("ann", "export", "--git", str(folder), "--context", context)
        (folder / "mine.txt").write_text("mine\n")
        git(folder, "add", "mine.txt")
        git(folder, "-c", "user.name=me", "-c", "user.email=me@here", "commit", "-qm", "Mine")
        await by("ann", "put", "doc", "-", "--context", context, stdin="three\n")
        assert " 1 new commits" in await by("ann", "export", "--git", str(folder), "--context", context)
        assert " 0 new commits" in await by("ann", "export", "--git", str(folder), "--context", context)
    versions = git(folder, "log", "--reverse", "--format=%(trailers:key=A2A-Version,valueonly,separator=%x2C)")
    assert versions.split() == [f"{context}/doc/versions/{number}" for number in range(1, 5)]
    assert f"Suggested-by: {said}\n" in git(folder, "log", "--format=%B")
    assert f"Requested-by: {said}\n" in git(folder, "log", "--format=%B")
    assert (folder / "mine.txt").read_text() == "mine\n"


@pytest.mark.slow
async def test_three_hundred_versions_are_three_hundred_changes(doc: Doc, folder: Path) -> None:
    lines = ["one\n"]
    for number in range(299):
        lines.append(f"line {number}\n")
        await doc.run(doc.operation("put", f"Say {number}", text="".join(lines)))
    assert (await exported(doc, folder)).out == f"{folder} has 300 new commits.\n"
    assert subjects(folder)[1:] == [f"Say {number}" for number in range(299)]
    added = [
        line for line in git(folder, "log", "--reverse", "-p", "--format=").splitlines() if line.startswith("+line")
    ]
    assert added == [f"+line {number}" for number in range(299)]
    assert (await exported(doc, folder)).out == f"{folder} has 0 new commits.\n"


async def test_a_name_from_the_server_stays_in_the_folder(served: Served, folder: Path) -> None:
    sly = await made(served, "x", "../../.git/hooks/post-merge")
    await exported(sly, folder)
    assert git(folder, "ls-files") == "post-merge\n"
    assert not (folder / ".git/hooks/post-merge").exists()


@pytest.mark.parametrize("said", ["A2A-Task: x", "A2A-Current: {context}/doc/versions/9", "A2A-File: doc.md"])
async def test_an_artifact_called_like_a_trailer_forges_none(doc: Doc, folder: Path, said: str) -> None:
    said = said.format(context=doc.context)
    sly = Doc(doc.served, doc.context, artifact_id="sly")
    await sly.run(sly.operation("put", "Save", text="x\n", name=f"a\n\n{said}\n\n{said}"))
    await sly.run(sly.operation("put", "Save", text="y\n"))
    await exported(doc, folder)
    await sly.run(sly.operation("undo"))
    assert (await exported(doc, folder)).out == f"{folder} has 1 new commits.\n"
    assert subjects(folder)[1:] == ["Save", "Save", f"Back to version 1 of a {said} {said}"]
    shown = git(folder, "log", "-1", "--format=%(trailers:key=A2A-Current,valueonly)")
    assert shown.strip() == f"{doc.context}/sly/versions/1"
    assert [(folder / file).read_text() for file in git(folder, "ls-files").splitlines()] == ["x\n", "one\n"]
    assert (await exported(doc, folder)).out == f"{folder} has 0 new commits.\n"


async def test_what_is_not_committed_is_never_overwritten(doc: Doc, folder: Path) -> None:
    await exported(doc, folder)
    (folder / "doc.md").write_text("mine\n")
    await doc.run(doc.operation("put", "Say two", text="two\n"))
    refused = await exported(doc, folder)
    assert refused.code == 1
    assert "git failed: " in refused.err
    assert "doc.md" in refused.err
    assert ((folder / "doc.md").read_text(), len(subjects(folder))) == ("mine\n", 1)
    git(folder, "checkout", "doc.md")
    assert (await exported(doc, folder)).out == f"{folder} has 1 new commits.\n"


async def test_a_folder_with_something_else_is_refused(doc: Doc, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    refused = await exported(doc, tmp_path)
    assert (refused.code, refused.err) == (2, f"a2a-canvas: {tmp_path} is no git repository, and not empty\n")


async def test_without_git_the_command_says_what_to_install(
    doc: Doc, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    refused = await exported(doc, folder)
    assert (refused.code, refused.err) == (2, "a2a-canvas: git is not installed (Debian: apt-get install git)\n")
