"""`put`, `pull` and `open` against the whole application on loopback: nobody's text is lost."""

from __future__ import annotations

import io
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from a2a_canvas.server.client.commands.files import EMPTY_LOOKS, open_artifact, pull, put
from a2a_canvas.server.client.conversation.canvas_session import CanvasSession
from a2a_canvas.server.client.conversation.errors import UserInterrupt
from a2a_canvas.server.client.conversation.state_file import last_context
from a2a_canvas.server.wire import EXTENSIONS_OF_FORMATS
from tests.pandoc_program import need_pandoc, text_in
from tests.server.app_server import Served
from tests.server.canvas_client import Doc, made
from tests.server.client.artifact_runs import Step, do
from tests.server.client.client_harness import Result

LOOK: Step = None


def write(file: Path, text: str | bytes) -> None:
    file.write_bytes(text if isinstance(text, bytes) else text.encode())


def read(file: Path) -> str:
    return file.read_bytes().decode()


def writing(file: Path, text: str | bytes) -> Step:
    return lambda: write(file, text)


@pytest.fixture
async def doc(served: Served) -> Doc:
    return await made(served, "one\n", "doc.md", "text/markdown")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`doc.md` in the current folder, which has the text of version 1."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "doc.md").write_text("one\n")
    return tmp_path / "doc.md"


async def saved(doc: Doc, path: Path | None, **values: Any) -> Result:
    return await do(put, doc, **{"file": path and str(path), "base": None, "follow": False, **values})


async def pulled(doc: Doc, **values: Any) -> Result:
    return await do(
        pull, doc, **{"file": None, "version": None, "follow": False, "force": False, "form": None} | values
    )


def theirs(doc: Doc, text: str) -> Step:
    return lambda: doc.run(doc.operation("put", text=text))


# --------------------------------------------------------------------------------- put


async def test_put_makes_an_artifact_that_is_not_there_and_then_versions_of_it(served: Served, file: Path) -> None:
    new = Doc(served, "notes", artifact_id="doc.md")
    assert await saved(new, file) == Result(0, "Saved doc.md as version 1.\n", "")
    write(file, "two\r\n")
    assert await saved(new, file) == Result(0, "Saved doc.md as version 2.\n", "")
    assert await new.read() == (2, "two\r\n")


async def test_put_without_a_conversation_begins_one_which_is_the_last_then(served: Served, file: Path) -> None:
    assert (await saved(Doc(served, ""), file, artifact="doc.md", context=None)).code == 0
    context = last_context(served.url)
    assert await Doc(served, context, artifact_id="doc.md").read() == (1, "one\n")


async def test_put_takes_what_is_piped_in(doc: Doc, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(file, "zwei é\n")
    with io.TextIOWrapper(io.FileIO(file)) as given:
        monkeypatch.setattr(sys, "stdin", given)
        assert (await saved(doc, None)).out == "Saved doc.md as version 2.\n"
    assert await doc.read() == (2, "zwei é\n")


async def test_put_reads_the_file_of_that_name_where_nothing_is_piped_in(
    served: Served, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Such as the standard input of a service: no terminal, and nobody ever writes to it.
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    new = Doc(served, "notes", artifact_id=file.name)
    assert (await saved(new, None, artifact=str(file))).out == f"Saved {file.name} as version 1.\n"
    assert await new.read() == (1, "one\n")


async def test_put_does_not_take_the_beginning_of_another_name(doc: Doc, file: Path) -> None:
    assert (await saved(doc, file, artifact="do")).out == "Saved do as version 1.\n"
    assert (await doc.read())[0] == 1


async def test_put_on_a_base_version_keeps_what_others_have_changed_since(doc: Doc, file: Path) -> None:
    await theirs(doc, "number one\n")()
    write(file, "one\nmine\n")
    assert await saved(doc, file, base=1) == Result(0, "Merged with version 2: version 3 is saved.\n", "")
    assert await doc.read() == (3, "number one\nmine\n")
    write(file, "uno\n")
    refused = await saved(doc, file, base=1)
    assert (refused.code, (await doc.read())[0]) == (1, 3)
    assert "change the same place, line 1 of version 1" in " ".join(refused.err.split())


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"file": "none.md"}, "none.md cannot be read: No such file or directory"),
        ({"file": "-", "follow": True}, "--follow needs a FILE, and no --base"),
        ({"artifact": "dock", "base": 1}, "There is no artifact 'dock' in conversation "),
    ],
)
async def test_what_cannot_be_put_is_refused(doc: Doc, file: Path, values: dict[str, Any], said: str) -> None:
    got = await saved(doc, file, **values)
    assert (got.code, got.out) == (2, "")
    assert got.err.startswith(f"a2a-canvas: {said}")


# ------------------------------------------------------------------------ put --follow


async def test_each_save_is_a_version_on_the_one_before(doc: Doc, file: Path) -> None:
    steps = [LOOK, writing(file, "one\ntwo\n"), LOOK, writing(file, "one\ntwo\nthree\n"), LOOK, LOOK]
    got = await saved(doc, file, follow=True, steps=steps)
    assert (got.code, got.out) == (130, "Saved doc.md as version 2.\nSaved doc.md as version 3.\n")
    assert await doc.versions() == [("agent", 0), ("user", 1), ("user", 2)]


async def test_a_file_that_is_just_being_written_is_waited_for(doc: Doc, file: Path) -> None:
    steps = [LOOK, writing(file, ""), LOOK, LOOK, writing(file, "two\n"), LOOK]
    assert (await saved(doc, file, follow=True, steps=steps)).out == "Saved doc.md as version 2.\n"
    assert await doc.read() == (2, "two\n")
    emptied = [LOOK, writing(file, ""), *[LOOK] * (EMPTY_LOOKS + 1)]
    assert (await saved(doc, file, follow=True, steps=emptied)).out == "Saved doc.md as version 3.\n"


async def test_a_conflict_keeps_both_texts_and_the_next_save_goes_on_top(doc: Doc, file: Path) -> None:
    steps = [
        *(LOOK, LOOK, theirs(doc, "theirs\n")),
        *(writing(file, "mine\n"), LOOK),
        *(writing(file, "theirs, mine\n"), LOOK, LOOK),
    ]
    got = await saved(doc, file, follow=True, steps=steps)
    assert got.out == "Saved doc.md as version 3.\n"
    assert (
        f"{file} is not saved: version 2 was made in the meantime. It is in {file.with_name('doc.v2.md')}." in got.err
    )
    assert read(file.with_name("doc.v2.md")) == "theirs\n"
    assert await doc.read() == (3, "theirs, mine\n")


async def test_what_others_change_elsewhere_comes_into_the_file(doc: Doc, file: Path) -> None:
    steps = [
        *(LOOK, LOOK, theirs(doc, "number one\n")),
        *(writing(file, "one\nmine\n"), LOOK, LOOK, LOOK),
        *(writing(file, "number one\nmine\nand more\n"), LOOK),
    ]
    got = await saved(doc, file, follow=True, steps=steps)
    assert got.out == "Merged with version 2: version 3 is saved.\nSaved doc.md as version 4.\n"
    assert f"{file} now includes the changes of others." in got.err


async def test_a_file_that_was_saved_again_meanwhile_is_left_alone(
    doc: Doc, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = CanvasSession.put

    async def put_and_type_on(canvas: CanvasSession, artifact: str, text: str, *rest: Any, **named: Any) -> int:
        version = await save(canvas, artifact, text, *rest, **named)
        if version == 3:
            write(file, "one\nmine\n\nand more\n")
        return version

    monkeypatch.setattr(CanvasSession, "put", put_and_type_on)
    steps = [LOOK, LOOK, theirs(doc, "number one\n"), writing(file, "one\nmine\n"), *[LOOK] * 6]
    got = await saved(doc, file, follow=True, steps=steps)
    assert got.out == "Merged with version 2: version 3 is saved.\n"
    assert read(file) == "one\nmine\n\nand more\n"
    assert f"{file} is not saved" in got.err
    assert read(file.with_name("doc.v3.md")) == "number one\nmine\n"


async def test_an_artifact_that_somebody_emptied_is_a_conflict_too(doc: Doc, file: Path) -> None:
    steps = [LOOK, LOOK, theirs(doc, ""), writing(file, "mine\n"), LOOK]
    got = await saved(doc, file, follow=True, steps=steps)
    assert "is not saved: version 2 was made in the meantime." in got.err
    assert await doc.read() == (2, "")


async def test_what_cannot_be_saved_now_is_told_and_tried_again(doc: Doc, file: Path) -> None:
    steps = [
        LOOK,
        writing(file, b"\xff\n"),
        LOOK,
        LOOK,
        writing(file, "two\n"),
        LOOK,
    ]
    got = await saved(doc, file, follow=True, steps=steps)
    assert "is not UTF-8 text: byte 1 is wrong. Trying again…" in got.err
    assert got.out == "Saved doc.md as version 2.\n"


async def test_an_interrupt_while_it_saves_ends_it(doc: Doc, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def interrupted(*_: object, **__: object) -> int:
        raise UserInterrupt("Interrupted before the server named a task")

    monkeypatch.setattr(CanvasSession, "put", interrupted)
    got = await saved(doc, file, follow=True, steps=[LOOK, writing(file, "two\n"), *[LOOK] * 9])
    assert (got.code, got.out) == (130, "")
    assert got.err.endswith("a2a-canvas: Interrupted before the server named a task\n")


# -------------------------------------------------------------------------------- pull


async def test_pull_writes_a_file_of_the_artifacts_name_and_overwrites_only_versions(doc: Doc, file: Path) -> None:
    await doc.run(doc.operation("put", text="two\n"))
    got = await pulled(doc)
    assert got == Result(0, "doc.md is version 2 of doc (4 B).\n", "")
    write(file, "mine\n")
    refused = await pulled(doc)
    assert refused.code == 2
    assert "The text of doc.md is not a version of doc. --force overwrites it" in refused.err
    assert read(file) == "mine\n"
    assert (await pulled(doc, version=1, force=True)).code == 0
    assert read(file) == "one\n"


async def test_pull_follows_the_artifact_and_keeps_what_was_written_here(doc: Doc, file: Path) -> None:
    steps = [
        theirs(doc, "two\n"),
        writing(file, "mine\n"),
        theirs(doc, "three\n"),
        LOOK,
    ]
    got = await pulled(doc, file=str(file), follow=True, steps=steps)
    assert got.out.splitlines() == [
        f"{file} is version 1 of doc (4 B).",
        f"{file} is version 2 of doc (4 B).",
        f"{file} has changed here. Version 3 is in {file.with_name('doc.v3.md')}.",
    ]
    assert (read(file), read(file.with_name("doc.v3.md"))) == ("mine\n", "three\n")


async def test_a_name_from_the_server_is_no_path(served: Served, file: Path) -> None:
    sly = await made(served, "x", "../../.profile")
    assert (await pulled(sly)).out == "profile is version 1 of doc (1 B).\n"


@pytest.mark.parametrize("form", ["docx", "odt", "epub", "latex"])
async def test_pull_writes_another_format_and_overwrites_no_file_with_it(doc: Doc, file: Path, form: str) -> None:
    need_pandoc()
    await doc.run(doc.operation("put", text="two\n"))
    got = await pulled(doc, form=form, version=1)
    path = file.with_suffix(EXTENSIONS_OF_FORMATS[form])
    assert got.out.startswith(f"{path.name} is version 1 of doc (")
    assert "one" in text_in(path.read_bytes(), form)
    refused = await pulled(doc, form=form)
    assert (refused.code, refused.err.splitlines()[0]) == (2, f"a2a-canvas: {path.name} exists. --force overwrites it")
    assert (await pulled(doc, form=form, force=True)).code == 0
    assert "two" in text_in(path.read_bytes(), form)


async def test_pull_follows_only_the_text_itself(doc: Doc) -> None:
    got = await pulled(doc, form="docx", follow=True)
    assert (got.code, got.err) == (2, "a2a-canvas: --follow writes the text itself: omit --format\n")


async def test_what_cannot_be_converted_is_the_servers_sentence_and_no_file(served: Served, file: Path) -> None:
    table = await made(served, "a,b\n", "data.csv")
    got = await pulled(table, form="docx")
    assert (got.code, got.out) == (1, "")
    assert "Only a Markdown text can be docx" in got.err
    assert not file.with_name("data.docx").exists()


# -------------------------------------------------------------------------------- open


def editor(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """An editor that runs this code, in which `path` is the file."""
    run = f"import pathlib, sys; path = pathlib.Path(sys.argv[1]); {code}"
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{shlex.quote(sys.executable)} -c {shlex.quote(run)}")


async def test_open_saves_what_the_editor_writes_on_its_base_version(doc: Doc, monkeypatch: pytest.MonkeyPatch) -> None:
    editor(monkeypatch, "assert path.name == 'doc.md'; path.write_text(path.read_text() + 'two\\n')")
    assert await do(open_artifact, doc) == Result(0, "Saved doc.md as version 2.\n", "")
    assert await doc.read() == (2, "one\ntwo\n")


async def test_open_saves_nothing_where_nothing_was_changed(doc: Doc, monkeypatch: pytest.MonkeyPatch) -> None:
    editor(monkeypatch, "pass")
    assert await do(open_artifact, doc) == Result(0, "", "Nothing has changed, so nothing is saved.\n")
    assert (await doc.read())[0] == 1


async def test_on_a_conflict_open_shows_both_texts_and_says_where_the_users_is(
    doc: Doc, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = {"op": "put", "artifactId": "doc", "text": "one\ntheirs\n"}
    message = {"messageId": "m", "role": "ROLE_USER", "contextId": doc.context, "parts": [{"text": "Save"}]}
    body = {"message": message | {"metadata": {"urn:a2a-canvas:canvas:v1": operation}}}
    url = f"{doc.served.url}/rest/message:send"
    post = f"import httpx; httpx.post('{url}', json={body!r}, headers={{'A2A-Version': '1.0'}})"
    editor(monkeypatch, f"{post}; path.write_text('one\\nmine\\n')")
    got = await do(open_artifact, doc)
    assert got.code == 1
    assert got.out.splitlines()[:2] == ["--- version 2", "+++ your text"]
    assert {"-theirs", "+mine"} <= {*got.out.splitlines()}
    _, kept, advice = got.err.splitlines()
    path = Path(kept.removeprefix("Your text is in "))
    assert read(path) == "one\nmine\n"
    assert f"put doc {path} --base 2 --context {doc.context}" in advice
    assert await doc.read() == (2, "one\ntheirs\n")


async def test_an_editor_that_fails_saves_nothing(doc: Doc, monkeypatch: pytest.MonkeyPatch) -> None:
    editor(monkeypatch, "sys.exit(3)")
    failed = await do(open_artifact, doc)
    monkeypatch.setenv("EDITOR", "no-such-editor")
    missing = await do(open_artifact, doc)
    assert (failed.code, missing.code) == (1, 2)
    assert "The editor ended with 3; nothing is saved" in failed.err
    assert "no-such-editor cannot be started: No such file or directory. Set EDITOR to another" in missing.err
