"""The credentials that Claude's provider gets, over real connections."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_canvas.server.agent.model import MessageStop
from a2a_canvas.server.agent.models.claude import ClaudeModel, client_from
from tests.server.agent.models.loopback_provider import END, STREAM, Provider, chunk
from tests.server.agent.models.provider_answers import said


def recorded(name: str) -> bytes:
    return (Path(__file__).parent / "fixtures" / f"{name}.sse").read_bytes()


async def test_a_password_in_the_address_is_sent() -> None:
    provider = Provider(STREAM + chunk(recorded("text")) + END)
    async with provider:
        url = provider.url.replace("//", "//me:secret@")
        model = ClaudeModel(client=client_from({"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": url}))
        assert isinstance((await said(model))[-1], MessageStop)
        await model.aclose()
    assert b"authorization: Basic " in provider.requests[0]


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"ANTHROPIC_API_KEY": "key"}, b"key"),
        ({"ANTHROPIC_AUTH_TOKEN": "token"}, b"token"),
        ({"ANTHROPIC_API_KEY": "key", "ANTHROPIC_AUTH_TOKEN": "token"}, b"key"),
        ({}, b"none"),
    ],
)
async def test_key_and_token_are_sent_as_docs_models_says(given: dict[str, str], sent: bytes) -> None:
    async with Provider(STREAM + chunk(recorded("text")) + END) as provider:
        model = ClaudeModel(client=client_from({"ANTHROPIC_BASE_URL": provider.url, **given}))
        assert isinstance((await said(model))[-1], MessageStop)
        await model.aclose()
    [head, _] = provider.requests[0].lower().split(b"\r\n\r\n", 1)
    credentials = [line for line in head.split(b"\r\n") if line.startswith((b"authorization:", b"x-api-key:"))]
    assert credentials == [b"authorization: bearer " + sent]
