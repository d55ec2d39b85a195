"""`/metrics`: what a scraper reads, and on which port."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse
from starlette.applications import Starlette

from a2a_canvas.server.accounts.api_key import new_key
from a2a_canvas.server.app import create_app
from a2a_canvas.server.metrics import COMMIT_BOUNDS, NAMESPACE, Metrics
from a2a_canvas.server.protocols.edge.metrics_routes import metrics_route
from a2a_canvas.server.settings.settings import Settings
from a2a_canvas.store.errors import Unavailable
from tests.database_fixtures import sqlite_url
from tests.free_port import free_port
from tests.metric_values import all_series
from tests.server.app_server import envelope, serving


async def scrape(metrics: Metrics, accept: str = "") -> httpx.Response:
    app = Starlette(routes=[metrics_route(metrics)])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as client:
        return await client.get("/metrics", headers={"Accept": accept})


def filled() -> Metrics:
    metrics = Metrics()
    for series in all_series(metrics):
        metric: Any = series.metric.labels(*("x" for _ in series.labels)) if series.labels else series.metric
        if series.kind == "histogram":
            metric.observe(0.02)
        else:
            metric.inc()
    return metrics


async def test_every_metric_is_read_with_its_value_and_labels() -> None:
    metrics = filled()
    found = {sample.name: sample for family in parse((await scrape(metrics)).text) for sample in family.samples}
    for series in all_series(metrics):
        sample = found[f"{series.name}_count" if series.kind == "histogram" else series.name]
        assert (sample.value, set(sample.labels)) == (1, set(series.labels))
    assert found["a2a_canvas_info"].labels.keys() == {"version"}
    assert found["process_resident_memory_bytes"].value > 0


async def test_a_histogram_has_its_bounds_and_infinity() -> None:
    metrics = filled()
    samples = [each for family in parse((await scrape(metrics)).text) for each in family.samples]
    buckets = {each.labels["le"]: each.value for each in samples if each.name == "a2a_canvas_commit_seconds_bucket"}
    assert [float(bound) for bound in buckets] == [*COMMIT_BOUNDS, float("inf")]
    assert (buckets["0.01"], buckets["0.025"], buckets["+Inf"]) == (0, 1, 1)


async def test_a_scraper_that_prefers_openmetrics_gets_it() -> None:
    response = await scrape(filled(), "application/openmetrics-text; version=1.0.0")
    assert response.headers["content-type"].startswith("application/openmetrics-text")
    assert len([*parse_openmetrics(response.text)]) > 15


async def test_it_is_never_cached() -> None:
    assert (await scrape(Metrics())).headers["cache-control"] == "no-store"


async def test_what_nobody_counts_is_read_before() -> None:
    metrics = Metrics()

    async def refresh() -> None:
        metrics.outbox_depth.set(7)

    metrics.refreshers.append(refresh)
    assert "\na2a_canvas_outbox_notifications 7.0\n" in (await scrape(metrics)).text


@pytest.mark.parametrize("error", [Unavailable("no database"), ValueError("secret")])
async def test_what_cannot_be_read_does_not_hide_the_rest(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics()

    async def refresh() -> None:
        raise error

    metrics.refreshers.append(refresh)
    response = await scrape(metrics)
    assert response.status_code == 200
    assert "secret" not in response.text
    assert bool(caplog.records) == isinstance(error, ValueError)


async def test_a_port_of_its_own_has_the_metrics_and_nothing_else() -> None:
    port = free_port()
    async with serving(grpc=False, database="memory", metrics_port=port) as served, httpx.AsyncClient() as client:
        own = f"http://127.0.0.1:{port}"
        assert "a2a_canvas_turns_running 0.0" in (await client.get(f"{own}/metrics")).text
        assert (await client.get(f"{own}/artifacts")).status_code == 404
        assert (await served.http.get("/metrics")).status_code == 404
    with pytest.raises(httpx.ConnectError):
        await httpx.AsyncClient().get(f"{own}/metrics")


LOCAL: dict[str, Any] = {"host": "127.0.0.1"}
PUBLIC: dict[str, Any] = {"host": "0.0.0.0", "allow_anonymous": True}
KEYED: dict[str, Any] = {"shared_token": "s3cret" * 5}


@pytest.mark.parametrize(
    ("settings", "token", "status"),
    [
        (LOCAL, "", 200),
        (LOCAL | {"public_url": "https://agent.example.com"}, "", 403),
        (PUBLIC, "", 403),
        (LOCAL | KEYED, "", 401),
        (LOCAL | KEYED, KEYED["shared_token"], 200),
        (LOCAL | KEYED | {"allow_anonymous": True}, "", 403),
        (PUBLIC | KEYED, KEYED["shared_token"], 200),
        (PUBLIC | {"metrics_port": 9100}, "", 404),
    ],
)
async def test_on_the_port_for_all_they_are_for_users_and_else_for_this_machine_alone(
    settings: dict[str, Any], token: str, status: int
) -> None:
    app = create_app(Settings(database="memory", model="rehearsal", **settings))
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        response = await client.get("/metrics", headers=headers)
    assert response.status_code == status
    assert ("a2a_canvas_turns_running" in response.text) == (status == 200)


MOVED = (
    *("turns_total", "first_artifact_byte_seconds_count", "entry_delay_seconds_count", "open_streams"),
    *("commit_seconds_count", "written_bytes_total", "model_calls_total", "tool_calls_total", "requests_refused_total"),
)
"""What a streamed turn that writes an artifact, and a refused request, change; `open_streams` has a series then."""


async def test_a_run_moves_the_metrics_and_leaves_nothing_of_its_user_in_them(tmp_path: Path) -> None:
    key, context = new_key("ann"), "context-of-ann"
    headers = {"Authorization": f"Bearer {key}", "A2A-Version": "1.0"}
    message = {"messageId": "message-of-ann", "role": "ROLE_USER", "contextId": context}
    asked = envelope("SendStreamingMessage", {"message": message | {"parts": [{"text": "write annsreport"}]}})
    settings = {"api_keys": f"ann-the-user={key}", "database": sqlite_url(tmp_path)}
    async with serving(grpc=False, **settings) as served:
        answer = await served.http.post("/", json=asked, headers=headers)
        task_id = re.findall(r'"taskId": ?"([^"]+)"', answer.text)[-1]
        for path in ("/artifacts/none-of-ann", "/rest/tasks/task-of-ann", "/path-of-ann", "/rest/path-of-ann"):
            assert (await served.http.get(path, headers=headers)).status_code == 404
        assert "error" in (await served.http.post("/", json=envelope("MethodOfAnn", {}), headers=headers)).json()
        body = (await served.http.get("/metrics", headers=headers)).text
    samples = [each for family in parse(body) for each in family.samples]
    for name in MOVED:
        found = [each for each in samples if each.name == f"{NAMESPACE}_{name}"]
        assert name == "open_streams" or sum(each.value for each in found) > 0, name
        assert found, name
    for secret in ("ann", key, task_id, context):
        assert secret.lower() not in body.lower()
