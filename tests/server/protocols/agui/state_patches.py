"""The meaning of an AG-UI state, and a JSON Patch applied to it."""

import copy
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

Json = dict[str, Any]


AT = datetime(2026, 1, 1, tzinfo=UTC)


def patched(document: Any, ops: Iterable[Json]) -> Any:
    """`document` after a JSON Patch: as much of RFC 6902 as there is in ours."""
    document = copy.deepcopy(document)
    for op in json.loads(json.dumps(list(ops))):
        *way, last = [key.replace("~1", "/").replace("~0", "~") for key in op["path"].split("/")[1:]]
        target = document
        for key in way:
            target = target[int(key)] if isinstance(target, list) else target[key]
        _patch(target, last, op)
    return document


def _patch(target: Any, key: str, op: Json) -> None:
    match target, op["op"]:
        case list(), "add":
            target.insert(len(target) if key == "-" else int(key), op["value"])
        case dict(), "add":
            target[key] = op["value"]
        case list(), "replace":
            target[int(key)] = op["value"]
        case dict(), "replace":
            assert key in target
            target[key] = op["value"]
        case list(), "remove":
            del target[int(key)]
        case _:
            raise AssertionError(op)


def grouped(parts: Iterable[Json]) -> list[Json]:
    """Parts by kind, the texts joined, as the snapshot has them."""
    kinds: dict[str, list[Json]] = {}
    for part in parts:
        known = kinds.setdefault(part["kind"], [])
        if part["kind"] == "text" and known:
            known[0] = {
                "kind": "text",
                "text": known[0]["text"] + part["text"],
                **{name: value for name in ("mimeType",) if (value := known[0].get(name) or part.get(name))},
                **(
                    {"metadata": meta} if (meta := {**known[0].get("metadata", {}), **part.get("metadata", {})}) else {}
                ),
            }
        else:
            known.append(part)
    return [part for of_kind in kinds.values() for part in of_kind]


def meaning(state: Json) -> Json:
    """A state without what has no meaning: how texts are cut."""
    artifacts = {name: {**each, "parts": grouped(each["parts"])} for name, each in state["artifacts"].items()}
    return {**state, "artifacts": artifacts}
