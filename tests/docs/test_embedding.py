"""docs/embedding.md: its programs run as shown, mounted with the lifespan, and without it say what is missing."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from tests.docs.pages import ADDRESS, blocks, page

PAGE = page("embedding")
MOUNTED, OVER_AGUI = blocks(PAGE, "python")


def names_of(code: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(code, names)
    return names


def test_the_lifespan_runs_in_a_starlette_application_as_shown() -> None:
    with TestClient(names_of(MOUNTED)["app"], base_url=ADDRESS) as client:
        assert client.get("/reef/readyz").status_code == 200
        card = client.get("/reef/.well-known/agent-card.json").json()
    assert all(each["url"].startswith(f"{ADDRESS}/reef") for each in card["supportedInterfaces"])


def test_the_lifespan_runs_in_a_fastapi_application_as_shown() -> None:
    names = names_of(MOUNTED)
    assert '`app = FastAPI(lifespan=lifespan)` and `app.mount("/reef", reef)`' in PAGE
    app = FastAPI(lifespan=names["lifespan"])
    app.mount("/reef", names["reef"])
    with TestClient(app, base_url=ADDRESS) as client:
        assert client.get("/reef/readyz").status_code == 200


@asynccontextmanager
async def nothing(app: Starlette):
    yield


@pytest.mark.parametrize("kind", [Starlette, FastAPI])
def test_without_the_lifespan_every_operation_says_what_is_missing(kind: type[Starlette]) -> None:
    app = kind(routes=[Mount("/reef", names_of(MOUNTED)["reef"])], lifespan=nothing)
    with TestClient(app, base_url=ADDRESS) as client:
        assert client.get("/reef/readyz").status_code == 503
        answers = [
            client.post("/reef/", json={}),
            client.get("/reef/rest/tasks"),
            client.get("/reef/artifacts"),
            client.post("/reef/canvas/stream", json={}),
        ]
    for answer in answers:
        said = answer.json()["error"]["message"]
        assert (answer.status_code, said.split(":")[0]) == (503, "create_app's lifespan has not run")
        assert "app.router.lifespan_context(app)" in said


def test_an_agent_over_agui_is_made_as_shown() -> None:
    assert isinstance(names_of(OVER_AGUI)["app"], Starlette)
