"""What the card of another agent makes of it."""

import re

import pytest
from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.tool_sources.remote_agents.agent_card import (
    MAX_DESCRIPTION,
    may_lead,
    tool_description,
    tool_name,
    usable_interfaces,
)


@pytest.mark.parametrize(
    ("name", "taken", "made"),
    [
        ("Weather", (), "ask_weather"),
        ("Weather Agent (EU)", (), "ask_weather_agent_eu"),
        ("Wetter für Köln", (), "ask_wetter_f_r_k_ln"),
        ("天気", (), "ask_agent"),
        ("Weather", ("ask_weather",), "ask_weather_2"),
        ("Weather", ("ask_weather", "ask_weather_2"), "ask_weather_3"),
        ("x" * 500, (), "ask_" + "x" * 52),
    ],
)
def test_the_tools_name_is_made_of_the_cards(name, taken, made) -> None:
    assert tool_name(name, taken) == made
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", made)


def test_the_description_has_the_skills_and_an_end() -> None:
    card = pb.AgentCard(name="Weather", description="Knows\nthe sky.")
    card.skills.add(id="rain", name="Rain", description="Says when it rains.")
    described = tool_description(card)
    assert described.startswith("Ask another agent, Weather: Knows the sky.\n\n- Rain: Says when it rains.\n")
    for number in range(1_000):
        card.skills.add(name=f"s{number}", description="x" * 10_000)
    assert len(tool_description(card)) <= MAX_DESCRIPTION


def test_only_interfaces_that_can_be_spoken_count() -> None:
    card = pb.AgentCard()
    for binding, url in (
        ("GRPC", "h:1"),
        ("JSONRPC", "ftp://h/"),
        ("HTTP+JSON", "https://h/rest"),
        ("JSONRPC", "http://h"),
    ):
        card.supported_interfaces.add(protocol_binding=binding, url=url)
    assert [each.url for each in usable_interfaces(card)] == ["https://h/rest", "http://h"]


@pytest.mark.parametrize(
    ("agent", "interface", "allowed"),
    [
        (["93.184.215.14"], ["93.184.215.15"], True),
        (["93.184.215.14"], ["10.0.0.1"], False),
        (["93.184.215.14"], ["93.184.215.15", "127.0.0.1"], False),
        (["93.184.215.14"], ["169.254.169.254"], False),
        (["93.184.215.14"], ["::1"], False),
        (["93.184.215.14"], ["fe80::1%eth0"], False),
        (["93.184.215.14", "10.0.0.1"], ["10.0.0.2"], False),
        (["93.184.215.14", "10.0.0.1"], ["10.0.0.1"], True),
        (["10.0.0.1"], ["10.0.0.2"], True),
        (["127.0.0.1"], ["::1"], True),
    ],
)
def test_an_agent_on_the_internet_leads_to_the_internet_only(agent, interface, allowed) -> None:
    assert may_lead(agent, interface) is allowed
