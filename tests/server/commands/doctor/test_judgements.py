"""What the doctor makes of figures and answers: ok, to look at, or failed, and then always what to do."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_canvas.server.accounts.api_key import KeyCount
from a2a_canvas.server.commands.database_check import ConnectionLimit
from a2a_canvas.server.commands.doctor.findings import Finding, Verdict
from a2a_canvas.server.commands.doctor.judgements import (
    judge_anonymous,
    judge_card,
    judge_clocks,
    judge_credentials,
    judge_grpc,
    judge_latency,
    judge_limits,
    judge_open_files,
    judge_openness,
    judge_space,
    judge_standbys,
    judge_trust,
    judge_workers,
)
from a2a_canvas.server.settings.settings import Settings

OK, WARNING, FAILED = Verdict.OK, Verdict.WARNING, Verdict.FAILED
EVERYWHERE = {"host": "0.0.0.0"}
NAMED = {"public_url": "https://agent.example.com"}


def settings(**given: Any) -> Settings:
    return Settings(**given)


def refusing(status: int) -> dict[str, int]:
    return {"/": status, "/artifacts": 401}


@pytest.mark.parametrize(
    ("finding", "status"),
    [
        (judge_latency(0.002), OK),
        (judge_latency(0.2), WARNING),
        (judge_space(5 * 2**30, "/data"), OK),
        (judge_space(2**29, "/data"), WARNING),
        (judge_space(2**20, "/data"), FAILED),
        (judge_clocks(-1.0, "the database"), OK),
        (judge_clocks(30.0, "the database"), WARNING),
        (judge_clocks(-30.0, "the database"), WARNING),
        (judge_standbys("db2"), OK),
        (judge_standbys(""), WARNING),
        (judge_open_files(1024, settings()), OK),
        (judge_open_files(1024, settings(grpc_port=9000)), WARNING),
        (judge_open_files(256, settings()), WARNING),
        (judge_workers(4, ConnectionLimit(100, 3)), OK),
        (judge_workers(8, ConnectionLimit(100, 3)), WARNING),
        (judge_workers(17, ConnectionLimit(100, 3)), FAILED),
        (judge_card(settings()), OK),
        (judge_card(settings(**EVERYWHERE)), WARNING),
        (judge_card(settings(**EVERYWHERE, **NAMED)), OK),
        (judge_card(settings(public_url="http://agent.example.com")), WARNING),
        (judge_card(settings(public_url="http://127.0.0.1:8000")), OK),
        (judge_anonymous(refusing(401), local=False), OK),
        (judge_anonymous(refusing(403), local=False), OK),
        (judge_anonymous(refusing(200), local=False), FAILED),
        (judge_anonymous(refusing(200), local=True), WARNING),
        (judge_anonymous(refusing(502), local=False), WARNING),
        (judge_grpc("h:1", "UNAUTHENTICATED", "", local=False), OK),
        (judge_grpc("h:1", "PERMISSION_DENIED", "OK", local=False), OK),
        (judge_grpc("h:1", "UNAUTHENTICATED", "UNAUTHENTICATED", local=False), FAILED),
        (judge_grpc("h:1", "OK", "OK", local=False), FAILED),
        (judge_grpc("h:1", "OK", "", local=True), WARNING),
        (judge_grpc("h:1", "UNKNOWN", "OK", local=False), FAILED),
        (judge_credentials(200, "TOKEN"), OK),
        (judge_credentials(401, "TOKEN"), FAILED),
        (judge_credentials(429, "TOKEN"), WARNING),
        (judge_credentials(502, "TOKEN"), FAILED),
    ],
)
def test_a_judgement_says_what_to_do_unless_all_is_well(finding: Finding, status: Verdict) -> None:
    assert finding.status is status
    assert finding.message.endswith(".")
    assert bool(finding.advice) == (status is not OK)


@pytest.mark.parametrize(
    ("given", "keys", "found"),
    [
        ({}, 0, [OK]),
        (NAMED | {"allow_anonymous": True}, 0, [WARNING]),
        (NAMED, 1, [OK]),
        ({}, -1, [FAILED]),
        (NAMED, -1, [FAILED]),
        ({"allow_anonymous": True}, -1, [OK]),
        ({"shared_token": "s3cret" * 5}, -1, [OK]),
        (NAMED | {"shared_token": "s3cret" * 5}, 0, [OK]),
        (EVERYWHERE | {"allow_anonymous": True}, 1, [WARNING]),
        (EVERYWHERE | {"metrics_port": 9100}, 1, [OK, WARNING]),
        ({"metrics_port": 9100}, 0, [OK]),
    ],
)
def test_who_is_served_is_judged_by_who_can_reach_it(given: dict[str, Any], keys: int, found: list[Verdict]) -> None:
    """Args: keys: -1 for one that was revoked."""
    findings = [*judge_openness(settings(**given), KeyCount(abs(keys), max(keys, 0)))]
    assert [each.status for each in findings] == found
    assert not any("s3cret" in each.message + each.advice for each in findings)


LIMITED = {"max_requests_per_user": 300, "max_turns_per_user": 4, "max_tokens": 10**6}


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({}, ""),
        (EVERYWHERE | LIMITED, ""),
        (EVERYWHERE, "requests, turns and tokens"),
        (NAMED | LIMITED | {"max_tokens": None}, "tokens"),
    ],
)
def test_a_server_that_others_can_reach_limits_what_a_user_may_ask(given: dict[str, Any], missing: str) -> None:
    found = [*judge_limits(settings(**given))]
    assert [each.message for each in found] == (
        [f"Others can reach the server, and a user's {missing} have no limit."] if missing else []
    )


@pytest.mark.parametrize(
    ("given", "proxies", "names"),
    [
        ({}, "", []),
        ({}, "172.16.0.0/12", []),
        ({"allowed_hosts": "*.example.com", "push_allow": "hooks.internal,10.0.0.0/8,[::1]"}, "", []),
        ({}, "*", ["FORWARDED_ALLOW_IPS=*"]),
        ({"allowed_hosts": "*"}, "", ["--allowed-hosts *"]),
        ({"push_allow": "hooks.internal,0.0.0.0/0"}, "", ["--push-allow hooks.internal,0.0.0.0/0"]),
    ],
)
def test_a_setting_that_believes_everybody_is_told(given: dict[str, str], proxies: str, names: list[str]) -> None:
    found = [*judge_trust(settings(**given), proxies)]
    assert [each.status for each in found] == [WARNING] * len(names)
    assert all(each.message.startswith(name) for each, name in zip(found, names, strict=True))
