"""The canonical form of an agent card, over which its signatures are made. Pure.

Rule 1: A2A 1.0 (section 8.4.1) signs the card's JSON without `signatures`, in the form of RFC 8785: members that are
        set stay, even empty ones, such as `{"schemes": {"bearer": {}}}`.
Rule 2: a2a-sdk drops all empty values first. So its signature does not cover `securityRequirements`, and verifiers of
        one form do not accept the other: a card of this server has both signatures. What the SDK signs is also the
        canonical form of the card without its empty values: a card whose requirements were removed still has a valid
        signature.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from a2a.types import a2a_pb2 as pb
from a2a.utils._jcs import canonicalize
from google.protobuf.json_format import MessageToDict


def canonical_json(card: pb.AgentCard | Mapping[str, Any]) -> bytes:
    """A card in canonical form (rule 1).

    Raises:
        ValueError: it is nested too deeply, or has no such form.
    """
    fields = MessageToDict(card) if isinstance(card, pb.AgentCard) else card
    return canonicalize({name: value for name, value in fields.items() if name != "signatures"}).encode()
