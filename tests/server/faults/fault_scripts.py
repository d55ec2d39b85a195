"""What is asked for in these tests, and what the scripted model writes: numbered lines, so that nothing can be missing,
or there twice, unseen.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Json = dict[str, Any]

WORKING, COMPLETED = "TASK_STATE_WORKING", "TASK_STATE_COMPLETED"
PAUSED, CANCELED, FAILED = "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_CANCELED", "TASK_STATE_FAILED"

WRITE = "write"
"""Three calls, one in each round, and a reply: at least two seconds."""
ASK, QUESTION, ANSWERED = "ask", "Which colour?", "As you like it."
SO_FAR, WRITTEN = "So far, so good.", "All is written."
CALLS = 3
CHUNK, DELAY = 24, 0.04


def lines(name: str, first: int, count: int) -> str:
    """Numbered lines."""
    return "".join(f"{name} {number:03}: ebb and flow\n" for number in range(first, first + count))


NOTES = lines("notes", 0, 4)
"""The artifact `notes`, whose only version the first call closes."""
BEGUN, REPORT = lines("report", 0, 18), lines("report", 0, 36)
"""The artifact `report`: after the second call, and after the third, which closes its only version."""
TEXTS = {"notes": NOTES, "report": REPORT}


def update_call(artifact: str, text: str, *, append: bool = False, last: bool = False) -> Json:
    written = {"artifact_id": artifact, "parts": [{"kind": "text", "text": text}]}
    return {"name": "artifact_update", "input": {"append": append, "last_chunk": last, "artifact": written}}


def calling(*calls: Json, delay: float = DELAY) -> Json:
    """A round of calls."""
    return {"chunk": CHUNK, "delay": delay, "tools": list(calls)}


def _script() -> Json:
    writing = [
        calling(update_call("notes", NOTES, last=True)),
        {"text": SO_FAR} | calling(update_call("report", BEGUN)),
        calling(update_call("report", REPORT.removeprefix(BEGUN), append=True, last=True)),
        {"text": WRITTEN},
    ]
    asking = [{"tools": [{"name": "ask_user", "input": {"question": QUESTION}}]}, {"text": ANSWERED}]
    rules = [{"match": {"text": f"^{WRITE}$"}, "rounds": writing}, {"match": {"text": f"^{ASK}$"}, "rounds": asking}]
    return {"rules": rules}


def script(folder: Path) -> Path:
    """The script in a file."""
    return write_script(folder, _script())


def write_script(folder: Path, rules: Json) -> Path:
    """JSON is YAML."""
    path = folder / "script.yaml"
    path.write_text(json.dumps(rules))
    return path
