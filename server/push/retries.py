"""What an attempt ended in, and when the next one is made. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

MAX_ATTEMPTS = 20
"""Attempts of one notification, in about nine hours."""
FIRST_DELAY = 1.0
MAX_DELAY = 3600.0
"""Seconds between two attempts: it doubles from the one to the other."""


@dataclass(frozen=True, slots=True)
class DeliveryAccepted:
    """The receiver has answered 2xx."""


@dataclass(frozen=True, slots=True)
class DeliveryFailed:
    """It has not.

    Attributes:
        reason: as the end of a sentence, without anything secret.
        final: the receiver says that it is gone.
        wait: seconds that it asks to be left alone.
    """

    reason: str
    final: bool = False
    wait: float = 0.0


Outcome = DeliveryAccepted | DeliveryFailed


def delay_after(failed: int, outcome: DeliveryFailed, chance: float) -> timedelta | None:
    """How long after a failed attempt the next one is made; None if there is none.

    Args:
        failed: attempts that have failed, this one included.
        chance: between 0 and 1: that spreads attempts which failed at the same time.
    """
    if outcome.final or failed >= MAX_ATTEMPTS:
        return None
    longest = min(MAX_DELAY, FIRST_DELAY * 2.0 ** (failed - 1))
    return timedelta(seconds=max(longest * (0.5 + chance / 2), min(outcome.wait, MAX_DELAY)))


def outcome_of(status: int, retry_after: str) -> Outcome:
    """What an answer means: a redirect is not followed."""
    if 200 <= status < 300:
        return DeliveryAccepted()
    wait = float(retry_after) if retry_after.isascii() and retry_after.isdigit() and len(retry_after) < 9 else 0.0
    return DeliveryFailed(f"the receiver answered {status}", final=status == 410, wait=wait)
