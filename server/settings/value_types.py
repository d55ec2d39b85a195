"""The types of settings that are more than a number or a word: each carries its rule, in the words of an error."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from pydantic import AfterValidator, BeforeValidator
from pydantic_settings import NoDecode

from a2a_canvas.server.accounts.api_key import PREFIX as KEY_PREFIX
from a2a_canvas.server.accounts.api_key import SHARED_USER, ApiKey, key_of_pair
from a2a_canvas.server.settings.agent_folder import is_database_file

PATH_FORM = "a file such as ./my.db"
SQLITE_FORM = "sqlite:///FILE"
POSTGRESQL_FORM = "postgresql://USER:PASSWORD@HOST/DATABASE"
BROKER_FORM = "tls://USER:PASSWORD@HOST:PORT"
_TARGET = "target_session_attrs"
SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")


def without_password(url: str) -> str:
    """An address without its password, even if it is malformed."""
    # Everything before the last @ may be part of a password that should have been quoted.
    hidden = re.sub(r"^((?:\w[\w+.-]*:?//[^:@/]*+)?+).+@", r"\1:***@", url, flags=re.DOTALL)
    return re.sub(r"(password=)[^&]*", r"\1***", hidden, flags=re.IGNORECASE)


def is_trusted_url(url: str) -> bool:
    """Whether the content of a URL is authentic: it is read by HTTPS, or from this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)))


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine reach an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _split(value: Any) -> Any:
    match value:
        case str():
            return tuple(name.strip() for name in value.split(",") if name.strip())
        case Path():
            return (value,)
        case _:
            return value


def _require_file(path: Path) -> Path:
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    return path


def _http_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
        raise ValueError("must be an address such as https://agent.example.com")
    return url.rstrip("/")


def _key(value: Any) -> ApiKey:
    key = value if isinstance(value, ApiKey) else key_of_pair(str(value))
    if not key:
        raise ValueError("must be pairs such as ann=KEY or ann=sha256:HASH, as a2a-canvas key new prints them")
    if key.user == SHARED_USER:
        raise ValueError(f"must not name the user {SHARED_USER!r}, which is reserved for holders of the shared token")
    return key


def _tokens(value: Any) -> Any:
    """Tokens by host or `host:port`; an IPv6 address has brackets before a port alone."""
    if not isinstance(value, str):
        return value
    host = r"(?:[\w.-]+|\[[\da-fA-F:.]+\])(?::\d{1,5})?|[\da-fA-F]*:[\da-fA-F.]*:[\da-fA-F:.]*"
    pairs = [re.fullmatch(rf"({host})=([!-~]+)", pair) for pair in _split(value)]
    if not all(pairs):
        raise ValueError("must be pairs such as agent.example.com=TOKEN, separated by commas")
    found = (pair.groups() for pair in pairs if pair)
    return {(host.strip("[]") if host.endswith("]") else host).lower(): token for host, token in found}


def _page(value: Any) -> Any:
    match value:
        case False | "off":
            return None
        case True | "on":
            return ()
        case _:
            return _split(value)


def _database(value: str) -> str:
    match value.partition(":")[0]:
        case "memory" if value == "memory":
            return value
        case "sqlite":
            return _sqlite_url(value)
        case "postgresql" | "postgres":
            return _postgresql_url(value)
        case _ if is_database_file(value):
            return f"sqlite:///{Path(value).expanduser()}"
        case _:
            raise ValueError(f"must be memory, {PATH_FORM}, {SQLITE_FORM} or {POSTGRESQL_FORM}")


def _sqlite_url(url: str) -> str:
    path = url.removeprefix("sqlite:///")
    if path == url or not path:
        raise ValueError(f"must be {SQLITE_FORM} (three slashes; four before a path that begins with one)")
    if "?" in path or path.startswith((":memory:", "file:")):
        raise ValueError(f"must be {SQLITE_FORM}, with the name of a file and nothing else; 'memory' stores nothing")
    return url


def _postgresql_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        hosts = parts.netloc.rpartition("@")[2].split(",")
        named = hosts == [""] or all(
            urlsplit(f"//{host}").hostname and urlsplit(f"//{host}").port != 0 for host in hosts
        )
        whole = url.startswith(f"{parts.scheme}://") and named and parts.path.strip("/") and not parts.fragment
    except ValueError:
        # Its message may quote a piece of the password.
        whole = False
    if not whole:
        raise ValueError(
            f"must be {POSTGRESQL_FORM}; in a user or password @ : / ? # % are written as %40 %3A %2F %3F %23 %25"
        )
    options = dict(parse_qsl(parts.query))
    if unknown := options.keys() - {"sslmode", "host", _TARGET}:
        raise ValueError(f"?{min(unknown)}= is unknown; there are ?sslmode=, ?host= and ?{_TARGET}=")
    if options.get(_TARGET, "read-write") != "read-write":
        raise ValueError(f"{_TARGET} must be read-write, because servers write")
    if len(set(hosts)) < len(hosts):
        raise ValueError("must name each server once")
    if "," in options.get("host", "") or (len(hosts) > 1 and "host" in options):
        raise ValueError(
            "several servers are named before the database: postgresql://USER:PASSWORD@HOST1,HOST2/DATABASE"
        )
    if options.get("sslmode", "prefer") not in SSL_MODES:
        raise ValueError(f"sslmode must be one of {', '.join(SSL_MODES)}")
    return "postgresql" + url.removeprefix(parts.scheme)


def _brokers(addresses: tuple[str, ...]) -> tuple[str, ...]:
    for address in addresses:
        try:
            parts = urlsplit(address)
            whole = (
                parts.hostname and parts.port != 0 and parts.path in ("", "/") and not (parts.query or parts.fragment)
            )
        except ValueError:
            whole = ""
        if not whole or parts.scheme not in ("nats", "tls"):
            raise ValueError(
                f"must be {BROKER_FORM}, or nats://localhost:4222; in a user or password @ : / ? # % , are written as "
                "%40 %3A %2F %3F %23 %25 %2C"
            )
        secured = parts.scheme == "tls" and parts.username and parts.password
        if not secured and not is_loopback(parts.hostname or ""):
            raise ValueError(
                f"must be {BROKER_FORM} for a broker on another machine: without TLS and a password, others on the "
                "network could read conversations"
            )
    return addresses


def _require(be_valid: Callable[[str], object], rule: str) -> AfterValidator:
    def check(value: str) -> str:
        if not be_valid(value):
            raise ValueError(rule)
        return value

    return AfterValidator(check)


def _is_network_or_host(name: str) -> bool:
    if "/" not in name:
        return bool(re.fullmatch(r"[\w.-]+|\[?[0-9A-Fa-f:.]+\]?", name))
    try:
        return bool(re.fullmatch(r"[0-9A-Fa-f:.]+/\d+", name) and ip_network(name, strict=False))
    except ValueError:
        return False


T = TypeVar("T")
ListOf = Annotated[tuple[T, ...], NoDecode, BeforeValidator(_split)]
"""Values separated by commas, or a list of TOML."""

File = Annotated[Path, AfterValidator(_require_file)]
DatabaseUrl = Annotated[str, AfterValidator(_database)]
Brokers = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split), AfterValidator(_brokers)]
HttpUrl = Annotated[str, AfterValidator(_http_url)]
# Not pydantic's `HttpUrl`, which rewrites addresses: that of an issuer is compared by characters.
TrustedUrl = Annotated[
    str, _require(is_trusted_url, "must be an address with https, such as https://login.example.com")
]
SharedToken = Annotated[
    str,
    _require(
        re.compile(rf"(?!{KEY_PREFIX})[\w~+/=-]{{16,}}", re.ASCII).fullmatch,
        "must be 16 or more letters, digits and -_~+/=, such as openssl rand -hex 16 prints, and no API key",
    ),
]
Key = Annotated[ApiKey, BeforeValidator(_key)]
TokensByHost = Annotated[Mapping[str, str], NoDecode, BeforeValidator(_tokens)]
HostName = Annotated[
    str,
    _require(
        re.compile(r"\*|(\*\.)?[\w.-]+|[0-9A-Fa-f:.]+").fullmatch,
        "must be names such as agent.example.com, without ports, separated by commas; * for any",
    ),
]
HostAndPort = Annotated[
    str,
    _require(
        re.compile(r"([\w.-]+|\[[0-9A-Fa-f:.]+\])(:[1-9][0-9]{0,4})?").fullmatch,
        "must be a host and a port such as grpc.example.com:443",
    ),
]
HostOrNetwork = Annotated[
    str,
    _require(_is_network_or_host, "must be hosts and networks such as hooks.internal,10.0.0.0/8, separated by commas"),
]
Origin = Annotated[
    str,
    _require(
        re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#@*,\s]+").fullmatch,
        "must be origins such as https://app.example.com, without a path, separated by commas",
    ),
    AfterValidator(str.lower),
]
HttpOrigin = Annotated[
    str,
    # It becomes part of a header: no character may end the directive.
    _require(
        re.compile(r"https?://(\[[0-9A-Fa-f:]+\]|[\w.-]+)(:\d+)?").fullmatch,
        "must be origins such as https://agent.example.com, without a path, separated by commas, or off",
    ),
    AfterValidator(str.lower),
]
EmbedOrigin = Annotated[
    str,
    # Of a policy, too. It cannot name an IPv6 address, and `*` would let pages embed what nobody chose to show there.
    _require(
        re.compile(r"https?://[\w.-]+(:\d+)?", re.ASCII).fullmatch,
        "must be origins such as https://wiki.example.com, without a path, separated by commas, and no IPv6 address",
    ),
    AfterValidator(str.lower),
]
Page = Annotated[tuple[HttpOrigin, ...] | None, NoDecode, BeforeValidator(_page)]
"""The origins that the page may use; None without a page."""
