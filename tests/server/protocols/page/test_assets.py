"""The files of the page: which there are, what names them, and how they are sent."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import zstandard

from a2a_canvas.server.protocols.page import assets
from a2a_canvas.server.protocols.page.assets import IDENTITY, Asset, media_type_of, read_assets

FILES = {
    "index.html": "<script src={assets}/main.js>",
    "program.html": "<script>wait()</script>",
    "embed.html": "<script src={assets}/embed/embed.js>",
    "main.js": "run()",
    "style/page.css": "p {}",
    "icon.png": "\x89",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_they_are_found_below_the_folder_with_their_types(folder: Path) -> None:
    assert {name: asset.media_type for name, asset in read_assets({"": folder}).files.items()} == {
        "icon.png": "image/png",
        "main.js": "text/javascript; charset=utf-8",
        "style/page.css": "text/css; charset=utf-8",
    }


@pytest.mark.parametrize("name", ["main.js~", ".main.js.swp", "main.pyc", "README", "main.ts"])
def test_what_is_of_no_known_type_is_none_of_them(folder: Path, name: str) -> None:
    before = read_assets({"": folder})
    (folder / name).write_text("left behind")
    assert media_type_of(name) == ""
    assert read_assets({"": folder}) == before


def test_the_page_has_the_address_of_its_files(folder: Path) -> None:
    read = read_assets({"": folder})
    assert read.index.body.decode() == f"<script src=page/{read.digest}/main.js>"


def test_the_page_for_frames_of_others_has_the_address_of_its_files_and_is_none_of_them(folder: Path) -> None:
    read = read_assets({"": folder})
    assert read.embed.body == f"<script src=page/{read.digest}/embed/embed.js>".encode()
    assert "embed.html" not in read.files


def test_the_frame_of_programs_is_none_of_the_files(folder: Path) -> None:
    assert read_assets({"": folder}).program.body == b"<script>wait()</script>"


def test_folders_are_put_together_each_below_its_prefix(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    libraries = tmp_path_factory.mktemp("libraries")
    (libraries / "editor.js").write_text("edit()")
    read = read_assets({"": folder, "vendor/": libraries})
    assert sorted(read.files) == ["icon.png", "main.js", "style/page.css", "vendor/editor.js"]
    assert read.digest != read_assets({"": folder}).digest


def test_the_digest_is_that_of_all_names_and_contents(folder: Path) -> None:
    digests = {read_assets({"": folder}).digest, read_assets({"": folder}).digest}
    assert len(digests) == 1
    (folder / "main.js").write_text("run();")
    digests.add(read_assets({"": folder}).digest)
    (folder / "main.js").rename(folder / "start.js")
    digests.add(read_assets({"": folder}).digest)
    (folder / "index.html").write_text("")
    digests.add(read_assets({"": folder}).digest)
    assert len(digests) == 4


def test_a_text_is_available_in_every_coding_and_a_picture_as_it_is() -> None:
    text, picture = Asset(b"run();" * 100, media_type_of("a.js")), Asset(b"\x89PNG", media_type_of("a.png"))
    assert (text.codings, picture.codings) == (("zstd", "gzip", IDENTITY), (IDENTITY,))
    assert gzip.decompress(text.encode("gzip")) == text.body
    assert zstandard.ZstdDecompressor().decompress(text.encode("zstd")) == text.body
    assert text.encode(IDENTITY) == text.body


def test_it_is_compressed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bytes] = []
    monkeypatch.setattr(assets, "CODINGS", {"gzip": lambda body: made.append(body) or b"small"})
    asset = Asset(b"run()", media_type_of("a.js"))
    assert [asset.encode("gzip") for _ in range(3)] == [b"small"] * 3
    assert made == [b"run()"]
