"""docs/observability.md has the metrics of the server and the checks of the doctor."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import get_args

import yaml

from a2a_canvas.server.agent.events import State
from a2a_canvas.server.agent.model import ErrorKind, StopReason
from a2a_canvas.server.agent.models.wrappers import provider_of
from a2a_canvas.server.metrics import Metrics
from a2a_canvas.server.protocols.edge.request_metrics import binding_of
from tests.docs.metrics_table import generated
from tests.docs.pages import ROOT, blocks, page, rows, section
from tests.metric_values import all_series

PAGE = page("observability")


def test_the_table_of_metrics_is_the_one_that_is_generated() -> None:
    assert generated(PAGE) == PAGE, "run `make docs`"


def test_the_labels_of_the_metrics_have_the_values_of_the_code() -> None:
    told = {row[0].strip("`"): set(re.findall(r"`([\w+-]+)`", row[1])) for row in label_rows()}
    assert told.keys() == {label for series in all_series(Metrics()) for label in series.labels}
    assert told["state"] == {state.value for state in State if state.settled}
    assert told["kind"] == set(get_args(ErrorKind))
    assert told["stop_reason"] == set(get_args(StopReason))
    names = ("claude-x", "openai:x", "ollama:x", "script:x.yaml", "rehearsal")
    assert told["provider"] == {provider_of(name) for name in names}
    paths = ("/", "/rest/x", "/canvas/stream", "/artifacts", "/x")
    assert told["binding"] == {*(binding_of("POST", path) for path in paths), "GRPC"}
    assert told["reason"] <= {status.name.lower() for status in HTTPStatus}


def label_rows() -> list[list[str]]:
    return rows("# Labels\n" + section(PAGE, "Metrics").partition("<!-- End of the metrics")[2], "Labels")


def test_alerts_and_scraping_name_metrics_that_there_are() -> None:
    scraping, alerts = (yaml.safe_load(block) for block in blocks(section(PAGE, "Metrics"), "yaml"))
    [job] = scraping["scrape_configs"]
    assert job["static_configs"][0]["targets"] == ["127.0.0.1:9100"]
    [group] = alerts["groups"]
    named = {name for rule in group["rules"] for name in re.findall(r"a2a_canvas_\w+", rule["expr"])}
    assert {name.removesuffix("_bucket") for name in named} <= {series.name for series in all_series(Metrics())}


def test_the_checks_of_the_doctor_are_those_of_the_code() -> None:
    source = "".join(path.read_text() for path in (ROOT / "server/commands/doctor").glob("*.py"))
    made = set(re.findall(r'\b(?:ok|warning|failure)\)?\(\s*"(\w+)"', source))
    told = re.findall(r"^\| (`[^|]*`) \|", section(PAGE, "Doctor"), re.MULTILINE)
    assert {name for names in told for name in re.findall(r"`(\w+)`", names)} == made
