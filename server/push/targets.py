"""Where notifications may go. Pure.

Rule 1: a target is an https address whose host has public addresses only. Private, loopback, link-local, shared,
        multicast and reserved ones are refused, and so are those of IPv6 that have one of IPv4 in them: they are ways
        around this rule.
Rule 2: what the operator allows, by the name of the host or by its network, may be any address, and http.
Rule 3: one address that is refused refuses the host: a name server must not choose between them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from yarl import URL

from a2a_canvas.server.outbound.addresses import Address, Network, address_of, is_public, literal_address

MAX_URL = 2048
"""Characters of a url."""


class TargetRefused(Exception):
    """A notification may not go there; `str()` says why, as the end of a sentence about the url."""


@dataclass(frozen=True, slots=True)
class AllowedTargets:
    """What the operator allows (rule 2): names of hosts, in lower case, and networks."""

    names: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()

    @classmethod
    def parse(cls, given: Iterable[str]) -> Self:
        """Names, addresses and networks."""
        names, networks = set[str](), list[Network]()
        for each in given:
            try:
                networks.append(ipaddress.ip_network(each.strip("[]"), strict=False))
            except ValueError:
                names.add(each.lower().rstrip("."))
        return cls(frozenset(names), tuple(networks))

    def has_name(self, host: str) -> bool:
        return host.lower().rstrip(".") in self.names

    def has_address(self, address: Address) -> bool:
        return any(address.version == network.version and address in network for network in self.networks)


@dataclass(frozen=True, slots=True)
class Target:
    """An address of a receiver, as it is connected to.

    Attributes:
        name: host and port.
    """

    url: URL
    host: str
    port: int

    @property
    def name(self) -> str:
        return f"{self.host}:{self.port}"


def target_of(url: str) -> Target:
    """The target of a url.

    Raises:
        TargetRefused: it is none.
    """
    if len(url) > MAX_URL:
        raise TargetRefused(f"must not be longer than {MAX_URL} characters")
    if not re.fullmatch(r"https?://[!-~]+", url, re.IGNORECASE) or "\\" in url:
        raise TargetRefused("must be an address such as https://client.example.com/notifications")
    try:
        parsed = URL(url)
        host, port = parsed.raw_host or "", parsed.port or 0
    except ValueError:
        raise TargetRefused("must be an address such as https://client.example.com/notifications") from None
    if not host or not port or "%" in host or _is_odd_number(host):
        raise TargetRefused("must be an address such as https://client.example.com/notifications")
    if parsed.user is not None or parsed.password is not None:
        raise TargetRefused("must not have a user or a password in it; give them as authentication")
    return Target(parsed.with_fragment(None), host.lower(), port)


def _is_odd_number(host: str) -> bool:
    """Whether a host ends in a number, and is no address in its usual form: programs read such ones differently."""
    last = host.rstrip(".").rpartition(".")[2]
    return bool(re.fullmatch("[0-9]+|0x[0-9a-f]*", last, re.IGNORECASE)) and literal_address(host) is None


def check_addresses(target: Target, addresses: Iterable[str], allowed: AllowedTargets) -> None:
    """Raises `TargetRefused` if a target with these addresses may not be connected to."""
    if allowed.has_name(target.host):
        return
    found = [address_of(each) for each in addresses]
    if not found or not all(allowed.has_address(each) or is_public(each) for each in found):
        raise no_public_address(target)
    if target.url.scheme == "http" and not all(allowed.has_address(each) for each in found):
        raise TargetRefused("must begin with https://")


def unknown_host(target: Target) -> TargetRefused:
    """For a name that the operator allows: there is nothing to hide about it."""
    return TargetRefused(f"names a host, {target.host}, that cannot be looked up")


def no_public_address(target: Target) -> TargetRefused:
    """The same for a name that is not known, and for one in a private network: users are not told which there are."""
    return TargetRefused(f"names a host, {target.host}, that has no address on the public internet")
