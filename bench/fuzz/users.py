"""Who sends the requests of `make fuzz`: two users, guests with a link, and strangers; and what each must never see.

Rule 1: all that a user says, names and writes has a word that nobody else says. An answer with the word of somebody
        else is a fault, whatever it is an answer to.
Rule 2: senders do guess the ids of others: those are given away, and are no such words. One context of each user is
        `HIDDEN`: nobody else names it, so its id must not be seen either.
Rule 3: no answer and no line of the log has a credential. No line of the log has what a user says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from a2a_canvas.server.accounts.api_key import new_key
from a2a_canvas.server.accounts.sharing import new_link_token
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.store.ids import ContextKey
from tests.victims import FRIEND, VICTIM

USERS = ("ann", "bob")
OWNED = "2b2f8c51-3d0e-4c6e-9a57-0d1f3f1f7a11"
"""A context of ann's with an id of its own, which it can share with users."""
OPEN = "open-place"
"""A context of ann's that is shared by two links."""
SENDERS = (*USERS * 4, "editor", "reader", "nobody", "forger")

WORDS = {**{user: f"word-of-{user}" for user in USERS}, "editor": "word-of-editor", OPEN: "word-in-the-open"}
HIDDEN = {user: f"hidden-place-of-{user}" for user in USERS}
PRIVATE = {user: f"private-place-of-{user}" for user in USERS}
"""Contexts whose ids others guess, and which their owners only read after the start."""
TASKS = {f"00000000-0000-4000-8000-00000000{number:04x}": user for number, user in enumerate(USERS)}
"""What stands for the id of the task in each `PRIVATE`, with as many characters."""
ARTIFACT = "secret"
WEBHOOK_TOKEN = "token-of-a-webhook"
"""Whoever registers a webhook is told it again; the log is not."""

_IN_THE_OPEN = {WORDS["editor"], WORDS[OPEN]}
MAY_SEE: Mapping[str, set[str]] = {
    "ann": {WORDS["ann"], HIDDEN["ann"]} | _IN_THE_OPEN,
    "bob": {WORDS["bob"], HIDDEN["bob"]},
    "editor": _IN_THE_OPEN,
    "reader": _IN_THE_OPEN,
}
_EVERY_WORD = {*WORDS.values(), *HIDDEN.values()}

_CREDENTIALS: Mapping[str, Sequence[tuple[str, ...]]] = {
    "ann": (("Bearer {ann}",), ("bearer   {ann}",)),
    "bob": (("Bearer {bob}",), ("BEARER {bob}",)),
    "editor": (("Bearer {editor}",),),
    "reader": (("Bearer {reader}",),),
    "nobody": ((),),
    # The last ones have a credential that is right, and not the form of one.
    "forger": (
        ("Bearer {forged key}",),
        ("Bearer {forged link}",),
        ("Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4ifQ.x",),
        ("Bearer ann",),
        ("",),
        ("Bearer",),
        ("Basic {ann}",),
        ("{ann}",),
        ("Bearer {ann}x",),
        ("Bearer {ann}, Bearer {bob}",),
        ("Bearer {ann},",),
        ("Bearer {ann}", "Bearer {ann}"),
        ("Bearer {bob}", "Bearer {ann}"),
    ),
}
SMUGGLED: Sequence[Mapping[str, str]] = (
    {},
    {},
    {"X-Forwarded-User": "ann", "X-Remote-User": "ann", "Forwarded": "for=127.0.0.1"},
    {"X-API-Key": "{ann}", "Proxy-Authorization": "Bearer {ann}"},
    {"X-Original-URL": "/healthz", "X-HTTP-Method-Override": "GET", "X-Rewrite-URL": "/"},
    {"Cookie": "a2a-canvas-session={ann}; a2a-canvas-session={signed}", "A2A-Canvas-Page": "1"},
)
"""Headers that change nothing. The cookies of who has signed in have tests of their own."""
SIGNED = "open-place/events"
"""What an address is signed for; `forger` uses its signature for all others."""


def credentials_of(sender: str) -> Sequence[tuple[str, ...]]:
    """The values of Authorization that a sender may send: in each, as many as the header is there."""
    return _CREDENTIALS[sender]


@dataclass(slots=True)
class Accounts:
    """The users' credentials and tasks on one server.

    Attributes:
        secrets: by the names in braces in `_CREDENTIALS`.
        tasks: the ids for the keys of `TASKS`.
        before: what each user saw of its own at the start.
    """

    secrets: dict[str, str] = field(default_factory=dict)
    tasks: dict[str, str] = field(default_factory=dict)
    before: dict[str, str] = field(default_factory=dict)

    @classmethod
    def new(cls, password: str = "") -> Accounts:
        """With keys that nobody has, and the password of the database."""
        keys = {name: new_key(name) for name in (*USERS, VICTIM, FRIEND, "forged key")}
        keys |= {name: new_link_token(ContextKey(name)) for name in ("forged link", "token", "provider key")}
        return cls(keys | ({"password": password} if password else {}))

    @property
    def environ(self) -> dict[str, str]:
        """The settings of the server."""
        keys = ",".join(f"{user}={self.secrets[user]}" for user in (*USERS, VICTIM, FRIEND))
        shared, provider = self.secrets["token"], self.secrets["provider key"]
        return {
            "A2A_CANVAS_API_KEYS": keys,
            "A2A_CANVAS_SHARED_TOKEN": shared,
            "ANTHROPIC_API_KEY": provider,
            "OPENAI_API_KEY": provider,
        }

    def filled(self, text: str) -> str:
        """A value of a header, with the credentials."""
        for name, secret in self.secrets.items():
            text = text.replace(f"{{{name}}}", secret)
        return text

    def with_tasks(self, body: bytes) -> bytes:
        """A body or a target, with the ids of the tasks."""
        for stand_in, task in self.tasks.items():
            body = body.replace(stand_in.encode(), task.encode())
        return body

    async def prepare(self, http: httpx.AsyncClient) -> None:
        """Make what the others must not see."""
        for stand_in, user in TASKS.items():
            for place in (HIDDEN[user], PRIVATE[user]):
                self.tasks[stand_in] = await self._put(http, user, place, WORDS[user])
                name = {"name": f"About {WORDS[user]}"}
                (await http.patch(f"/artifacts/{place}", json=name, headers=self.headers_of(user))).raise_for_status()
            self.before[user] = await self._view(http, user)
        await self._put(http, "ann", OPEN, WORDS[OPEN])
        await self._put(http, "ann", OWNED, WORDS["ann"])
        for guest, level in (("editor", "edit"), ("reader", "read")):
            shares = f"/artifacts/{OPEN}/shares"
            made = await http.post(shares, json={"link": True, "level": level}, headers=self.headers_of("ann"))
            self.secrets[guest] = made.raise_for_status().json()["token"]
        made = await http.post(
            "/auth/signed-urls", json={"path": f"/artifacts/{SIGNED}"}, headers=self.headers_of("ann")
        )
        self.secrets["signed"] = made.raise_for_status().json()["url"].partition("signature=")[2]

    async def changed(self, http: httpx.AsyncClient) -> list[str]:
        """The users whose own does not look as it did."""
        return [user for user in USERS if await self._view(http, user) != self.before[user]]

    def leaks(self, sender: str, answer: str) -> list[str]:
        """What an answer to a sender has that it must not have (rules 1 and 3)."""
        forbidden = {*_EVERY_WORD, *self.secrets.values()} - MAY_SEE.get(sender, set())
        return sorted(word for word in forbidden if word in answer)

    def logged(self, log: str) -> list[str]:
        """What the log must not have (rule 3)."""
        return sorted(word for word in {*WORDS.values(), *self.secrets.values(), WEBHOOK_TOKEN} if word in log)

    def headers_of(self, user: str) -> dict[str, str]:
        """What a user sends with each request."""
        return {"Authorization": f"Bearer {self.secrets[user]}", "A2A-Version": "1.0"}

    @property
    def credentials(self) -> Mapping[str, Mapping[str, str]]:
        """What the victim and its friend send with each request."""
        return {user: {"Authorization": f"Bearer {self.secrets[user]}"} for user in (VICTIM, FRIEND)}

    async def _put(self, http: httpx.AsyncClient, user: str, context: str, word: str) -> str:
        operation = {"op": "put", "artifactId": ARTIFACT, "name": f"{word}.md", "text": f"All about {word}."}
        message: dict[str, Any] = {"messageId": f"start {context}", "contextId": context, "role": "ROLE_USER"}
        message |= {"parts": [{"text": f"Keep {word}"}], "metadata": {CANVAS: operation}}
        call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
        task: dict[str, Any] = (await http.post("/", json=call, headers=self.headers_of(user))).json()["result"]["task"]
        return str(task["id"])

    async def _view(self, http: httpx.AsyncClient, user: str) -> str:
        """The private context of a user: its name, its artifacts with their versions, its tasks."""
        call = {"contextId": PRIVATE[user], "includeArtifacts": True, "historyLength": 100}
        body = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": call}
        seen = [(await http.post("/", json=body, headers=self.headers_of(user))).json()]
        for below in ("", f"/{ARTIFACT}", f"/{ARTIFACT}/versions", "/shares"):
            seen.append((await http.get(f"/artifacts/{PRIVATE[user]}{below}", headers=self.headers_of(user))).json())
        return json.dumps(seen)
