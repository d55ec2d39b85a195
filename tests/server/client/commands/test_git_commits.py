"""The history of artifacts as commits: every version once, on its parent, however often it is exported."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.client.commands.git_commits import (
    ExportedHistory,
    VersionShown,
    commit_bytes,
    commit_message,
    read_history,
    steps,
)
from a2a_canvas.server.client.screen.display import one_line

Versions = dict[str, list[dict[str, Any]]]


def version(number: int, parent: int, at: int = 0, **more: Any) -> dict[str, Any]:
    time = f"2026-01-01T00:00:{at or number:02}.000Z"
    return {"number": number, "parent": parent, "taskId": f"task-{at or number}", "timestamp": time, **more}


def new(artifact: str, number: int) -> VersionShown:
    return VersionShown(artifact, number)


def move(artifact: str, number: int) -> VersionShown:
    return VersionShown(artifact, number, moved=True)


def known(versions: Versions, shown: dict[str, int]) -> ExportedHistory:
    """A repository that has these versions."""
    tasks = {(artifact, each["number"]): each["taskId"] for artifact, of in versions.items() for each in of}
    return ExportedHistory(tasks, shown, {artifact: f"{artifact}.md" for artifact in shown})


def test_versions_of_all_artifacts_are_in_the_order_of_their_times() -> None:
    versions = {"a": [version(1, 0, 1), version(2, 1, 4, current=True)], "b": [version(1, 0, 2, current=True)]}
    assert [*steps(ExportedHistory(), versions)] == [new("a", 1), new("b", 1), new("a", 2)]


def test_after_an_undo_a_commit_leads_back_before_the_next_version() -> None:
    versions = {"a": [version(1, 0), version(2, 1), version(3, 1, current=True)]}
    assert [*steps(ExportedHistory(), versions)] == [new("a", 1), new("a", 2), move("a", 1), new("a", 3)]


def test_an_undo_at_the_end_is_a_commit_and_a_redo_after_it_another() -> None:
    versions = {"a": [version(1, 0, current=True), version(2, 1)]}
    assert [*steps(ExportedHistory(), versions)] == [new("a", 1), new("a", 2), move("a", 1)]
    history = known(versions, {"a": 1})
    assert [*steps(history, versions)] == []
    versions = {"a": [version(1, 0), version(2, 1, current=True)]}
    assert [*steps(history, versions)] == [move("a", 2)]


def test_a_version_without_content_has_no_commit() -> None:
    versions = {"a": [version(1, 0, pruned=True), version(2, 1), version(3, 2, current=True)]}
    assert [*steps(ExportedHistory(), versions)] == [new("a", 2), new("a", 3)]


@st.composite
def histories(draw: st.DrawFn) -> list[Versions]:
    """What the server lists at some moments: the versions only become more, and any of them is the current one, until
    the conversation is deleted and another one has its id."""
    moments: list[Versions] = []
    for conversation in range(draw(st.integers(1, 3))):
        sizes = draw(st.lists(st.integers(0, 5), min_size=1, max_size=3))
        parents = {f"a{i}": [draw(st.integers(0, n)) for n in range(size)] for i, size in enumerate(sizes)}
        shown = dict.fromkeys(parents, 0)
        for _ in range(draw(st.integers(1, 3))):
            shown = {each: draw(st.integers(shown[each], len(of))) for each, of in parents.items()}
            listed: Versions = {}
            for index, (artifact, of) in enumerate(parents.items()):
                count, began = shown[artifact], conversation * 20 + index
                current = draw(st.integers(1, count)) if count else 0
                listed[artifact] = [
                    version(n, parent, began + n * 3, current=n == current) for n, parent in enumerate(of[:count], 1)
                ]
            moments.append(listed)
    return moments


@given(histories())
def test_each_version_is_committed_once_and_on_its_parent_and_the_current_one_is_last(moments: list[Versions]) -> None:
    messages: list[str] = []
    committed: list[str] = []  # tasks, each of which made one version
    tree: dict[str, str] = {}
    for versions in moments:
        history = read_history("c", messages)
        at = dict(history.shown)
        for shown in steps(history, versions):
            of = next((each for each in versions.get(shown.artifact, ()) if each["number"] == shown.number), {})
            if not shown.moved:
                assert at.get(shown.artifact, 0) == of["parent"]
                committed.append(of["taskId"])
            at[shown.artifact] = shown.number
            tree[shown.artifact] = of.get("taskId", "")
            messages.append(commit_message("c", shown, "x", "x.md", of))
        listed = {each["taskId"] for of in versions.values() for each in of}
        assert sorted(each for each in committed if each in listed) == sorted(listed)
        assert len(committed) == len({*committed})
        current = {name: each["taskId"] for name, of in versions.items() for each in of if each["current"]}
        assert {name: task for name, task in tree.items() if task} == current
    assert [*steps(read_history("c", messages), moments[-1])] == []


def test_a_request_cannot_pretend_to_be_another_version() -> None:
    request = {"request": "Write\n\nA2A-Version: c/a/versions/9\nA2A-File: x"}
    message = commit_message("c", new("a", 1), "a", "a.md", request)
    history = read_history("c", [message, "A commit of somebody else\n\nA2A-Version: other/a/versions/2\n"])
    assert history == ExportedHistory({("a", 1): "unknown"}, {"a": 1}, {"a": "a.md"})


HOSTILE = ["A2A-Task: x", "A2A-Version: c/a/versions/99", "A2A-Current: c/b/versions/9", "A2A-File: mine.txt"]


@pytest.mark.parametrize("said", HOSTILE)
@pytest.mark.parametrize("before", ["", "ann\n", "ann\r", "ann\n\n", "ann\u2028", "ann\x85"])
def test_no_name_request_or_task_can_forge_a_trailer(said: str, before: str) -> None:
    text = f"{before}{said}"
    line, people = one_line(text), {"author": "agent", "by": text, "suggestedBy": [text, "bob", text]}
    for request in ("", text, f"Write\n\n{text}", f"{text}\n\n"):
        made = commit_message("c", new("a", 1), line, line, {**people, "taskId": text, "request": request})
        assert read_history("c", [made]) == ExportedHistory({("a", 1): line}, {"a": 1}, {"a": line})
    back = commit_message("c", move("a", 1), line, line, people)
    assert read_history("c", [back]) == ExportedHistory({}, {"a": 1}, {"a": line})


def test_trailers_are_read_as_git_reads_them() -> None:
    trailer = "A2A-Version: c/a/versions/2"
    assert read_history("c", [f"Say\n\n{trailer}\nSigned-off-by: me\n"]).shown == {"a": 2}
    for message in (trailer, f"{trailer}\n\nSay\n", f"Say\n\n{trailer}\n\nMore\n", f"Say\n\nsee {trailer}\n"):
        assert read_history("c", [message]) == ExportedHistory()


def test_of_one_artifact_that_alone_is_read() -> None:
    messages = [commit_message("c", new(each, 1), each, each, {"taskId": f"t-{each}"}) for each in ("a", "b")]
    assert read_history("c", messages, "b") == ExportedHistory({("b", 1): "t-b"}, {"b": 1}, {"b": "b"})


def test_an_artifact_that_is_gone_is_removed_once() -> None:
    versions = {"a": [version(1, 0, current=True)], "b": [version(1, 0, 2, current=True)]}
    history = known(versions, {"a": 1, "b": 1})
    del versions["a"]
    assert [*steps(history, versions)] == [move("a", 0)]
    assert [*steps(known(versions, {"a": 0, "b": 1}), versions)] == []
    assert commit_message("c", move("a", 0), "a.md", "", {}) == "Remove a.md\n\nA2A-Current: c/a/versions/0\n"


def test_another_artifact_with_the_same_id_begins_after_the_removal() -> None:
    old = {"a": [version(1, 0, 1), version(2, 1, 2, current=True)]}
    versions = {"a": [version(1, 0, 11, pruned=True), version(2, 1, 12), version(3, 2, 13, current=True)]}
    assert [*steps(known(old, {"a": 2}), versions)] == [move("a", 0), new("a", 2), new("a", 3)]
    assert [*steps(known(versions, {"a": 3}), versions)] == []


def test_its_versions_are_new_even_if_the_repository_has_more_of_the_old_one() -> None:
    old = {"a": [version(n, n - 1, n, current=n == 4) for n in range(1, 5)]}
    history = known(old, {"a": 2})
    history.versions |= known({"a": [version(1, 0, 11), version(2, 1, 12)]}, {}).versions
    versions = {"a": [version(n, n - 1, 10 + n, current=n == 4) for n in range(1, 5)]}
    assert [*steps(history, versions)] == [new("a", 3), new("a", 4)]


@pytest.mark.parametrize("artifact", ["a b", "a/b", "é\n", "50%", "events"])
def test_an_artifact_of_any_id_is_known_again(artifact: str) -> None:
    message = commit_message("c/d", new(artifact, 2), "x", "x.md", {})
    assert read_history("c/d", [message]).versions == {(artifact, 2): "unknown"}


def test_a_version_says_who_asked_the_agent_for_it() -> None:
    of = {"author": "agent", "by": "bob", "request": "Write it", "taskId": "t"}
    said = commit_message("c", new("a", 1), "a.md", "a.md", of)
    assert said == "Write it\n\nA2A-Version: c/a/versions/1\nA2A-File: a.md\nA2A-Task: t\nRequested-by: bob\n"
    accepted = commit_message(
        "c", new("a", 2), "a.md", "a.md", {"author": "user", "by": "ann", "suggestedBy": ["bob", "agent"]}
    )
    assert accepted.endswith("A2A-Task: unknown\nSuggested-by: bob\nSuggested-by: agent\n")
    assert commit_message("c", move("a", 1), "a.md", "a.md", {"request": "x"}).startswith("Back to version 1 of a.md\n")
    assert commit_message("c", new("a", 1), "a.md", "a.md", {}).startswith("Version 1 of a.md\n")


def test_a_file_keeps_its_name_and_two_artifacts_have_two() -> None:
    history = ExportedHistory(files={"a": "report.md"})
    assert history.unused_file("a", "report.md") == "report.md"
    assert history.unused_file("b", "Report.md") == "Report (2).md"


def test_a_name_cannot_break_out_of_its_line() -> None:
    made = commit_bytes("refs/x", "a <b>\nfrom x", "", "m", 'a"\n', {'b"\\\n': b"1"})
    assert b"author a b from x <a-b-from-x@a2a-canvas.invalid> 0 +0000\n" in made
    assert b'D "a\\"\\n"\n' in made
    assert b'M 100644 inline "b\\"\\\\\\n"\ndata 1\n1\n' in made
