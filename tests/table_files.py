"""Which files of the product define tables, name them, and change their rows."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
Uses = Mapping[str, set[str]]
"""Files, by table."""


@cache
def _nodes() -> Mapping[str, Sequence[ast.AST]]:
    """The syntax of every file of the product, except the migrations, which name their tables themselves."""
    paths = [path for top in ("server", "store", "tools") for path in sorted((ROOT / top).rglob("*.py"))]
    return {
        str(path.relative_to(ROOT)): [*ast.walk(ast.parse(path.read_text()))]
        for path in paths
        if "migrations" not in path.parts
    }


@cache
def defining() -> Uses:
    """The files that define each table."""
    return _by_table((name, file) for file, nodes in _nodes().items() for name in _defined(nodes))


def _defined(nodes: Sequence[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Call(func=ast.Name(id="Table"), args=[ast.Constant(value=str(name)), ast.Name(), *_]):
                yield name
            case _:
                pass


@cache
def naming() -> Uses:
    """The other files that name each table."""
    homes = {f"{Path(file).stem}.{name}": name for name, files in defining().items() for file in files}
    return _by_table(
        (homes[each], file) for file, nodes in _nodes().items() for each in _imported(nodes) & homes.keys()
    )


def _imported(nodes: Sequence[ast.AST]) -> set[str]:
    """`module.name` of what a file imports, or takes from a module that it imports."""
    found = set()
    for node in nodes:
        match node:
            case ast.ImportFrom(module=str(module), names=names):
                found |= {f"{module.rpartition('.')[2]}.{each.name}" for each in names}
            case ast.Attribute(value=ast.Name(id=module), attr=attribute):
                found.add(f"{module}.{attribute}")
            case _:
                pass
    return found


@cache
def changing(*verbs: str) -> Uses:
    """The files that insert, update or delete rows of each table."""
    return _by_table((name, file) for file, nodes in _nodes().items() for name in _changed(nodes, verbs))


def _changed(nodes: Sequence[ast.AST], verbs: tuple[str, ...]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Call(func=ast.Name(id=verb), args=args) if verb in verbs:
                yield from (each.id for each in args if isinstance(each, ast.Name))
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=verb)) if verb in verbs:
                yield name
            case _:
                pass


def _by_table(pairs: Iterator[tuple[str, str]]) -> Uses:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for name, file in pairs:
        found[name].add(file)
    return found
