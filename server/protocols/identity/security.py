"""The agent card's `securitySchemes` and `securityRequirements`. Pure.

Rule 1: each requirement is an alternative: a request needs what one of them names.
Rule 2: where a credential is optional, the last alternative is empty, as in OpenAPI.
"""

from __future__ import annotations

from dataclasses import dataclass

from a2a.types import a2a_pb2 as pb

BEARER_SCHEME = "bearer"
OPENID_SCHEME = "openId"
DISCOVERY_PATH = "/.well-known/openid-configuration"


def discovery_url(issuer: str) -> str:
    """Where an issuer of tokens describes itself (OpenID Connect Discovery 1.0, section 4)."""
    return issuer.rstrip("/") + DISCOVERY_PATH


@dataclass(frozen=True, slots=True)
class Security:
    """The credentials that a request needs.

    Attributes:
        bearer: the shared token, a key, or a token of an issuer without a discovery document.
        openid_url: the discovery document of the issuer whose tokens are accepted; empty for none.
        optional: a request may also come without a credential.
    """

    bearer: bool = False
    openid_url: str = ""
    optional: bool = False

    @property
    def required(self) -> bool:
        """Whether there is anything to check."""
        return self.bearer or bool(self.openid_url)

    def describe(self, card: pb.AgentCard) -> pb.AgentCard:
        """The card with these requirements; unchanged if there are none."""
        if not self.required:
            return card
        described = pb.AgentCard()
        described.CopyFrom(card)
        described.capabilities.extended_agent_card = True
        described.security_schemes.clear()
        del described.security_requirements[:]
        for name, scheme in self._schemes().items():
            described.security_schemes[name].CopyFrom(scheme)
            described.security_requirements.add().schemes[name].SetInParent()
        if self.optional:
            described.security_requirements.add()
        return described

    def _schemes(self) -> dict[str, pb.SecurityScheme]:
        schemes: dict[str, pb.SecurityScheme] = {}
        if self.bearer:
            text = "A key or token that you received from the operator of this server."
            http = pb.HTTPAuthSecurityScheme(scheme="Bearer", description=text)
            schemes[BEARER_SCHEME] = pb.SecurityScheme(http_auth_security_scheme=http)
        if self.openid_url:
            text = "A token of this issuer."
            openid = pb.OpenIdConnectSecurityScheme(open_id_connect_url=self.openid_url, description=text)
            schemes[OPENID_SCHEME] = pb.SecurityScheme(open_id_connect_security_scheme=openid)
        return schemes
