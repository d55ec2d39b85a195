"""Slows down whoever tries credentials: an address may fail a few times at once, and then now and again.

Rule 1: an attempt counts before it is checked, so that many at once are no way around the limit; it is given back if
        the credential was right.
Rule 2: a credential that was right is not slowed: behind a proxy or a NAT, others share the address of an attacker.
Rule 3: the memory is bounded. Of many addresses the one that tried last is remembered; the addresses of one IPv6
        network of a customer (/64) count as one.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from math import ceil
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")

BURST = 20
"""Attempts that may fail one after the other."""
SECONDS_PER_ATTEMPT = 6.0
MAX_REMEMBERED = 10_000
"""Addresses, and credentials that were right."""


@dataclass(slots=True)
class _Allowance:
    attempts: float
    at: float


class FailedAttempts:
    """The attempts of all addresses.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._allowances: OrderedDict[str, _Allowance] = OrderedDict()
        self._known: OrderedDict[bytes, None] = OrderedDict()

    def begin(self, address: str, credential: str) -> int:
        """Count an attempt; 0, or the seconds to wait because there were too many."""
        if _digest(credential) in self._known:
            return 0
        allowance = self._allowance(network_of(address))
        if allowance.attempts < 1:
            return ceil((1 - allowance.attempts) * SECONDS_PER_ATTEMPT)
        allowance.attempts -= 1
        return 0

    def succeeded(self, address: str, credential: str) -> None:
        """It was right (rules 1 and 2)."""
        self.undone(address, credential)
        _remember(self._known, _digest(credential), None)

    def undone(self, address: str, credential: str) -> None:
        """It could not be checked: it does not count."""
        if _digest(credential) not in self._known:
            allowance = self._allowance(network_of(address))
            allowance.attempts = min(BURST, allowance.attempts + 1)

    def failed(self, credential: str) -> None:
        """It was wrong, or is not right any more."""
        self._known.pop(_digest(credential), None)

    def _allowance(self, network: str) -> _Allowance:
        now = self._clock()
        allowance = self._allowances.get(network) or _Allowance(BURST, now)
        allowance.attempts = min(BURST, allowance.attempts + (now - allowance.at) / SECONDS_PER_ATTEMPT)
        allowance.at = now
        _remember(self._allowances, network, allowance)
        return allowance


def network_of(address: str) -> str:
    """What counts as one address (rule 3)."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address) and not parsed.ipv4_mapped:
        return f"{parsed.exploded[:19]}::/64"
    return str(parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else parsed)


def _digest(credential: str) -> bytes:
    return hashlib.sha256(credential.encode("utf-8", "surrogatepass")).digest()


def _remember(memory: OrderedDict[K, V], key: K, value: V) -> None:
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > MAX_REMEMBERED:
        memory.popitem(last=False)
