"""What the handler decides by itself; what it does with a runtime behind it is in tests/server/test_app.py."""

import httpx
import pytest

from a2a_canvas.server.agent.models.rehearsal import Rehearsal
from a2a_canvas.server.app import create_app
from a2a_canvas.server.settings import Settings


async def send(part: dict[str, str]) -> dict[str, object]:
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [part]}
    params = {"message": message, "configuration": {"returnImmediately": True}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
    app = create_app(Settings(database="memory"), Rehearsal(delay=0))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://localhost") as client,
    ):
        answer: dict[str, object] = (await client.post("/", json=body, headers={"A2A-Version": "1.0"})).json()
        return answer


@pytest.mark.parametrize(
    "media_type", ["", "text/plain", "text/plain; charset=utf-8", "TEXT/CSV", "text/x-python", "IMAGE/PNG"]
)
async def test_any_text_and_what_the_card_lists_is_taken_however_it_is_written(media_type: str) -> None:
    assert "result" in await send({"raw": "aGk=", "mediaType": media_type})


@pytest.mark.parametrize(
    "media_type", ["application/json", "application/vnd.x+json; v=1", "application/zip", "nonsense"]
)
async def test_data_is_json_whatever_its_media_type(media_type: str) -> None:
    assert "result" in await send({"data": {}, "mediaType": media_type})


@pytest.mark.parametrize("media_type", ["application/zip", "image/tiff; x=1", "nonsense"])
async def test_other_media_types_are_refused_with_those_that_are_not(media_type: str) -> None:
    error = (await send({"raw": "aGk=", "mediaType": media_type}))["error"]
    assert isinstance(error, dict)
    assert error["code"] == -32005
    assert "Send text, or one of application/json" in error["message"]
