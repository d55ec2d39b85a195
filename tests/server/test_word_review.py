"""The Word file of an artifact over the whole application: its open suggestions and comments, when they are in it."""

from __future__ import annotations

import io
import zipfile
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from tests.pandoc_program import need_pandoc
from tests.server.app_server import Served
from tests.server.canvas_client import Doc

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXT = "Tide pools are small.\n"
MARKED = "{~~Tide~>Rock~~} {==pools==}{>>Which?<<} are small.\n"


@pytest.fixture(scope="module")
def app_options() -> dict[str, Any]:
    return {"database": "memory"}


@pytest_asyncio.fixture(loop_scope="module")
async def doc(served: Served) -> Doc:
    need_pandoc()
    served.gate.open()
    doc = Doc(served, str(uuid4()), TEXT)
    await doc.run(doc.operation("put", text=MARKED, name="doc.md", format="critic"))
    return doc


async def word(doc: Doc, path: str = "", **headers: str) -> Any:
    url = f"/artifacts/{doc.context}/{doc.artifact_id}{path}?format=docx"
    return await doc.served.http.get(url, headers=headers)


def marks(file: bytes) -> tuple[int, int, int]:
    """How many insertions, deletions and comments a file has."""
    with zipfile.ZipFile(io.BytesIO(file)) as archive:
        document, comments = (archive.read(f"word/{name}.xml").decode() for name in ("document", "comments"))
    return document.count("<w:ins "), document.count("<w:del "), comments.count("<w:comment ")


async def test_the_file_has_what_is_open_and_another_etag_when_that_changes(doc: Doc) -> None:
    first = await word(doc)
    assert marks(first.content) == (1, 1, 1)
    assert (await word(doc, **{"If-None-Match": first.headers["etag"]})).status_code == 304
    listed = await doc.served.http.get(f"/artifacts/{doc.context}/{doc.artifact_id}/annotations")
    suggestion = listed.json()["first"]["items"][0]["canvas"]
    await doc.run(doc.operation("reject", annotationId=suggestion["annotationId"]))
    second = await word(doc, **{"If-None-Match": first.headers["etag"]})
    assert (second.status_code, marks(second.content)) == (200, (0, 0, 1))


async def test_the_file_of_a_version_and_other_formats_have_the_text_alone(doc: Doc) -> None:
    assert marks((await word(doc, "/versions/1")).content) == (0, 0, 0)
    latex = await doc.served.http.get(f"/artifacts/{doc.context}/{doc.artifact_id}", params={"format": "latex"})
    assert "Tide pools" in latex.text
    assert "Rock" not in latex.text
    assert "Which?" not in latex.text


async def test_a_long_text_with_comments_is_refused_with_what_to_do_instead(
    doc: Doc, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("a2a_canvas.server.protocols.artifacts.conversions.MAX_MARKED_TEXT", 30)
    refused = await word(doc)
    assert refused.status_code == 422
    assert refused.json()["error"]["message"] == (
        "The text has 32 bytes with its comments and suggestions; up to 30 can be converted. "
        "…/versions/{n}?format=docx is without them."
    )
