"""What the card says of credentials, in 1.0 and in the form of 0.3 that is in the same document."""

from __future__ import annotations

from typing import Any

import pytest
from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.protocols.identity.security import Security

ISSUER = "https://login.example.com/.well-known/openid-configuration"


def described(security: Security, **fields: Any) -> dict[str, Any]:
    card = pb.AgentCard(name="canvas", description="d", version="1", default_input_modes=["text/plain"], **fields)
    for version in ("1.0", "0.3"):
        card.supported_interfaces.add(url="http://h/", protocol_binding="JSONRPC", protocol_version=version)
    return agent_card_to_dict(security.describe(card))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("security", "requirements", "legacy"),
    [
        (Security(bearer=True), [{"schemes": {"bearer": {}}}], [{"bearer": []}]),
        (Security(openid_url=ISSUER), [{"schemes": {"openId": {}}}], [{"openId": []}]),
        (
            Security(bearer=True, openid_url=ISSUER),
            [{"schemes": {"bearer": {}}}, {"schemes": {"openId": {}}}],
            [{"bearer": []}, {"openId": []}],
        ),
        (Security(bearer=True, optional=True), [{"schemes": {"bearer": {}}}, {}], [{"bearer": []}, {}]),
    ],
)
def test_each_alternative_is_a_requirement_with_a_scheme(
    security: Security, requirements: list[Any], legacy: list[Any]
) -> None:
    card = described(security)
    assert card["securityRequirements"] == requirements
    assert card["security"] == legacy
    assert card["capabilities"]["extendedAgentCard"] is True
    assert card["supportsAuthenticatedExtendedCard"] is True


@pytest.mark.filterwarnings("ignore")
def test_a_scheme_is_in_the_form_of_both_versions() -> None:
    schemes = described(Security(bearer=True, openid_url=ISSUER))["securitySchemes"]
    assert schemes["bearer"]["httpAuthSecurityScheme"]["scheme"] == "Bearer"
    assert (schemes["bearer"]["type"], schemes["bearer"]["scheme"]) == ("http", "Bearer")
    assert schemes["openId"]["openIdConnectSecurityScheme"]["openIdConnectUrl"] == ISSUER
    assert (schemes["openId"]["type"], schemes["openId"]["openIdConnectUrl"]) == ("openIdConnect", ISSUER)


def test_a_server_that_asks_for_nothing_leaves_the_card_as_it_is() -> None:
    card = pb.AgentCard(name="canvas")
    card.security_schemes["theirs"].http_auth_security_scheme.scheme = "Basic"
    assert Security().describe(card) is card
    assert Security(optional=True).describe(card) is card


def test_a_server_that_asks_says_so_instead_of_what_the_file_of_the_card_says() -> None:
    card = pb.AgentCard(name="canvas")
    card.security_schemes["theirs"].http_auth_security_scheme.scheme = "Basic"
    assert set(Security(bearer=True).describe(card).security_schemes) == {"bearer"}
    assert set(card.security_schemes) == {"theirs"}
