"""Every setting, from the command line or the environment (`A2A_CANVAS_…`), the command line first.

Rule 1: what is empty is not set, in either place: containers are often handed variables without a value.
Rule 2: what is wrong is told in plain words, under the name by which it was given.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

PREFIX = "A2A_CANVAS_"

EVERYWHERE = ("0.0.0.0", "::", "")
"""Hosts that stand for all addresses of the machine."""


class SettingsError(Exception):
    """A setting is unknown, wrong or contradicts another; `str()` is one line that says what to do."""


class Settings(BaseSettings):
    """The settings of a server. Field names are the option names with underscores."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, extra="forbid", frozen=True)

    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(8000, ge=1, le=65535, description="port for JSON-RPC, HTTP+JSON and the card")
    grpc_port: int | None = Field(None, ge=1, le=65535, description="port for gRPC; off unless given")
    model: str | None = Field(None, description="a Claude model, 'rehearsal', or 'script:FILE.yaml'")
    database: str = Field("memory", description="where tasks and artifacts are kept; only 'memory' so far")
    public_url: str | None = Field(None, description="the address in the card, if it is not http://HOST:PORT")
    agent_card: Path | None = Field(None, description="the card to start from (default: agent_card.json)")
    advertise_0_3: bool = Field(True, description="list the 0.3 interfaces in the card, as the A2A Inspector needs")
    frame_ms: float = Field(25, ge=0, le=1000, description="appends within so many milliseconds are joined; 0: none")
    max_rounds: int = Field(30, ge=1, description="model calls in one turn")
    max_tool_errors: int = Field(5, ge=1, description="failed tool calls in a row")
    max_artifact_bytes: int = Field(10 * 1024 * 1024, ge=1, description="bytes of one artifact")
    max_parts: int = Field(100, ge=1, description="parts of one artifact")
    max_body_bytes: int = Field(10 * 1024 * 1024, ge=1024, description="bytes of one request")
    max_output_tokens: int = Field(32_000, ge=1, description="tokens of one answer of a Claude model")
    expose_thinking: bool = Field(False, description="show the model's thinking to AG-UI clients")
    on_disconnect: str = Field("continue", description="a task whose last AG-UI client goes away: continue or cancel")
    log_level: str = Field("info", description="critical, error, warning, info or debug")

    @field_validator("database")
    @classmethod
    def _known_database(cls, value: str) -> str:
        if value != "memory":
            raise ValueError("only 'memory' is supported so far")
        return value

    @field_validator("on_disconnect")
    @classmethod
    def _known_outcome(cls, value: str) -> str:
        if value not in ("continue", "cancel"):
            raise ValueError("must be continue or cancel")
        return value

    @field_validator("log_level")
    @classmethod
    def _known_level(cls, value: str) -> str:
        if value.lower() not in ("critical", "error", "warning", "info", "debug"):
            raise ValueError("must be critical, error, warning, info or debug")
        return value.lower()

    @field_validator("public_url")
    @classmethod
    def _http_url(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
            raise ValueError("must be an address such as https://agent.example.com")
        return value.rstrip("/")

    @model_validator(mode="after")
    def _ports_differ(self) -> Self:
        if self.grpc_port == self.port:
            raise ValueError(f"port and grpc_port are both {self.port}; gRPC needs a port of its own")
        return self

    @property
    def url(self) -> str:
        """The address in the card, without a slash at the end."""
        if self.public_url:
            return self.public_url
        return f"http://{authority('localhost' if self.host in EVERYWHERE else self.host, self.port)}"


def authority(host: str, port: int) -> str:
    """`host:port`, as it stands in an address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def option(field: str) -> str:
    """The name of a field on the command line."""
    return "--advertise-0.3" if field == "advertise_0_3" else "--" + field.replace("_", "-")


def span(field: str) -> str:
    """The numbers that a field takes, in words: `1 to 65535`, `at least 1024`; empty if it has no bounds."""
    bounds = {
        key: getattr(item, key)
        for item in Settings.model_fields[field].metadata
        for key in ("ge", "le")
        if hasattr(item, key)
    }
    match bounds:
        case {"ge": low, "le": high}:
            return f"{low} to {high}"
        case {"ge": low}:
            return f"at least {low}"
        case _:
            return ""


def load(given: Mapping[str, Any]) -> Settings:
    """The settings from what the command line gave, then the environment of the process.

    Raises:
        SettingsError: one of them is unknown, wrong or contradicts another.
    """
    known = {PREFIX + field.upper() for field in Settings.model_fields}
    for name, value in os.environ.items():
        if value and name.upper().startswith(PREFIX) and name.upper() not in known:
            raise SettingsError(f"Unknown setting {name}.{_meant(name.upper())}")
    given = {field: value for field, value in given.items() if value != ""}
    try:
        return Settings(**given)
    except ValidationError as error:
        raise SettingsError("; ".join(_fault(fault, given) for fault in error.errors())) from None


def _meant(name: str) -> str:
    fields = [field.upper() for field in Settings.model_fields]
    close = difflib.get_close_matches(name.removeprefix(PREFIX), fields, n=1)
    return f" Did you mean {PREFIX}{close[0]}?" if close else " See a2a-canvas serve --help for those there are."


IN_WORDS = {
    "int_parsing": "must be a whole number",
    "int_parsing_size": "is too large",
    "float_parsing": "must be a number",
    "bool_parsing": "must be true or false",
}
"""What pydantic finds wrong with a string from outside, by its error types."""


def _fault(fault: Any, given: Mapping[str, Any]) -> str:
    message = str(fault["msg"]).removeprefix("Value error, ")
    if not fault["loc"]:
        return message
    field = str(fault["loc"][0])
    if fault["type"] in ("greater_than_equal", "less_than_equal"):
        message = f"must be {span(field)}"
    name = option(field) if field in given else PREFIX + field.upper()
    return f"{name}={fault['input']}: {IN_WORDS.get(fault['type'], message)}"
