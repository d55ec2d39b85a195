"""Turns and operations of every kind, as a scripted model plays them."""

from datetime import UTC, datetime

from a2a_canvas.server.agent.turn.history import to_user_input
from a2a_canvas.server.agent.turn.turn import TurnLimits
from a2a_canvas.server.tasks.record import TaskRecord
from a2a_canvas.store.changes import Redo, Restore, Undo
from tests.fakes import BROKEN, REFUSED, answer, ask, broken, decline, said, text, thinking, tool
from tests.server.agent.edit.operation_harness import edit, go, put

START = TaskRecord(
    "task", "context", "", datetime(2026, 1, 1, tzinfo=UTC), transcript=(to_user_input(said("m-1", "Go")),)
)


def update(use_id, *, artifact="doc", append=False, last=False, given=None, **options):
    """A call of `artifact_update` that leaves its mark."""
    written = {"artifact_id": artifact, "parts": [{"kind": "text", "text": f"{use_id};"}]}
    return tool(use_id, "artifact_update", {"append": append, "last_chunk": last, "artifact": written}, **options)


def change(use_id, old, **options):
    given = {"artifact_id": "doc", "old_text": old, "new_text": f"{use_id};"}
    return tool(use_id, "artifact_edit", given, **options)


def restore(use_id, version):
    return tool(use_id, "artifact_restore", {"artifact_id": "doc", "version": version})


LIMITS = TurnLimits(rounds=5, tool_errors_in_a_row=4)


DONE = answer(text("Done."))


TURNS = {
    "a reply": [answer(thinking("hm"), text("Hi."))],
    "a draft": [answer(text("I write."), update("T1", cut=9)), answer(update("T2", append=True, cut=9)), DONE],
    "a version": [answer(update("T1", last=True, cut=2), text("So.", at=1)), DONE],
    "versions": [answer(update("T1"), update("T2")), answer(update("T3", append=True, last=True)), DONE],
    "many artifacts": [answer(*[update(f"T{n}", artifact=f"a{n}") for n in range(4)]), DONE],
    "an edit of a draft": [answer(update("T1"), change("T2", "T1;", cut=7)), DONE],
    "a restored version": [answer(update("T1", last=True)), answer(update("T2", append=True), restore("T3", 1)), DONE],
    "calls that end together": [
        answer(*[update(f"T{n}", artifact=f"a{n}", at=n, last=n % 2 == 0, stopped=False) for n in range(4)]),
        answer(change("T8", "T0;", at=1, stopped=False), update("T9", append=True, at=2, stopped=False)),
        DONE,
    ],
    "a question": [answer(text("Hm."), update("T1"), ask("T2", "Go on?", at=1))],
    "two questions": [answer(ask("T1", "This?"), ask("T2", "Or that?", at=1), update("T3", at=2))],
    "a refusal of the tool": [answer(update("T1"), decline("T2", "No."))],
    "a refusal of the model": [answer(update("T1"), text("I will"), reason="refusal")],
    "the output limit": [answer(update("T1"), update("T2", append=True, cut=9)[:-3], reason="max_tokens")],
    "a break": [broken(update("T1"), update("T2", append=True, cut=9, stopped=False), BROKEN), DONE],
    "a break of an edit": [answer(update("T1")), broken(change("T2", "T1;", cut=9, stopped=False), BROKEN), DONE],
    "no way on": [answer(update("T1")), broken(update("T2", artifact="b", stopped=False), REFUSED)],
    "a fault": [answer(update("T1")), broken(update("T2", append=True), ZeroDivisionError("?"))],
    "too many rounds": [answer(update(f"T{n}", append=True)) for n in range(5)],
    "too many errors": [answer(update("T1"), tool(f"U{n}", "nope", at=1)) for n in range(5)],
    "input that is wrong": [answer(update("T1"), text("And more."), tool("T2", "artifact_update", "x" * 10)), DONE],
}


OPERATIONS = {
    "undo": go(Undo()),
    "undo of another version": go(Undo(1)),
    "redo": go(Redo()),
    "restore": go(Restore(1)),
    "put": put("All new"),
    "put too early": put("All new", 1),
    "edit": edit(base=1),
}


REPLIES = {"whole": [answer(text("TW", "O!"))], "broken": [broken(text("T"), BROKEN)] * 3, "no way": [broken(REFUSED)]}
