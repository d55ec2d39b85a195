"""Which attached files are images or documents, and what replaces them."""

import pytest

from a2a_canvas.server.agent.attachments import medium_of, without_media
from a2a_canvas.server.agent.model import Attachment, ModelContent, ModelMessage, ModelRequest, ModelText

PNG = b"\x89PNG\r\n\x1a\n rest"
TOO_LARGE = PNG + bytes(4 * 1024 * 1024)


def user(*content: ModelContent) -> ModelMessage:
    return ModelMessage("user", content)


def assistant(*content: ModelContent) -> ModelMessage:
    return ModelMessage("assistant", content)


@pytest.mark.parametrize(
    ("file", "media_type"),
    [
        (Attachment("image/png", content=PNG), "image/png"),
        (Attachment("IMAGE/JPG; q=1", content=PNG), "image/png"),
        (Attachment("application/pdf", content=b"\n%PDF-1.7"), "application/pdf"),
        (Attachment("image/png", url="https://example.com/a"), "image/png"),
        (Attachment("image/png", url="http://example.com/a"), None),
        (Attachment("image/png", content=b"no image"), None),
        (Attachment("image/png", content=TOO_LARGE), None),
        (Attachment("application/pdf", content=bytes(1024) + b"%PDF-"), None),
        (Attachment("text/plain", content=PNG), None),
        (Attachment("image/svg+xml", content=b"<svg/>"), None),
    ],
)
def test_the_bytes_confirm_what_an_image_or_a_document_is(file: Attachment, media_type: str | None) -> None:
    assert medium_of(file) == media_type


def test_images_and_documents_can_be_taken_out_of_a_request_and_are_named_instead() -> None:
    text = Attachment("text/plain", "a.txt", content=b"a")
    shown = Attachment("image/png", "a.png", content=PNG)
    linked = Attachment("application/pdf", "a.pdf", url="https://example.com/a")
    request = ModelRequest("s", (user(ModelText("See."), shown, text), assistant(ModelText("Yes.")), user(linked)))

    assert without_media(request) == ModelRequest(
        "s",
        (
            user(ModelText("See."), ModelText("[Attached file: a.png (image/png)]"), text),
            assistant(ModelText("Yes.")),
            user(ModelText("[Attached file: a.pdf (application/pdf) at https://example.com/a]")),
        ),
    )
