"""What the replicas of one database tell each other by a broker, in place of PostgreSQL's notifications.

Rule 1: a page is published on a subject of its context and its task, when it is committed. A replica subscribes while
        somebody there follows the task, or the context.
Rule 2: notifications, presence and revocations are for all replicas. They have the payloads of PostgreSQL's channels.
Rule 3: what a message of this database's key says is believed, for what it is: a reason to look, or a committed page.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from a2a_canvas.server.broker.broker import Broker
from a2a_canvas.server.broker.signatures import Signatures
from a2a_canvas.server.tasks.sql.journal.page_messages import PageKey, PageMessage
from a2a_canvas.server.tasks.sql.replica.notifications import Notification
from a2a_canvas.server.tasks.sql.replica.presence_exchange import PresenceExchange

PAGE, NOTIFICATION, PRESENCE, REVOCATION = "page", "notification", "presence", "revocation"
"""The kinds of messages, as subjects name them."""


class BrokerExchange:
    """A `PageWire`, and the channels of all replicas, over a broker.

    Args:
        key: of the signatures.
        notified: called with notifications, and with one that says that any may have been missed.
        revoked: called when a share or a credential may have ended.
    """

    def __init__(
        self,
        broker: Broker,
        key: bytes,
        presence: PresenceExchange,
        notified: Callable[[Notification], None],
        revoked: Callable[[], None],
    ) -> None:
        self._broker = broker
        self._signatures = Signatures(key)
        self._presence = presence
        self._notified = notified
        self._revoked = revoked
        broker.on_connected = self._on_connected
        presence.publish = self._publish_presence
        self._subscribe(NOTIFICATION, lambda text: notified(Notification.parse(text)))
        self._subscribe(PRESENCE, lambda text: presence.receive(text, by_broker=True))
        self._subscribe(REVOCATION, lambda _: revoked())

    def start(self) -> None:
        self._broker.start(self._signatures)

    def _on_connected(self) -> None:
        self._notified(Notification(everything=True, missed=True))
        self._presence.listen_again()
        self._revoked()

    def _subscribe(self, kind: str, take: Callable[[str], None]) -> None:
        def receive(payload: bytes | None) -> None:
            if payload is not None:
                with suppress(UnicodeDecodeError):
                    take(payload.decode())

        self._broker.subscribe(self._signatures.subject(kind), receive)

    # ------------------------------------------------------------------ to all replicas

    def notify(self, payload: str) -> None:
        self._broker.publish(self._signatures.subject(NOTIFICATION), payload.encode())

    def _publish_presence(self, payload: str) -> bool:
        self._broker.publish(self._signatures.subject(PRESENCE), payload.encode())
        return self._broker.connected.is_set()

    def revoke(self) -> None:
        """Tell that a share or a credential has ended."""
        self._broker.publish(self._signatures.subject(REVOCATION), b"")

    # ------------------------------------------------------------------------- pages

    def publish(self, page: PageMessage) -> None:
        self._broker.publish(self._subject((page.context_id, page.task_id)), page.encode())

    def follow(self, key: PageKey, receive: Callable[[PageMessage | None], None], ready: Callable[[], None]) -> None:
        def take(payload: bytes | None) -> None:
            receive(None if payload is None else PageMessage.decode(payload))

        self._broker.subscribe(self._subject(key), take, ready)

    def unfollow(self, key: PageKey) -> None:
        self._broker.unsubscribe(self._subject(key))

    def _subject(self, key: PageKey) -> str:
        return self._signatures.subject(PAGE, *key)
