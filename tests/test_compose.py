"""compose.yaml and its load balancer's file, as far as they can be checked without an engine."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from a2a_canvas.server.settings.settings import PREFIX, Settings
from tests.command_line import parsed

ROOT = Path(__file__).parent.parent
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = [name for name, service in SERVICES.items() if service["image"] == "a2a-canvas"]
HEALTH_CHECKS = {name for name, service in SERVICES.items() if "test" in service.get("healthcheck", {})} | {"server"}
"""The image has one for the servers."""
CADDYFILE = (ROOT / "deploy" / "Caddyfile").read_text()


def database_of(service: str, password: str = "s3cret") -> str:
    written: str = SERVICES[service]["environment"]["A2A_CANVAS_DATABASE"]
    return re.sub(r"\$\{POSTGRES_PASSWORD:\?[^}]*\}", password, written)


def test_three_servers_and_one_upgrade_use_the_same_image_and_the_same_database() -> None:
    assert OURS == ["upgrade", "server"]
    assert SERVICES["server"]["deploy"]["replicas"] == 3
    assert SERVICES["upgrade"]["build"] == SERVICES["server"]["build"]
    assert SERVICES["server"]["build"]["context"] == "."
    assert len({database_of(name) for name in OURS}) == 1


def test_the_database_is_the_one_that_postgresql_makes() -> None:
    made = SERVICES["postgresql"]["environment"]
    url = Settings(database=database_of("server")).database
    assert url == f"postgresql://{made['POSTGRES_USER']}:s3cret@postgresql/{made['POSTGRES_DB']}"
    assert (
        made["POSTGRES_PASSWORD"]
        == re.findall(r"\$\{[^}]*\}", SERVICES["server"]["environment"][f"{PREFIX}DATABASE"])[0]
    )


def test_every_image_can_be_given_by_its_digest() -> None:
    [name, image] = re.findall(r"^ARG (\w+)=(.+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)[0]
    assert SERVICES["server"]["build"]["args"] == {name: f"${{{name}:-{image}}}"}
    others = {name: service["image"] for name, service in SERVICES.items() if name not in OURS}
    assert others == {"postgresql": "${POSTGRES_IMAGE:-postgres:17}", "balancer": "${CADDY_IMAGE:-caddy:2}"}


def test_no_password_is_written_down() -> None:
    text = (ROOT / "compose.yaml").read_text()
    assert re.findall(r"(?i)password\w*: +(?!\$\{)\S+", text) == []
    assert re.findall(r"://[^:/\s]+:(?!\$\{)[^@\s]*@", text) == []


def test_every_setting_is_one() -> None:
    fields = {PREFIX + field.upper() for field in Settings.model_fields}
    given = {name for service in OURS for name in SERVICES[service]["environment"] if name.startswith(PREFIX)}
    assert given <= fields


def test_the_servers_take_what_tells_callers_apart_from_the_shell() -> None:
    environment = SERVICES["server"]["environment"]
    assert environment["A2A_CANVAS_SHARED_TOKEN"] is environment["A2A_CANVAS_API_KEYS"] is None
    assert "A2A_CANVAS_ALLOW_ANONYMOUS" not in environment


def test_the_command_of_the_upgrade_is_one() -> None:
    program, *arguments = SERVICES["upgrade"]["command"]
    assert program == "a2a-canvas"
    assert parsed(*arguments)[0] == "db upgrade"


def test_the_servers_start_when_the_upgrade_is_done_and_that_when_the_database_is_there() -> None:
    assert SERVICES["server"]["depends_on"] == {"upgrade": {"condition": "service_completed_successfully"}}
    assert SERVICES["upgrade"]["depends_on"] == {"postgresql": {"condition": "service_healthy"}}
    assert SERVICES["upgrade"]["restart"] == "no"


@pytest.mark.parametrize("service", SERVICES)
def test_who_waits_for_health_waits_for_a_service_that_has_a_health_check(service: str) -> None:
    for other, how in SERVICES[service].get("depends_on", {}).items():
        assert other in SERVICES
        assert how["condition"] != "service_healthy" or other in HEALTH_CHECKS


def test_an_init_reaps_what_workers_leave_behind() -> None:
    assert SERVICES["server"]["init"]


def test_a_server_has_time_to_stop() -> None:
    grace = int(SERVICES["server"]["stop_grace_period"].removesuffix("s"))
    assert grace > Settings.model_fields["shutdown_grace"].default + 5


def test_what_is_published_is_on_the_loopback_alone_and_only_the_balancers() -> None:
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["balancer"]
    assert all(port.startswith("127.0.0.1:") for port in SERVICES["balancer"]["ports"])


@pytest.mark.parametrize("service", OURS)
def test_our_containers_have_no_rights_and_write_nothing_but_their_volumes(service: str) -> None:
    given = SERVICES[service]
    assert (given["read_only"], given["tmpfs"], given["cap_drop"]) == (True, ["/tmp"], ["ALL"])
    assert given["security_opt"] == ["no-new-privileges:true"]


def test_the_metrics_are_on_a_port_that_is_not_published() -> None:
    port = SERVICES["server"]["environment"]["A2A_CANVAS_METRICS_PORT"]
    assert all(port not in published for published in SERVICES["balancer"]["ports"])
    assert int(port) not in sites()


def test_the_database_outlives_its_container() -> None:
    named = [volume.split(":")[0] for volume in SERVICES["postgresql"]["volumes"]]
    assert named == list(COMPOSE["volumes"])


# ------------------------------------------------------------------- the load balancer


def sites() -> dict[int, str]:
    """The balancer's sites by their ports."""
    found = re.findall(r"^(?:http://)?:(\d+) \{\n(.*?)^\}", CADDYFILE, re.MULTILINE | re.DOTALL)
    return {int(port): text for port, text in found}


def test_the_balancer_reads_the_file_that_is_there() -> None:
    [volume] = SERVICES["balancer"]["volumes"]
    source, target, mode = volume.split(":")
    assert (ROOT / source).read_text() == CADDYFILE
    assert (target, mode) == ("/etc/caddy/Caddyfile", "ro")


def test_it_has_a_site_for_every_port_that_is_published_and_hands_it_to_that_port_of_the_servers() -> None:
    published = {int(port.split(":")[2]): int(port.split(":")[1]) for port in SERVICES["balancer"]["ports"]}
    environment = SERVICES["server"]["environment"]
    served = {Settings.model_fields["port"].default, int(environment["A2A_CANVAS_GRPC_PORT"])}
    assert published.keys() == published.keys() & sites().keys() == served
    for port, text in sites().items():
        assert re.findall(r"dynamic a (\w+) (\d+)", text) == [("server", str(port))]


def test_the_card_has_the_address_that_is_published() -> None:
    assert SERVICES["server"]["environment"]["A2A_CANVAS_PUBLIC_URL"] == "http://localhost:8000"
    assert 8000 in sites()


def test_grpc_is_not_in_the_card_that_google_adk_would_refuse_with_it() -> None:
    assert "A2A_CANVAS_PUBLIC_GRPC" not in SERVICES["server"]["environment"]


def test_it_buffers_nothing_and_limits_no_stream() -> None:
    assert "flush_interval -1" in sites()[8000]
    assert not re.search(r"\w*(?:read|write|response_header|idle)_timeout", CADDYFILE)


def test_grpc_is_flushed_by_its_length_alone_or_a_refusal_would_be_no_status() -> None:
    grpc_port = int(SERVICES["server"]["environment"]["A2A_CANVAS_GRPC_PORT"])
    assert "flush_interval" not in sites()[grpc_port]


def test_grpc_is_http_2_without_tls_on_both_sides() -> None:
    grpc_port = SERVICES["server"]["environment"]["A2A_CANVAS_GRPC_PORT"]
    assert "versions h2c" in sites()[int(grpc_port)]
    assert re.search(rf"servers :{grpc_port} \{{\s+protocols [^\n]*h2c", CADDYFILE)


def test_its_health_check_asks_it_for_a_servers_health() -> None:
    assert "http://127.0.0.1:8000/healthz" in json.dumps(SERVICES["balancer"]["healthcheck"]["test"])
