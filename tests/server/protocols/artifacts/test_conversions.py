"""`?format=docx` and others of an artifact or a version: what a client gets, and what it is refused."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette

from a2a_canvas.server.protocols.artifacts.documents.document_formats import DOCUMENT_FORMATS
from a2a_canvas.server.protocols.artifacts.documents.pandoc import MAX_TEXT, Pandoc
from a2a_canvas.server.protocols.artifacts.routes import artifact_routes
from a2a_canvas.server.protocols.guard.checks import BodyLimits
from a2a_canvas.store.changes import ReplaceParts
from a2a_canvas.store.models import DataPart, text_part
from tests.pandoc_program import need_pandoc, program, text_in
from tests.server.protocols.artifacts.artifact_fixtures import ArtifactHarness

COUNTING = (
    """cat > /dev/null; echo run >> {log}; echo '{{"pandoc-api-version": [1, 22], "meta": {{}}, "blocks": []}}'"""
)


class Harness(ArtifactHarness):
    """With a pandoc of the test's choice."""

    pandoc = Pandoc()

    @property
    def app(self) -> Starlette:
        return Starlette(routes=artifact_routes(self.contexts, self.sharing, BodyLimits(), pandoc=self.pandoc))

    async def write(self, text: str, name: str = "Été.md", media_type: str = "") -> None:
        await self.do(ReplaceParts((text_part(text, media_type),), name=name, last_chunk=True))


@pytest.fixture
async def harness() -> Harness:
    """An artifact with the versions one and two."""
    harness = Harness()
    await harness.write("# one\n")
    await harness.write("# two\n")
    return harness


def error_of(response: httpx.Response) -> tuple[int, str, str]:
    """(code, reason, message)."""
    error = response.json()["error"]
    return response.status_code, error["details"][0]["reason"], error["message"]


@pytest.mark.parametrize("form", DOCUMENT_FORMATS.values(), ids=DOCUMENT_FORMATS)
async def test_a_markdown_artifact_and_its_versions_are_documents(harness: Harness, form) -> None:  # type: ignore[no-untyped-def]
    need_pandoc()
    answer = await harness.get(f"ctx/doc?format={form.name}")
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"].startswith(form.media_type)
    assert answer.headers["Content-Disposition"].endswith(f"filename*=UTF-8''%C3%89t%C3%A9{form.extension}")
    assert answer.headers["Content-Security-Policy"] == "sandbox; default-src 'none'"
    assert "two" in text_in(answer.content, form.name)
    version = await harness.get(f"ctx/doc/versions/1?format={form.name}")
    assert "one" in text_in(version.content, form.name)


async def test_who_has_the_document_costs_no_conversion(harness: Harness, tmp_path: Path) -> None:
    log = tmp_path / "log"
    harness.pandoc = Pandoc(program(tmp_path, COUNTING.format(log=log)))
    answer = await harness.get("ctx/doc?format=docx")
    tag = answer.headers["ETag"]
    assert (answer.status_code, log.read_text().count("run")) == (200, 2)
    again = await harness.get("ctx/doc?format=docx", If_None_Match=tag)
    assert (again.status_code, again.content, log.read_text().count("run")) == (304, b"", 2)


async def test_another_text_another_format_and_another_pandoc_have_another_etag(
    harness: Harness, tmp_path: Path
) -> None:
    harness.pandoc = Pandoc(program(tmp_path, COUNTING.format(log=tmp_path / "log")))
    paths = ("ctx/doc?format=docx", "ctx/doc?format=odt", "ctx/doc/versions/1?format=docx")
    tags = [(await harness.get(path)).headers["ETag"] for path in paths]
    harness.pandoc = Pandoc(program(tmp_path, COUNTING.format(log=tmp_path / "log"), "pandoc 3.2"))
    tags.append((await harness.get(paths[0])).headers["ETag"])
    assert len({*tags}) == 4


async def test_without_pandoc_the_answer_says_what_to_install(harness: Harness) -> None:
    harness.pandoc = Pandoc("no-such-program")
    assert error_of(await harness.get("ctx/doc?format=docx")) == (
        501,
        "CONVERTER_MISSING",
        "This server has no pandoc. Its operator can install it (Debian: apt-get install pandoc; 2.15 or newer), "
        "without a restart.",
    )


async def test_what_is_not_markdown_is_406(harness: Harness) -> None:
    await harness.write("a,b\n", "data.csv")
    said = "Only a Markdown text can be docx. Ask for application/json, or for ?raw=1."
    assert error_of(await harness.get("ctx/doc?format=docx"))[::2] == (406, said)
    await harness.do(ReplaceParts((DataPart([1], size=3),)), artifact="data")
    assert (await harness.get("ctx/data?format=docx")).status_code == 406


async def test_another_format_is_400_and_names_those_that_there_are(harness: Harness) -> None:
    said = "format is 'pdf' and must be json, critic, docx, odt, epub or latex."
    assert error_of(await harness.get("ctx/doc?format=pdf"))[::2] == (400, said)
    assert (await harness.get("ctx/doc?format=json")).json()["artifactId"] == "doc"


async def test_a_text_beyond_the_limit_is_422_before_pandoc_runs(harness: Harness, tmp_path: Path) -> None:
    harness.pandoc = Pandoc(program(tmp_path, f"touch {tmp_path}/ran"))
    await harness.write("x" * (MAX_TEXT + 1))
    code, reason, said = error_of(await harness.get("ctx/doc?format=docx"))
    assert (code, reason) == (422, "CONVERSION_FAILED")
    assert said == "The text has 1,048,577 bytes; up to 1,048,576 can be converted. ?raw=1 is the text itself."
    assert not (tmp_path / "ran").exists()


async def test_a_pandoc_that_fails_is_422(harness: Harness, tmp_path: Path) -> None:
    harness.pandoc = Pandoc(program(tmp_path, "exit 1"))
    expected = (422, "CONVERSION_FAILED", "pandoc failed. ?raw=1 is the text itself.")
    assert error_of(await harness.get("ctx/doc?format=docx")) == expected


async def test_too_many_conversions_are_503_with_retry_after(
    harness: Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.pandoc = Pandoc(program(tmp_path, "exit 1"))
    monkeypatch.setattr("a2a_canvas.server.protocols.artifacts.documents.pandoc.WAITING", 0)
    answer = await harness.get("ctx/doc?format=docx")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")


@pytest.mark.parametrize("path", ["ctx/nothing?format=docx", "ctx/doc/versions/9?format=docx", "none/doc?format=docx"])
async def test_what_is_not_there_is_404(harness: Harness, path: str) -> None:
    assert (await harness.get(path)).status_code == 404
