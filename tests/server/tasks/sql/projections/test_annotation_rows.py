"""How many rows a step on one annotation reads, of an artifact that has many."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from a2a_canvas.server.tasks.contexts import ContextArtifacts
from a2a_canvas.server.tasks.sql.projections import annotation_rows
from a2a_canvas.store.annotations.annotation import Annotation, AnnotationsChanged
from a2a_canvas.store.annotations.review import Review
from a2a_canvas.store.text.spans import Span
from tests.server.tasks.journal.test_journal import MAKERS
from tests.server.tasks.sql.journal.test_many_tasks import statements
from tests.server.tasks.test_annotation_store import REF, TEXT, Desk, make_desk
from tests.store.annotations.test_annotation_places import annotation

MANY = 300


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
async def desk(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Desk]:
    async with MAKERS[request.param](tmp_path) as make:
        desk = await make_desk(make)
        many = [made(number, TEXT[4:7] if number % 2 else None) for number in range(1, MANY + 1)]
        await desk.journal.append("a", AnnotationsChanged("doc", tuple(many)))
        yield desk


def made(number: int, replacement: str | None) -> Annotation:
    one = annotation(number, 1, TEXT, Span(4, 7), replacement)
    return replace(one, annotation_id=f"old-{number}", artifact_id="doc")


STEPS = {
    "comment": lambda review: review.annotate("doc", 1, Span(4, 7), "Which?"),
    "reply": lambda review: review.reply("doc", "old-2", "These."),
    "resolve": lambda review: review.resolve("doc", "old-2"),
    "accept": lambda review: review.accept("doc", "old-1"),
    "reject": lambda review: review.reject("doc", "old-1"),
    "withdraw": lambda review: review.withdraw("doc", "old-1", others=True),
}


@pytest.mark.parametrize("step", STEPS)
async def test_a_step_on_one_annotation_decodes_no_other(
    desk: Desk, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[Any] = []
    decode = annotation_rows.decode
    monkeypatch.setattr(annotation_rows, "decode", lambda *given: decoded.append(given) or decode(*given))
    review: Review = desk.review()
    with statements() as asked:
        await STEPS[step](review)
    assert len(decoded) <= 1
    whole = [each.statement for each in asked if "ORDER BY artifact_annotations.number" in each.statement]
    assert not whole
    assert len(await review.list("doc")) == MANY + {"comment": 1, "withdraw": -1}.get(step, 0)


async def test_of_one_version_only_what_it_has_accepted_is_decoded(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    await desk.review().accept("doc", "old-1")
    decoded: list[Any] = []
    decode = annotation_rows.decode
    monkeypatch.setattr(annotation_rows, "decode", lambda *given: decoded.append(given) or decode(*given))
    artifacts = ContextArtifacts(REF.context_id, desk.artifacts, desk.journal.annotations)
    assert [*await artifacts.suggested_by("doc", 1)] == [1]
    assert len(decoded) == 1
    assert await artifacts.suggested_by("doc", 2) == {}
    assert len(decoded) == 1


async def test_the_highest_number_and_the_count_of_what_is_open_are_read_from_an_index(desk: Desk) -> None:
    store = desk.journal.annotations
    with statements() as asked:
        assert await store.last_number("context", "doc") == await store.count_open("context", "doc") == MANY
    async with store._database.read() as connection:
        if connection.dialect.name != "sqlite":
            return  # it plans by what it knows of the rows
        for each in asked:
            plan = await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {each.statement}", each.parameters)
            assert "USING COVERING INDEX annotations_by_number" in plan.all()[-1][3]
