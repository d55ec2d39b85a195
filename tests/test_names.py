"""One name, one meaning: no class and no module of the product has the name of another one.

A function is a verb or a noun, and a class a noun: neither is a bare participle or `of`, unless it returns a `bool`.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
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


PARTICIPLE = re.compile(
    "(?!(?:embed|feed|need|seed|shed)$)(?:of|[a-z]+ed|begun|bound|broken|brought|built|caught|chosen|drawn|fed|found|given|"
    "gone|held|hidden|kept|known|laid|left|lost|made|meant|paid|seen|sent|shown|spent|spoken|taken|thrown|told|torn|"
    "understood|written)"
)
EVENTS = frozenset({"done", "edited", "failed", "flushed"})
"""What has happened, as a method of a listener or as an outcome."""


def is_participle(name: str) -> bool:
    """Whether a name is a single word that is a participle or `of`, such as `_known` or `Merged`."""
    word = name.strip("_")
    return bool(PARTICIPLE.fullmatch(word[:1].lower() + word[1:])) and word.lower() not in EVENTS


def participles(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            named = True
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            named = not (node.returns and ast.unparse(node.returns).startswith(("bool", "TypeGuard", "TypeIs")))
        else:
            continue
        if named and is_participle(node.name):
            yield node.name


def test_functions_are_verbs_or_nouns_and_classes_are_nouns() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{name}" for path in MODULES for name in participles(ast.parse(path.read_text()))
    ]
    assert not found, "A function is a verb, a class a noun."
