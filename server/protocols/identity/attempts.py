"""Slows down attempts to guess credentials: an address may fail a few times in a row, then once per interval.

This counts credentials that could be guessed, and wrong ones of the other kinds: `authenticator.py`.

Rule 1: an attempt counts before it is checked, so that many at once do not get around the limit; it is given back if
        the credential was right.
Rule 2: a credential that was right is not slowed down at the address that sent it: an attacker may share that address,
        behind a NAT. At other addresses it is: it could be guessed from there.
Rule 3: the memory is bounded: the addresses that tried last are remembered. The addresses of one customer's IPv6
        network (/64) count as one.
Rule 4: a proxy states where its requests come from, and a client that can state it can state another address each
        time. So there is a second count, ten times as large, for the other end of the connection.
Rule 5: each of several workers at one address allows its part: their attempts are divided, at least one for each.
Rule 6: each address that is slowed down is logged at most once in LOG_SECONDS, so that attacks do not flood the log.
"""

from __future__ import annotations

import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from math import ceil
from typing import TypeVar

from a2a_canvas.server.protocols.edge.origins import Origin

logger = logging.getLogger(__name__)

K = TypeVar("K")
V = TypeVar("V")

BURST = 20
"""Attempts of one address that may fail in a row."""
SECONDS_PER_ATTEMPT = 6.0
PROXY_FACTOR = 10
"""How many times as many may fail through one proxy (rule 4)."""
LOG_SECONDS = 60.0
MAX_REMEMBERED = 10_000
"""Addresses, and credentials that were right."""


@dataclass(slots=True)
class _Allowance:
    """The attempts of one network.

    Attributes:
        most: as many may fail in a row.
        interval: seconds until there is another one.
    """

    attempts: float
    at: float
    most: int
    interval: float
    logged_at: float = float("-inf")

    @property
    def wait(self) -> int:
        """Seconds until there is an attempt."""
        return ceil(max(0, 1 - self.attempts) * self.interval)


class FailedAttempts:
    """The attempts of all addresses.

    Args:
        clock: seconds.
        workers: how many processes have this address (rule 5).
    """

    def __init__(self, clock: Callable[[], float], workers: int = 1) -> None:
        self._clock = clock
        self._burst = ceil(BURST / workers)
        self._interval = SECONDS_PER_ATTEMPT * workers
        self._allowances: OrderedDict[str, _Allowance] = OrderedDict()
        self._known: OrderedDict[bytes, None] = OrderedDict()

    def begin(self, origin: Origin, credential: str) -> int:
        """Count an attempt. Returns 0, or the seconds to wait because there were too many."""
        if _digest(origin, credential) in self._known:
            return 0
        allowances = self._allowances_of(origin)
        wait = max(allowance.wait for allowance in allowances.values())
        for network, allowance in allowances.items():
            if not wait:
                allowance.attempts -= 1
            elif allowance.wait and self._clock() - allowance.logged_at >= LOG_SECONDS:
                allowance.logged_at = self._clock()
                logger.warning("Wrong credentials come from %s: its attempts are slowed down", network)
        return wait

    def record_success(self, origin: Origin, credential: str) -> None:
        """The credential was right (rules 1 and 2)."""
        self.cancel(origin, credential)
        _remember(self._known, _digest(origin, credential), None)

    def cancel(self, origin: Origin, credential: str) -> None:
        """Give back an attempt that could not be checked."""
        if _digest(origin, credential) not in self._known:
            for allowance in self._allowances_of(origin).values():
                allowance.attempts = min(allowance.most, allowance.attempts + 1)

    def record_failure(self, origin: Origin, credential: str) -> None:
        """The credential is wrong; if it was right before, it has expired or been revoked."""
        self._known.pop(_digest(origin, credential), None)

    def _allowances_of(self, origin: Origin) -> dict[str, _Allowance]:
        networks = {network_of(origin.address): 1}
        if origin.peer not in ("", origin.address):
            networks[f"proxy {network_of(origin.peer)}"] = PROXY_FACTOR
        return {network: self._allowance(network, factor) for network, factor in networks.items()}

    def _allowance(self, network: str, factor: int) -> _Allowance:
        now, most = self._clock(), self._burst * factor
        allowance = self._allowances.get(network) or _Allowance(most, now, most, self._interval / factor)
        gained = (now - allowance.at) / allowance.interval
        allowance.attempts, allowance.at = min(most, allowance.attempts + gained), now
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


def _digest(origin: Origin, credential: str) -> bytes:
    return hashlib.sha256(f"{network_of(origin.address)} {credential}".encode("utf-8", "surrogatepass")).digest()


def _remember(memory: OrderedDict[K, V], key: K, value: V) -> None:
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > MAX_REMEMBERED:
        memory.popitem(last=False)
