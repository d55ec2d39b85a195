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
LEFT: frozenset[str] = frozenset(
    {
        "server/agent/attachments.py:shortened",
        "server/agent/edit/edit_prompt.py:tagged",
        "server/agent/model.py:changed",
        "server/push/http_sender.py:_opened",
        "server/push/outbox.py:_claimed",
        "server/push/outbox.py:delivered",
        "server/push/sql/sql_push.py:_of",
        "server/push/sql/sql_push.py:delivered",
        "server/push/targets.py:of",
        "server/push/under_way.py:settled",
        "server/tasks/contexts.py:_opened",
        "server/tasks/journal/activity.py:changed",
        "server/tasks/journal/journal.py:_of",
        "server/tasks/journal/journal.py:settled",
        "server/tasks/journal/round_robin.py:_left",
        "server/tasks/journal/round_robin.py:admitted",
        "server/tasks/kept_files.py:_named",
        "server/tasks/kept_files.py:_unnamed",
        "server/tasks/kept_files.py:named",
        "server/tasks/kept_files.py:of",
        "server/tasks/runtime/turns.py:_interrupted",
        "server/tasks/runtime/turns.py:_metered",
        "server/tasks/sql/journal/context_tails.py:changed",
        "server/tasks/sql/journal/prune.py:_counted",
        "server/tasks/sql/journal/prune.py:_isolated",
        "server/tasks/sql/journal/prune.py:_of",
        "server/tasks/sql/journal/sql_journal.py:_committed",
        "server/tasks/sql/journal/sql_journal.py:followed",
        "server/tasks/sql/journal/sweep_size.py:measured",
        "server/tasks/sql/projections/journal_commit.py:continued",
        "server/tasks/sql/projections/journal_commit.py:created",
        "server/tasks/sql/projections/journal_commit.py:of",
        "server/tasks/sql/projections/replicas.py:leased",
        "server/tasks/sql/projections/task_counts.py:moved",
        "server/tasks/sql/replica/notifications.py:_notified",
        "server/tasks/sql/replica/notifications.py:of",
        "server/tasks/sql/replica/takeover.py:_unowned",
    }
)
"""Names that are still to be replaced."""


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
    found = {
        f"{path.relative_to(ROOT)}:{name}" for path in MODULES for name in participles(ast.parse(path.read_text()))
    }
    assert found == LEFT
