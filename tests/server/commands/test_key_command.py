"""API keys from the command line: shown once, listed without them, revoked."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from a2a_canvas.server.accounts.api_key import hash_of, is_key, key_of_pair
from a2a_canvas.server.commands import key_command as key_cli
from a2a_canvas.server.commands.cli import main
from a2a_canvas.server.settings.settings import PREFIX

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def database(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in tuple(os.environ):
        if name.startswith(PREFIX):
            monkeypatch.delenv(name)
    monkeypatch.setenv("A2A_CANVAS_DATABASE", f"{tmp_path}/keys.db")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["key", *arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_a_new_key_is_shown_alone_and_once(run: Run, tmp_path: Path) -> None:
    code, key, remark = run("new", "ann")
    assert code == 0
    assert is_key(key.removesuffix("\n"))
    assert remark.splitlines()[0] == (
        f'Key "ann" for user ann. It is not shown again: only its hash is stored, in {tmp_path}/keys.db.'
    )
    listed = run("list")[1]
    assert key.strip() not in listed
    assert hash_of(key.strip()) not in listed


def test_keys_are_listed_with_their_users_and_when_they_were_made_and_revoked(run: Run) -> None:
    assert run("list")[0] == 2  # there is no database yet
    run("new", "ann")
    run("new", "ci", "--user", "ann")
    assert run("revoke", "ci") == (
        0,
        "The key ci is revoked: servers using this database reject it within two seconds.\n",
        "",
    )
    day = r"\d{4}-\d\d-\d\d"
    lines = run("list")[1].splitlines()
    assert lines[0].split() == ["NAME", "USER", "MADE", "STATE"]
    assert re.fullmatch(f"ann   ann   {day}  in force", lines[1])
    assert re.fullmatch(f"ci    ann   {day}  revoked {day}", lines[2])


def test_a_revoked_key_that_was_the_last_says_so(run: Run) -> None:
    run("new", "ann")
    said = run("revoke", "ann")[1].splitlines()
    assert said[1:] == [
        "It was the last valid key, and requests still need one. To serve without keys, start the server with "
        "--allow-anonymous. To create another: a2a-canvas key new NAME"
    ]


def test_a_name_is_taken_until_its_key_is_revoked(run: Run) -> None:
    run("new", "ann")
    assert run("new", "ann") == (
        2,
        "",
        "a2a-canvas: There is already a key ann: revoke it first, or choose another name.\n",
    )
    run("revoke", "ann")
    assert run("new", "ann")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("revoke", "ann"), "There is no valid key ann. List them with `a2a-canvas key list`."),
        (("new", "a b"), "The name 'a b' must be 1 to 128 characters, without spaces, commas and =."),
        (("new", "ann", "--user", "a,b"), "The user 'a,b' must be 1 to 128 characters, without spaces, commas and =."),
        (("new", "shared"), "The user 'shared' is reserved for holders of the shared token: choose another."),
        (
            ("new", "ci", "--user", "shared"),
            "The user 'shared' is reserved for holders of the shared token: choose another.",
        ),
        (("new", "ann", "--database", "memory"), "--database memory stores no keys: name the server's database"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(run: Run, arguments: tuple[str, ...], says: str) -> None:
    run("new", "another")
    code, out, error = run(*arguments)
    assert (code, out) == (2, "")
    assert error.startswith(f"a2a-canvas: {says}")
    assert error.count("\n") == 1


def test_the_database_of_a_served_folder_is_named_by_the_folder(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("A2A_CANVAS_DATABASE")
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "reef"
    folder.mkdir()
    (folder / "instructions.md").write_text("Write.")
    assert run("new", "ann", "reef")[0] == 0
    assert [file.name for file in tmp_path.iterdir()] == ["reef"]
    assert (folder / "a2a-canvas.db").is_file()
    assert "in force" in run("list", "reef")[1]
    for command in (("db", "check"), ("usage",), ("session", "revoke", "ann")):
        assert main([*command, "reef"]) == 0
    capsys.readouterr()
    assert run("revoke", "ann", "reef")[0] == 0


NEW = "The database is new: only servers using it accept the key."
FIRST = (
    "From now on every request to a server using this database needs a key, even after all keys are revoked "
    "(--allow-anonymous lifts that).",
    "To use the key in a terminal: export A2A_CANVAS_TOKEN=KEY",
)


@pytest.mark.parametrize(
    ("arguments", "command"),
    [(("ann",), "key new ann FOLDER"), (("ci", "--user", "ann"), "key new ci --user ann FOLDER")],
)
def test_a_key_in_a_new_database_says_how_to_make_it_for_a_folder(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], command: str
) -> None:
    monkeypatch.delenv("A2A_CANVAS_DATABASE")
    monkeypatch.chdir(tmp_path)
    assert run("new", *arguments)[2].splitlines()[1] == f"{NEW} If you serve a folder, name it: a2a-canvas {command}"
    assert len(run("new", "bob")[2].splitlines()) == 1


def test_in_a_new_database_that_was_named_it_says_only_that_it_is_new(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("new", "ann")[2].splitlines()[1:] == [NEW, *FIRST]
    monkeypatch.delenv("A2A_CANVAS_DATABASE")
    folder = tmp_path / "reef"
    folder.mkdir()
    (folder / "instructions.md").write_text("Write.")
    assert run("new", "ann", str(folder))[2].splitlines()[1:] == [NEW, *FIRST]


def test_only_the_first_key_says_that_requests_need_one_from_now_on(run: Run) -> None:
    run("new", "ann")
    run("revoke", "ann")
    assert len(run("new", "ann")[2].splitlines()) == 1


@pytest.mark.parametrize(
    ("tasks", "said"),
    [
        (1, "1 earlier task belongs to no user. To give it to ann, start the server with --adopt-anonymous ann."),
        (36, "36 earlier tasks belong to no user. To give them to ann, start the server with --adopt-anonymous ann."),
    ],
)
def test_the_first_key_says_what_its_user_does_not_see(
    run: Run, monkeypatch: pytest.MonkeyPatch, tasks: int, said: str
) -> None:
    async def count(_: object) -> int:
        return tasks

    run("new", "ann")
    run("revoke", "ann")
    monkeypatch.setattr(key_cli, "count_anonymous", count)
    remark = run("new", "ann")[2].splitlines()[1]
    assert remark == said
    assert len(run("new", "bob")[2].splitlines()) == 1


def test_a_key_may_be_called_shared_if_its_user_is_not(run: Run) -> None:
    assert run("new", "shared", "--user", "ann")[0] == 0


def test_all_sessions_of_a_user_are_ended_in_a_database_that_is_there(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["session", "revoke", "ann"]) == 2
    run("new", "ann")
    capsys.readouterr()
    assert main(["session", "revoke", "ann"]) == 0
    assert capsys.readouterr().out == ("ann is signed out on all servers of this database within two seconds.\n")


def test_a_key_that_is_stored_nowhere_comes_with_its_line_for_the_settings(run: Run, tmp_path: Path) -> None:
    code, key, remark = run("new", "ann", "--no-store")
    assert code == 0
    pair = key_of_pair(remark.split("A2A_CANVAS_API_KEYS=")[1].strip())
    assert pair
    assert (pair.user, pair.key_hash) == ("ann", hash_of(key.strip()))
    assert list(tmp_path.iterdir()) == []
