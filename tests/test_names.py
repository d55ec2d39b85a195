"""One name, one meaning: no class and no module of the product has the name of another one."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
MODULES = [path for folder in ("server", "store", "tools") for path in sorted((ROOT / folder).rglob("*.py"))]
SAME_SUBJECT = {
    "codec": "values of the package to JSON and back",
    "errors": "the error tree of the package",
    "routes": "the HTTP routes of the protocol",
}
"""Module names that stand for the same subject in several packages."""


def repeated(names: list[str]) -> set[str]:
    return {name for name, count in Counter(names).items() if count > 1}


def test_no_class_name_is_used_twice() -> None:
    trees = [ast.parse(path.read_text()) for path in MODULES]
    assert repeated([node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]) == set()


def test_a_module_name_is_used_twice_only_for_the_same_subject() -> None:
    names = [path.stem for path in MODULES if path.stem != "__init__"]
    assert repeated(names) == set(SAME_SUBJECT)
