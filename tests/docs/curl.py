"""Requests as the pages write them for curl, and what they are answered."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from tests.docs.pages import ADDRESS, blocks


@dataclass(frozen=True)
class Curl:
    """A request as a page writes it for curl."""

    url: str
    headers: dict[str, str]
    body: str
    method: str = ""

    @classmethod
    def read(cls, text: str) -> Curl:
        words = iter(shlex.split(text.replace("\\\n", " "), comments=True)[1:])
        headers, url, body, method = {}, "", "", ""
        for word in words:
            match word:
                case "-N" | "-i":
                    pass
                case "-H":
                    name, _, value = next(words).partition(": ")
                    headers[name] = value
                case "-d":
                    body = next(words)
                case "-X":
                    method = next(words)
                case _:
                    assert word.startswith(ADDRESS)
                    url = word
        return cls(url, headers, body, method)

    def with_ids(self, ids: Mapping[str, str]) -> Curl:
        """The same with an id in place of each placeholder."""
        url, headers, body = self.url, dict(self.headers), self.body
        for name, id_ in ids.items():
            url, body = url.replace(name, id_), body.replace(name, id_)
            headers = {key: value.replace(name, id_) for key, value in headers.items()}
        return Curl(url, headers, body, self.method)

    @property
    def path(self) -> str:
        return self.url.removeprefix(ADDRESS)

    def send(self, address: str) -> Answer:
        url, method = self.url.replace(ADDRESS, address), self.method or ("POST" if self.body else "GET")
        with (
            httpx.Client(trust_env=False, timeout=30) as http,
            http.stream(method, url, content=self.body, headers=self.headers) as answer,
        ):
            if self.path.endswith("/events"):  # it never ends
                lines = [next(line for line in answer.iter_lines() if line.startswith("data:"))]
            else:
                lines = answer.read().decode().splitlines()
        events = [json.loads(line[5:]) for line in lines if line.startswith("data:")]
        return Answer(answer.status_code, answer.headers, "\n".join(lines), events)


@dataclass(frozen=True)
class Answer:
    """An answer; with `events` if it is a stream."""

    status: int
    headers: httpx.Headers
    text: str
    events: list[dict[str, Any]]

    @property
    def results(self) -> list[dict[str, Any]]:
        """The values, without the envelope of JSON-RPC."""
        values = self.events or [json.loads(self.text)]
        return [value.get("result", value) for value in values]


Sent = list[tuple[Curl, Answer]]


def curls(text: str) -> list[Curl]:
    """The requests of a page, in order."""
    return [
        Curl.read("curl " + command)
        for block in blocks(text, "sh")
        for command in re.split(r"^curl ", block, flags=re.MULTILINE)[1:]
    ]


def send_all(address: str, requests: list[Curl]) -> Sent:
    """Sends the requests one after the other; a task's id and an ETag are filled in."""
    sent: Sent = []
    task_id = new_task(address)
    for curl in requests:
        tags = [answer.headers.get("etag", "") for before, answer in sent if before.url == curl.url]
        filled = curl.with_ids({"TASK_ID": task_id, "ETAG": "".join(tags)})
        sent.append((filled, filled.send(address)))
    return sent


def new_task(address: str) -> str:
    """Runs a task, and returns its id."""
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
    headers = {"A2A-Version": "1.0", "Content-Type": "application/json"}
    [answer] = Curl(f"{ADDRESS}/rest/message:send", headers, json.dumps({"message": message})).send(address).results
    task_id: str = answer["task"]["id"]
    return task_id
