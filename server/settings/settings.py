"""The settings of a server: options of the command line, then environment variables (`A2A_CANVAS_…`), then what the
folder of the agent sets (`agent_folder.py`), then defaults.

Rule 1: an empty option or variable counts as not set: containers often have variables without a value.
Rule 2: an error names the option or variable, in one line.
Rule 3: no message shows a password.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Mapping
from math import ceil
from pathlib import Path
from typing import Any, Literal, Self, get_args
from urllib.parse import urlsplit

import click
from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from a2a_canvas.server.command_form import GroupedOption
from a2a_canvas.server.settings.agent_folder import AgentFolder, FolderError, read_folder
from a2a_canvas.server.settings.loop_setting import Loop, LoopKeyError, display_text
from a2a_canvas.server.settings.value_types import (
    Brokers,
    DatabaseUrl,
    EmbedOrigin,
    File,
    HostAndPort,
    HostName,
    HostOrNetwork,
    HttpUrl,
    Key,
    ListOf,
    Origin,
    Page,
    SharedToken,
    TokensByHost,
    TrustedUrl,
    is_loopback,
    without_password,
)
from a2a_canvas.server.tasks.runtime.admission import MAX_TURNS
from a2a_canvas.server.wire import TOKEN_VARIABLE, URL_VARIABLE
from a2a_canvas.tools.faults import NEEDED

PREFIX = "A2A_CANVAS_"

REHEARSAL = "rehearsal"
"""The model without a provider."""

ALL_ADDRESSES = ("0.0.0.0", "::", "")
"""Hosts that stand for all addresses of the machine."""

MAX_DAYS = 36_500
"""The longest retention."""

MAX_WORKERS = 256

UNITS = ("days", "bytes", "seconds", "milliseconds", "tokens")


class SettingsError(Exception):
    """A setting is unknown, wrong or contradicts another; `str()` is one line that says what to do."""


class Settings(BaseSettings):
    """The settings of a server. Field names are the option names with underscores.

    `Settings()` reads the environment, `Settings(port=9000)` overrides it. A wrong value raises pydantic's
    `ValidationError`, a folder that is no agent's `FolderError`; `load` turns them into one line.

    >>> Settings(port=9000, database="memory").url
    'http://127.0.0.1:9000'
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, extra="forbid", frozen=True)

    agent: Path | None = Field(
        None, description="folder of the agent: 'agent.toml' and the files beside it; by default the built-in agent"
    )
    instructions: File | None = Field(
        None, description="text file with the agent's role and way of working; it precedes the built-in rules"
    )
    tools: ListOf[File] = Field(
        (), description="Python files with '@tool' functions; repeatable, or separated by commas"
    )
    loop: Loop = Field(
        None,
        description="the agent's own loop instead of the model's: 'MODULE:FUNCTION', or an agent that runs elsewhere, "
        "'agui:URL' or 'a2a:URL'; by default the function 'agent' of the folder's 'agent.py', if there is one",
    )
    mcp_config: File | None = Field(
        None, description="JSON file with MCP servers ('mcpServers') whose tools the agent may call"
    )
    agents: ListOf[HttpUrl] = Field(
        (), description="addresses of other A2A agents to call; repeatable, or separated by commas"
    )
    agent_tokens: TokensByHost = Field(
        {},
        repr=False,
        description="tokens for other agents, as 'HOST=TOKEN' or 'HOST:PORT=TOKEN', separated by commas; the port "
        "defaults to that of the agent's address",
    )
    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(8000, ge=1, le=65535, description="port for JSON-RPC, HTTP+JSON, the page and the card")
    grpc_port: int | None = Field(None, ge=1, le=65535, description="port for gRPC; off by default")
    metrics_port: int | None = Field(
        None,
        ge=1,
        le=65535,
        description="port for '/metrics', without credentials; the other port then does not serve it",
    )
    workers: int = Field(
        1,
        ge=1,
        le=MAX_WORKERS,
        description="processes behind the address, one for each core; more than one need PostgreSQL",
    )
    model: str | None = Field(
        None,
        description="a model's name, 'openai:NAME', 'ollama:NAME', 'rehearsal' or 'script:FILE.yaml'; 'a2a-canvas "
        "models' lists those available",
    )
    database: DatabaseUrl = Field(
        "sqlite:///a2a-canvas.db",
        description="database for tasks and artifacts: a SQLite file such as './my.db' or 'sqlite:///FILE', "
        "'postgresql://USER:PASSWORD@HOST/DATABASE' (with HOST1,HOST2 if it fails over) or 'memory'",
    )
    broker: Brokers = Field(
        (),
        repr=False,
        description="NATS server by which the servers of one PostgreSQL wake each other, as "
        "'tls://USER:PASSWORD@HOST:PORT', or 'nats://localhost:4222' on this machine; repeatable, or separated by "
        "commas for the servers of one cluster; by default PostgreSQL notifies",
    )
    keep_versions: float | None = Field(
        None,
        gt=0,
        le=MAX_DAYS,
        description="days to keep the text of versions that are not current; forever by default",
    )
    keep_contexts: float | None = Field(
        None,
        gt=0,
        le=MAX_DAYS,
        description="days to keep a conversation, with its tasks and artifacts, after its last change; forever by "
        "default",
    )
    shared_token: SharedToken | None = Field(
        None,
        repr=False,
        description="token for every request without another credential; all its holders are one user, 'shared', "
        "and clients send it as A2A_CANVAS_TOKEN",
    )
    api_keys: ListOf[Key] = Field(
        (),
        repr=False,
        description="API keys in addition to those in the database, as 'NAME=KEY' or 'NAME=sha256:HASH', "
        "separated by commas; NAME is the user",
    )
    jwt_issuer: TrustedUrl | None = Field(
        None,
        description="issuer of accepted bearer tokens (JWTs), equal to their 'iss'; its keys are found by OpenID "
        "Connect discovery",
    )
    jwt_audience: str | None = Field(None, description="audience that the tokens must name in 'aud'")
    jwt_jwks_url: TrustedUrl | None = Field(
        None, description="address of the issuer's keys, if it does not support discovery"
    )
    jwt_user_claim: str = Field("sub", description="claim of the tokens that names the user")
    oidc_client_id: str | None = Field(
        None, description="client id at the issuer (OpenID Connect), to sign in on the page"
    )
    oidc_client_secret: str | None = Field(None, repr=False, description="secret of that client, if it is confidential")
    allow_anonymous: bool = Field(False, description="serve callers without credentials, on any address")
    adopt_anonymous: str | None = Field(
        None,
        description="user who also gets the conversations of anonymous callers, such as those from before there "
        "were users; otherwise nobody sees them",
    )
    public_url: HttpUrl | None = Field(None, description="address in the card, if it is not 'http://HOST:PORT'")
    public_grpc: HostAndPort | None = Field(
        None,
        description="list gRPC in the card, at this 'HOST' or 'HOST:PORT'; the port defaults to that of --grpc-port; "
        "google-adk rejects such cards",
    )
    allowed_hosts: ListOf[HostName] = Field(
        (),
        description="further host names for requests, separated by commas, besides localhost, the host and that "
        "of the public URL; '*' for any",
    )
    agent_card: Path | None = Field(None, description="agent card to start from, instead of the built-in one")
    card_signing_key: File | None = Field(
        None, description="PEM file with the private key that signs the agent card; unsigned by default"
    )
    advertise_0_3: bool = Field(True, description="list the 0.3 interfaces in the card, which the A2A Inspector needs")
    cors_origin: ListOf[Origin] = Field(
        (),
        description="origin such as 'https://app.example.com' whose pages may use the server (CORS); repeatable, "
        "or separated by commas; none by default",
    )
    push_allow: ListOf[HostOrNetwork] = Field(
        (),
        description="hosts and networks for push notifications besides the public internet (names, addresses, "
        "'10.0.0.0/8'), separated by commas; also over http",
    )
    page: Page = Field(
        (),
        description="origins of other A2A servers that the web page at '/' may use, such as "
        "'https://agent.example.com', separated by commas; each must allow this server's origin; 'off' serves no page",
    )
    embed_origins: ListOf[EmbedOrigin] = Field(
        (),
        description="origins such as 'https://wiki.example.com' whose pages may show shared documents in a frame of "
        "'/embed'; repeatable, or separated by commas; none by default",
    )
    frame_ms: float = Field(
        25, ge=0, le=1000, description="milliseconds in which pieces of text are joined into one event; 0 joins none"
    )
    max_turns: int = Field(
        MAX_TURNS, ge=0, description="concurrent turns on this server; others wait; with 0 it only serves streams"
    )
    max_turns_per_user: int | None = Field(
        None, ge=1, description="concurrent turns of one user; others wait; unlimited by default"
    )
    max_streams: int = Field(500, ge=1, description="open streams on this server; more are rejected")
    max_streams_per_user: int | None = Field(
        None, ge=1, description="open streams of one user; by default limited only by the server's free streams"
    )
    max_requests: int | None = Field(None, ge=1, description="requests per minute of all users; unlimited by default")
    max_requests_per_user: int | None = Field(
        None, ge=1, description="requests per minute of one user; unlimited by default"
    )
    max_tokens: int | None = Field(
        None, ge=1, description="model tokens per day (UTC) of all users; unlimited by default"
    )
    max_tokens_per_user: int | None = Field(
        None, ge=1, description="model tokens per day (UTC) of one user; unlimited by default"
    )
    max_bytes: int | None = Field(None, ge=1, description="bytes stored for all users; unlimited by default")
    max_bytes_per_user: int | None = Field(
        None, ge=1, description="bytes stored in one user's contexts; unlimited by default"
    )
    max_rounds: int = Field(30, ge=1, description="model calls per turn")
    max_artifact_bytes: int = Field(10 * 1024 * 1024, ge=1, description="bytes of one artifact")
    max_state_bytes: int = Field(
        1024 * 1024, ge=1, description="bytes that an agent's own loop may keep as the state of one conversation"
    )
    max_body_bytes: int = Field(10 * 1024 * 1024, ge=1024, description="bytes of one request")
    max_connections: int = Field(900, ge=1, description="concurrent HTTP connections, and concurrent gRPC calls")
    max_output_tokens: int = Field(32_000, ge=1, description="tokens of one model answer")
    context_window: int | None = Field(
        None,
        ge=8192,
        description="tokens of a model request and its answer together; by default the model's window",
    )
    thinking: Literal["auto", "off", "accumulated"] = Field(
        "auto",
        description="whether the model thinks before it answers, if it can: 'auto' or 'off'; 'accumulated' is for "
        "servers that repeat all previous thinking with each piece",
    )
    expose_thinking: bool = Field(True, description="show the model's thinking to clients of turn:v1 and AG-UI")
    on_disconnect: Literal["continue", "cancel"] = Field(
        "continue", description="what happens to a task when its last AG-UI client disconnects: 'continue' or 'cancel'"
    )
    shutdown_grace: float = Field(5, ge=0, le=600, description="seconds for a stopping server to end its streams")
    log_level: Literal["critical", "error", "warning", "info", "debug"] = Field(
        "info", description="'critical', 'error', 'warning', 'info' or 'debug'"
    )
    log_format: Literal["text", "json"] = Field("text", description="'text', or 'json' for one object per line")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, _FolderSource(settings_cls)

    @field_validator("log_level", mode="before")
    @classmethod
    def _lower_case(cls, value: Any) -> Any:
        return value.lower() if isinstance(value, str) else value

    @field_validator("*", mode="before")
    @classmethod
    def _reject_booleans(cls, value: Any, info: ValidationInfo) -> Any:
        # In Python, which pydantic follows, True is the number 1.
        annotation = cls.model_fields[info.field_name or ""].annotation
        if isinstance(value, bool) and {int, float} & {annotation, *get_args(annotation)}:
            raise ValueError("must be a number, not true or false")
        return value

    @model_validator(mode="after")
    def _ports_differ(self) -> Self:
        ports = {"port": self.port, "grpc_port": self.grpc_port, "metrics_port": self.metrics_port}
        taken: dict[int, str] = {}
        for name, port in ports.items():
            if port in taken:
                raise ValueError(f"{taken[port]} and {name} are both {port}; each needs a port of its own")
            if port:
                taken[port] = name
        return self

    @model_validator(mode="after")
    def _require_shared_database(self) -> Self:
        if self.workers > 1 and not self.database.startswith("postgresql"):
            raise ValueError(
                f"workers is {self.workers}, and only one process can use the database {self.database}: set database "
                "to postgresql://USER:PASSWORD@HOST/DATABASE, or workers to 1"
            )
        return self

    @model_validator(mode="after")
    def _require_byte_counts(self) -> Self:
        for name in ("max_bytes", "max_bytes_per_user"):
            if self.database == "memory" and getattr(self, name) is not None:
                raise ValueError(f"{name} needs a database that counts, and database is memory")
        return self

    @model_validator(mode="after")
    def _require_page_to_embed(self) -> Self:
        if self.embed_origins and self.page is None:
            raise ValueError("embed_origins are for documents of the page, and page is off")
        return self

    @property
    def authenticates(self) -> bool:
        """Whether these settings configure authentication; keys in the database may, too."""
        return bool(self.shared_token or self.api_keys or self.jwt_issuer)

    def of_worker(self, limit: int) -> int:
        """One worker's part of a limit of the address."""
        return ceil(limit / self.workers)

    @property
    def url(self) -> str:
        """The address in the card, without a trailing slash."""
        if self.public_url:
            return self.public_url
        return f"http://{authority('localhost' if self.host in ALL_ADDRESSES else self.host, self.port)}"

    @property
    def reachable_by(self) -> str:
        """The option, with its value, that makes the server reachable from other machines; empty if none does.

        A public address or name is that of a proxy, which may be on this machine.
        """
        if not is_loopback(self.host):
            return f"{option_name('host')} {self.host}"
        if self.public_url and not is_loopback(urlsplit(self.public_url).hostname or ""):
            return f"{option_name('public_url')} {self.public_url}"
        names = (name for name in self.allowed_hosts if not is_loopback(name))
        return next((f"{option_name('allowed_hosts')} {name}" for name in names), "")


class _FolderSource(PydanticBaseSettingsSource):
    """The settings of the agent's folder, after those of the caller and the environment."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        folder = self.current_state.get("agent")
        values = _read_folder(Path(folder)).values if folder else {}
        return {field: value for field, value in values.items() if value != ""}


def _read_folder(folder: Path) -> AgentFolder:
    return read_folder(folder, [field for field in Settings.model_fields if field != "agent"])


def authority(host: str, port: int) -> str:
    """`host:port` of a URL."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def option_name(field: str) -> str:
    """The name of a field on the command line."""
    return _OPTION_NAMES.get(field, "--" + field.replace("_", "-"))


FOLDER_OF_DATABASE = "With FOLDER, the command uses the database of that agent."
_OPTION_NAMES = {"agent": "FOLDER", "agents": "--agent", "shared_token": "--token", "advertise_0_3": "--advertise-0.3"}
"""The options whose name differs from their field, and the one argument."""


def bounds_of(field: str) -> str:
    """The bounds of a number in words: `1 to 65535`, `at least 1024`; empty if it has none."""
    bounds = {
        key: getattr(item, key)
        for item in Settings.model_fields[field].metadata
        for key in ("gt", "ge", "le")
        if hasattr(item, key)
    }
    match bounds:
        case {"ge": low, "le": high}:
            return f"{low} to {high}"
        case {"gt": low, "le": high}:
            return f"more than {low}, at most {high}"
        case {"ge": low}:
            return f"at least {low}"
        case _:
            return ""


# ------------------------------------------------------------------------ command line


GROUPS: Mapping[str, tuple[str, ...]] = {
    "Agent": (
        *("agent", "instructions", "tools", "loop", "mcp_config", "agents", "agent_tokens", "agent_card"),
        *("card_signing_key", "advertise_0_3"),
    ),
    "Address": (
        *("host", "port", "grpc_port", "metrics_port", "workers"),
        *("public_url", "public_grpc", "allowed_hosts", "cors_origin"),
    ),
    "Identity": (
        *("shared_token", "api_keys", "allow_anonymous", "adopt_anonymous"),
        *("jwt_issuer", "jwt_audience", "jwt_jwks_url", "jwt_user_claim"),
        *("oidc_client_id", "oidc_client_secret"),
    ),
    "Model": (*("model", "thinking", "expose_thinking", "max_output_tokens", "context_window", "max_rounds"),),
    "Data": ("database", "broker", "keep_versions", "keep_contexts"),
    "Page": ("page", "embed_origins"),
    "Push notifications": ("push_allow",),
    "Streams": ("frame_ms", "on_disconnect", "shutdown_grace"),
    "Limits": (
        *("max_turns", "max_artifact_bytes", "max_state_bytes", "max_body_bytes", "max_connections"),
        *("max_turns_per_user", "max_streams", "max_streams_per_user"),
        *("max_requests", "max_requests_per_user", "max_tokens", "max_tokens_per_user"),
        *("max_bytes", "max_bytes_per_user"),
    ),
    "Log": ("log_level", "log_format"),
}
"""The settings as `serve --help` lists them."""


def options(fields: Collection[str] = ()) -> list[click.Parameter]:
    """The options of these settings, or of all, and the argument; their values are read by `load`."""
    return [_option(group, field) for group in GROUPS for field in GROUPS[group] if not fields or field in fields]


def _option(group: str, field: str) -> click.Parameter:
    if field == "agent":
        return click.Argument([field], required=False, metavar="[FOLDER]")
    info = Settings.model_fields[field]
    switch = info.annotation is bool
    shown = info.default if not switch else "on" if info.default else "off"
    default = "" if shown in (None, (), {}) else f" (default: {shown})"
    numbers = f"; {bounds_of(field)}" if bounds_of(field) else ""
    name = option_name(field)
    return GroupedOption(
        [f"{name}/--no-{name[2:]}" if switch else name, field],
        group=group,
        default=None,
        multiple=info.default == (),
        metavar=None if switch else _metavar(field),
        help=f"{info.description}{numbers}{default}",
    )


def _metavar(field: str) -> str:
    """The placeholder of the value: the unit at the beginning of the description, else the last word of the name."""
    unit = str(Settings.model_fields[field].description).partition(" ")[0]
    return (unit if unit in UNITS else field.removesuffix("_per_user").rsplit("_", 1)[-1]).upper()


# ------------------------------------------------------------------------ loading


def load(values: Mapping[str, Any]) -> Settings:
    """The settings: those given by the command line, then those of the environment, then those of the agent's folder.

    Args:
        values: the parsed `options`; missing ones are None or empty. Other names are ignored.

    Raises:
        SettingsError: one of them is unknown, wrong or contradicts another.
    """
    known = {PREFIX + field.upper() for field in Settings.model_fields} | {TOKEN_VARIABLE, URL_VARIABLE}
    for name, value in os.environ.items():
        if value and name.upper().startswith(PREFIX) and name.upper() not in known:
            raise SettingsError(f"Unknown setting {name}.{_suggestion(name.upper())}")
    # The values of a repeated option are joined, as in the environment.
    values = {field: ",".join(value) if isinstance(value, tuple) else value for field, value in values.items()}
    values = {
        field: value for field, value in values.items() if field in Settings.model_fields and value not in (None, "")
    }
    try:
        return Settings(**values)
    except FolderError as error:
        raise SettingsError(str(error)) from None
    except ValidationError as error:
        raise SettingsError("; ".join(_message(fault, _places(values)) for fault in error.errors())) from None


def _places(values: Mapping[str, Any]) -> Mapping[str, str]:
    """The origin of each setting, for messages: the option, the variable, or the line in `agent.toml`."""
    variables = {PREFIX + field.upper(): field for field in Settings.model_fields}
    set_there = {variables.get(name.upper()): name.upper() for name, value in os.environ.items() if value}
    folder = values.get("agent") or os.environ.get(set_there.get("agent", ""))
    in_folder = (
        {field: f"{place}: {field.partition('.')[0]}" for field, place in _read_folder(Path(folder)).places.items()}
        if folder
        else {}
    )
    return (
        in_folder
        | {field: name for field, name in set_there.items() if field}
        | {field: option_name(field) for field in values}
    )


def line_in_folder(values: Mapping[str, Any], field: str) -> str:
    """The file and the line of `agent.toml` that a setting comes from; empty if it comes from elsewhere.

    Args:
        values: as for `load`.
    """
    place = _places({name: value for name, value in values.items() if value not in (None, "", ())}).get(field, "")
    end = f": {field}"
    return place.removesuffix(end) if place.endswith(end) else ""


def _suggestion(name: str) -> str:
    fields = [field.upper() for field in Settings.model_fields]
    close = difflib.get_close_matches(name.removeprefix(PREFIX), fields, n=1)
    return f" Did you mean {PREFIX}{close[0]}?" if close else " See a2a-canvas serve --help for all of them."


_NEEDED = {
    **NEEDED,
    "string_type": "text, in quotation marks",
    "dict_type": "text, in quotation marks",
    "path_type": "the name of a file, in quotation marks",
    "tuple_type": 'text in quotation marks, or a list of such: ["…", "…"]',
}
"""What a string, or a value of TOML, must be, by pydantic's type of error."""


def _message(fault: Any, places: Mapping[str, str]) -> str:
    message = str(fault["msg"]).removeprefix("Value error, ")
    if not fault["loc"]:
        return message
    field = str(fault["loc"][0])
    match fault["type"]:
        case "greater_than" | "greater_than_equal" | "less_than_equal":
            message = f"must be {bounds_of(field)}"
        case "literal_error":
            message = f"must be {fault['ctx']['expected'].replace(chr(39), '')}"
        case "int_parsing_size":
            message = "is too large"
        case kind if kind in _NEEDED:
            message = f"must be {_NEEDED[kind]}"
    error = fault.get("ctx", {}).get("error")
    key = f"{field}.{error.key}" if isinstance(error, LoopKeyError) else field
    place = places.get(key) or places.get(field, field)
    return f"{place}={_format_input(field, fault['input'])}: {message}"


def _format_input(field: str, value: Any) -> str:
    if not Settings.model_fields[field].repr:
        return "'***'"
    match value:
        case list() | tuple():
            return ",".join(map(str, value))
        case bool():
            return str(value).lower()
        case _ if field == "loop":
            return display_text(value)
        case _:
            return without_password(str(value)) if field == "database" else str(value)
