"""Which message is one that was sent before."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest

from a2a_canvas.server.accounts.access import Caller, Level
from a2a_canvas.server.agent.annotation_operations import AcceptAll, Annotate, Decide, Reply
from a2a_canvas.server.agent.events import UserMessage
from a2a_canvas.server.agent.intent import Converse, Put, SelectionEdit, Upload, VersionStep
from a2a_canvas.server.agent.operation_forms import SelectionRequest
from a2a_canvas.server.tasks.incoming import DEDUP_WINDOW, Incoming, RecentMessages, level_of
from a2a_canvas.server.tasks.push_configs import ConfigKey, PushConfig
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.changes import Redo, ReplaceParts, Restore, Undo
from a2a_canvas.store.models import DataPart, FilePart, text_part
from tests.fakes import Clock, said

MESSAGE = UserMessage("m-1", (text_part("Go"), DataPart({"a": [1]}), FilePart(content=b"x")), {"k": "v"})
SENT = Incoming(MESSAGE, owner="ann", context_id="c", task_id="t")
STRANGER = Incoming(said("m-1", "Go"), context_id="c")


def remembering(incoming: Incoming) -> tuple[RecentMessages, Clock]:
    clock = Clock()
    repeats = RecentMessages(clock)
    repeats.remember(incoming.message_key, "task-1")
    return repeats, clock


def test_a_message_that_was_never_sent_belongs_to_no_task() -> None:
    assert RecentMessages(Clock()).task_of(SENT.message_key) == ""


def test_the_same_message_again_belongs_to_the_task_of_the_first() -> None:
    repeats, _ = remembering(SENT)
    same = UserMessage("m-1", (text_part("Go"), DataPart({"a": [1]}), FilePart(content=b"x")), {"k": "v"})
    assert repeats.task_of(replace(SENT, message=same).message_key) == "task-1"


def test_the_order_of_keys_is_no_content() -> None:
    one, two = {"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}
    first, again = (Incoming(UserMessage("m-1", (DataPart(given),), given), "ann", "c", "t") for given in (one, two))
    assert first.message_key == again.message_key


def test_a_key_is_the_same_in_every_process() -> None:
    assert SENT.message_key == "c327d2c3c6179c454e2b859b067d88aac7def376bc6456a9049ec622a9a0aabb"


def test_changes_are_told_apart_by_what_they_do() -> None:
    keys = {replace(SENT, changes=(("a", change),)).message_key for change in (Undo(), Redo(), Undo(1), Restore(1))}
    assert len(keys) == 4


@pytest.mark.parametrize(
    "other",
    [
        replace(SENT, owner="bob"),
        replace(SENT, owner=""),
        replace(SENT, context_id="d"),
        replace(SENT, context_id=""),
        replace(SENT, task_id="u"),
        replace(SENT, message=replace(MESSAGE, message_id="m-2")),
        replace(SENT, message=replace(MESSAGE, metadata={"k": "w"})),
        replace(SENT, message=replace(MESSAGE, parts=(text_part("Stop"),))),
        replace(SENT, message=replace(MESSAGE, parts=(*MESSAGE.parts, text_part("!")))),
    ],
)
def test_a_message_that_differs_in_anything_is_another_one(other: Incoming) -> None:
    repeats, _ = remembering(SENT)
    assert repeats.task_of(other.message_key) == ""


UUID = "6f1e8a52-3c0d-4b7a-9f2e-d41c5b8a7e90"
ULID = "01J9Z3K8QW7X2M4N6P0R5T1VBC"


@pytest.mark.parametrize(
    "message_id",
    [
        *(UUID, UUID.upper(), UUID.replace("-", ""), f"{{{UUID}}}", f"urn:uuid:{UUID}"),
        *(ULID, ULID.lower()),
        "0192f5a1-0000-7000-8000-000000000000",
    ],
)
def test_a_stranger_without_a_context_repeats_a_message_whose_id_is_a_uuid_or_a_ulid(message_id: str) -> None:
    first = Incoming(said(message_id, "Go"))
    repeats, _ = remembering(first)
    assert repeats.task_of(Incoming(said(message_id, "Go")).message_key) == "task-1"
    for other in (Incoming(said(message_id, "Stop")), replace(first, owner="ann"), replace(first, context_id="c")):
        assert repeats.task_of(other.message_key) == ""


@pytest.mark.parametrize(
    "message_id",
    [
        *("m-1", "", "1" * 31, "g" + UUID[1:], UUID[:-1], f"{UUID}0", f"{{{UUID}", f"x{UUID}", UUID[:9] + UUID[10:]),
        *("00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff", "0" * 32, "0" * 26),
        *(ULID[:-1], f"{ULID}0", "8" + ULID[1:], "01J9Z3K8QW7X2M4N6P0R5T1VBU", "0" * 25 + "١"),
    ],
)
def test_another_id_may_be_that_of_somebody_else(message_id: str) -> None:
    assert Incoming(said(message_id, "Go")).message_key == ""


def test_strangers_are_only_told_apart_by_a_context_that_they_name() -> None:
    repeats, _ = remembering(STRANGER)
    assert repeats.task_of(STRANGER.message_key) == "task-1"


@pytest.mark.parametrize("task_id", ["", "t"])
def test_a_stranger_without_a_context_never_repeats_a_message(task_id: str) -> None:
    nowhere = replace(STRANGER, context_id="", task_id=task_id)
    assert nowhere.message_key == ""
    repeats, _ = remembering(nowhere)
    assert repeats.task_of(nowhere.message_key) == ""


def test_a_known_caller_needs_no_context() -> None:
    anywhere = replace(SENT, context_id="", task_id="")
    repeats, _ = remembering(anywhere)
    assert repeats.task_of(anywhere.message_key) == "task-1"


def test_what_the_sender_has_changed_itself_is_part_of_the_message() -> None:
    changes = (("doc", ReplaceParts((text_part("Mine"),), base=1)),)
    messages = SENT, replace(SENT, changes=changes), replace(SENT, changes=changes * 2)
    assert len({message.message_key for message in messages}) == 3


def test_a_key_can_be_written_down() -> None:
    assert re.fullmatch("[0-9a-f]{64}", SENT.message_key)


def test_a_message_is_remembered_for_a_day_and_no_longer() -> None:
    assert timedelta(hours=24) == DEDUP_WINDOW
    repeats, clock = remembering(SENT)
    clock.move(DEDUP_WINDOW)
    assert repeats.task_of(SENT.message_key) == "task-1"
    clock.move(timedelta(microseconds=1))
    assert repeats.task_of(SENT.message_key) == ""


def test_what_is_forgotten_can_be_remembered_anew() -> None:
    repeats, clock = remembering(SENT)
    clock.move(DEDUP_WINDOW * 2)
    assert repeats.task_of(SENT.message_key) == ""
    repeats.remember(SENT.message_key, "task-2")
    clock.move(DEDUP_WINDOW)
    assert repeats.task_of(SENT.message_key) == "task-2"


def test_the_size_counts_parts_metadata_and_changes_in_bytes_of_utf_8() -> None:
    message = UserMessage("m-1", (text_part("é"), FilePart(content=b"xyz")), {"k": "é"})
    changes = (("a", ReplaceParts((text_part("éé"),))), ("b", Undo()))
    assert Incoming(message, changes=changes).size == 2 + 3 + len('{"k": "é"}'.encode()) + 4


COMMENT_OPERATIONS = (
    Annotate("doc", SelectionRequest(0, 1), "Why?", None, None),
    Annotate("doc", SelectionRequest(0, 1), "", "x", None),
    Reply("doc", "n-1", "Because."),
    Decide("doc", "n-1", "withdraw"),
)
EDIT_OPERATIONS = (
    Decide("doc", "n-1", "resolve"),
    Decide("doc", "n-1", "accept"),
    Decide("doc", "n-1", "reject"),
    AcceptAll("doc", None),
    SelectionEdit("doc", SelectionRequest(0, 1), "replace", "shorter", None),
    VersionStep("doc", Undo()),
    Put("doc", "x", None),
    Upload("doc", (), None),
    Converse(),
)


def test_annotations_need_the_level_comment_and_everything_else_needs_edit() -> None:
    assert {level_of(each) for each in COMMENT_OPERATIONS} == {Level.COMMENT}
    assert {level_of(each) for each in EDIT_OPERATIONS} == {Level.EDIT}


def test_changes_and_push_configs_need_the_level_edit_whatever_they_come_with() -> None:
    reply = {"op": "reply", "artifactId": "doc", "annotationId": "n-1"}
    sent = Incoming(UserMessage("m", (text_part("Because."),), {CANVAS: reply}))
    assert sent.required_level is Level.COMMENT
    assert replace(sent, changes=(("doc", Undo()),)).required_level is Level.EDIT
    push = PushConfig(ConfigKey("", "", ""), Caller("bob"), "1.0", "https://example.com", "example.com:443")
    assert replace(sent, push=push).required_level is Level.EDIT
