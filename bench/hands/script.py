"""What the agents do, for the scripted model: each message names the words, and the artifact is `doc`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.server.faults.fault_scripts import update_call, write_script

DOC = "doc"
_PACE = {"chunk": 12, "delay": 0.01}


def write_rules(folder: Path) -> Path:
    """The script in a file."""
    return write_script(folder, {"rules": [*_rules()]})


def writes(old: str, first: str, new: str) -> str:
    """Appends two words in one call, and replaces one of them in the next."""
    return f"write {old} {first}, then {new}"


def edits(old: str, new: str) -> str:
    return f"change {old} to {new}"


def suggests(old: str, new: str) -> str:
    return f"suggest {new} for {old}"


def comments(old: str, remark: str) -> str:
    return f"remark {remark} on {old}"


def rewrites(new: str) -> str:
    """The instruction of an edit of a selection."""
    return f"rewrite as {new}"


def _rules() -> list[dict[str, Any]]:
    done = {"text": "Done."}
    return [
        {
            "match": {"text": r"^write (?P<old>\w+) (?P<first>\w+), then (?P<new>\w+)$"},
            "rounds": [
                _PACE | {"tools": [update_call(DOC, "{old} {first}\n", append=True, last=True)]},
                _call("artifact_edit", old_text="{old}", new_text="{new}"),
                done,
            ],
        },
        {
            "match": {"text": r"^change (?P<old>\w+) to (?P<new>.+)$"},
            "rounds": [_call("artifact_edit", old_text="{old}", new_text="{new}"), done],
        },
        {
            "match": {"text": r"^suggest (?P<new>.+) for (?P<old>\w+)$"},
            "rounds": [_call("suggest", old_text="{old}", new_text="{new}"), done],
        },
        {
            "match": {"text": r"^remark (?P<remark>\w+) on (?P<old>\w+)$"},
            "rounds": [_call("comment", quote="{old}", text="{remark}"), done],
        },
        {"match": {"text": "^rewrite as (?P<new>.+)$", "selection": "."}, "rounds": [_PACE | {"text": "{new}"}]},
    ]


def _call(name: str, **given: str) -> dict[str, Any]:
    return _PACE | {"tools": [{"name": name, "input": {"artifact_id": DOC, **given}}]}
