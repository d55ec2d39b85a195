"""Turns measurements and answers into findings. Pure: `local_checks.py` and `remote_checks.py` measure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from a2a_canvas.server.accounts.api_key import KeyCount
from a2a_canvas.server.commands.database_check import ConnectionLimit
from a2a_canvas.server.commands.doctor.findings import Finding, failure, ok, warning
from a2a_canvas.server.commands.open_files import needed_files
from a2a_canvas.server.commands.workers.connection_shares import connections_each
from a2a_canvas.server.push.targets import AllowedTargets
from a2a_canvas.server.settings.settings import ALL_ADDRESSES, Settings, SettingsError
from a2a_canvas.server.settings.value_types import is_loopback
from a2a_canvas.store.sql.database import CONNECTIONS
from a2a_canvas.store.text.wording import choice

SLOW_DATABASE = 0.05
"""Seconds of a query. Accepting a message takes several."""
LITTLE_SPACE, NO_SPACE = 2**30, 50 * 2**20
"""Free bytes on the disk of a SQLite file."""
CLOCKS_DIFFER = 2.0
"""Seconds between two clocks that are noticed: a token may be refused, and times of entries look wrong."""


def judge_latency(seconds: float) -> Finding:
    milliseconds = f"{seconds * 1000:.1f} ms"
    if seconds > SLOW_DATABASE:
        advice = "Each message waits for several queries: run server and database in one place."
        return warning("latency", f"The database answers a query in {milliseconds}.", advice)
    return ok("latency", f"The database answers a query in {milliseconds}.")


def judge_space(free: int, folder: str) -> Finding:
    message = f"{free / 2**30:.1f} GB are free in {folder}."
    if free < NO_SPACE:
        return failure("disk", message, "With a full disk nothing is accepted: free some space.")
    if free < LITTLE_SPACE:
        return warning(
            "disk", message, "Free some space, or shorten the --keep options (a2a-canvas db prune --dry-run)."
        )
    return ok("disk", message)


def judge_clocks(difference: float, of: str) -> Finding:
    """Args: difference: seconds that the other clock is ahead."""
    if abs(difference) <= CLOCKS_DIFFER:
        return ok("clock", f"The clock agrees with that of {of}.")
    way = "ahead of" if difference > 0 else "behind"
    message = f"The clock of {of} is {abs(difference):.0f} seconds {way} this one."
    return warning("clock", message, "Synchronise both with NTP: tokens are valid by the clock of the server.")


def judge_standbys(names: str) -> Finding:
    """Args: names: of PostgreSQL's setting `synchronous_standby_names`."""
    if names:
        return ok("standby", f"Commits wait for a synchronous standby ({names}).")
    advice = "Set synchronous_standby_names, or synchronous_mode in Patroni: see docs/operations.md."
    return warning("standby", "No commit waits for a standby: a failover may lose acknowledged data.", advice)


def judge_open_files(limit: int, settings: Settings) -> Finding:
    need = needed_files(settings)
    if limit < need:
        message = f"{limit} files may be open, and --max-connections {settings.max_connections} needs {need}."
        return warning("files", message, f"Start it after ulimit -n {need}, or with a smaller --max-connections.")
    return ok("files", f"{limit} files may be open, and {need} are needed.")


def judge_workers(workers: int, allowed: ConnectionLimit) -> Finding:
    """Whether PostgreSQL allows the connections of so many workers."""
    try:
        each = connections_each(workers, allowed)
    except SettingsError as error:
        return failure("workers", f"PostgreSQL allows too few connections for {workers} workers.", str(error))
    message = f"PostgreSQL allows each of {workers} workers {each} connections."
    if each < CONNECTIONS:
        need = workers * CONNECTIONS + allowed.reserved
        return warning("workers", message, f"They work best with {CONNECTIONS}: raise its max_connections to {need}.")
    return ok("workers", message)


def judge_card(settings: Settings) -> Finding:
    """Whether clients can reach the address in a valid card."""
    if settings.host in ALL_ADDRESSES and not settings.public_url:
        message = f"The card says {settings.url}, which only this machine can reach."
        return warning("card", message, "Set --public-url to the address that clients use.")
    if (
        settings.url.startswith("http://")
        and settings.public_url
        and not is_loopback(urlsplit(settings.url).hostname or "")
    ):
        message = f"The card says {settings.url}: everything is sent without encryption."
        return warning("card", message, "Put it behind a proxy with TLS, and set --public-url https://…")
    return ok("card", f"The card can be served; it says {settings.url}.")


def judge_openness(settings: Settings, keys: KeyCount) -> Iterator[Finding]:
    """Who is served. Whether `serve` would refuse to start is a separate check (`app.check_open`)."""
    if settings.allow_anonymous and settings.reachable_by:
        message = "Callers without credentials are served, and others can reach the server."
        yield warning("access", message, "Omit --allow-anonymous unless everybody may use the model at your cost.")
    elif settings.allow_anonymous:
        yield ok("access", "Callers without credentials are served; only programs on this machine reach the server.")
    elif keys.lock_out_all and not settings.authenticates:
        advice = "Make a key with a2a-canvas key new NAME, or serve everybody with --allow-anonymous."
        yield failure("access", "There is no valid key, so nobody can call the server.", advice)
    elif settings.authenticates or keys.made:
        yield ok("access", "Callers need credentials.")
    else:
        yield ok("access", "There is no authentication; only programs on this machine reach the server.")
    if settings.metrics_port and not is_loopback(settings.host):
        message = f"--metrics-port {settings.metrics_port} needs no credentials and listens on {settings.host}."
        yield warning("metrics", message, "Allow only your monitoring to reach this port.")


def judge_limits(settings: Settings) -> Iterator[Finding]:
    """The limits for users of a server that others can reach."""
    limits = {
        "requests": (settings.max_requests_per_user, settings.max_requests),
        "turns": (settings.max_turns_per_user,),
        "tokens": (settings.max_tokens_per_user, settings.max_tokens),
    }
    missing = [name for name, of in limits.items() if not any(of)]
    if settings.reachable_by and missing:
        message = f"Others can reach the server, and a user's {choice(missing, 'and')} have no limit."
        options = choice([f"--max-{name}-per-user" for name in missing], "and")
        yield warning("limits", message, f"Set {options}: docs/quotas.md.")


def judge_trust(settings: Settings, trusted_proxies: str) -> Iterator[Finding]:
    """Settings that trust everyone. Args: trusted_proxies: FORWARDED_ALLOW_IPS."""
    if trusted_proxies == "*":
        message = "FORWARDED_ALLOW_IPS=* lets every client spoof its address and evade the limit on wrong keys."
        yield warning("trust", message, "List the proxy's address or network instead.")
    if "*" in settings.allowed_hosts:
        message = f"--allowed-hosts {','.join(settings.allowed_hosts)} accepts requests for names that others may own."
        yield warning(
            "trust",
            message,
            "List the hosts that clients use. Other websites can call the server by any other name.",
        )
    if any(network.prefixlen == 0 for network in AllowedTargets.parse(settings.push_allow).networks):
        message = (
            f"--push-allow {','.join(settings.push_allow)} lets users make the server call any address in your network."
        )
        yield warning("trust", message, "List the hosts or networks of the receivers.")


# ------------------------------------------------------------------------ from outside


def judge_anonymous(answers: Mapping[str, int], local: bool) -> Finding:
    """Args: answers: the HTTP status of each path for a caller without credentials."""
    let_in = [path for path, status in answers.items() if status < 400]
    broken = [
        f"{path} (HTTP {status})" for path, status in answers.items() if status not in (401, 403, 404) and status >= 400
    ]
    if let_in:
        message = f"Without credentials it answers at {', '.join(let_in)}."
        advice = "Anyone who finds the address can use it: make a key with a2a-canvas key new NAME."
        return (warning if local else failure)("anonymous", message, advice)
    if broken:
        advice = "Check the proxy in front of the server, and the server's log."
        return warning("anonymous", f"Without credentials it fails at {', '.join(broken)}.", advice)
    return ok("anonymous", "Without credentials it refuses every operation.")


def judge_grpc(address: str, alone: str, authenticated: str, local: bool) -> Finding:
    """Args: alone, authenticated: the status codes without credentials and with them; empty if there are none."""
    match alone:
        case "OK":
            message = f"Without credentials gRPC answers at {address}."
            advice = "Anyone who finds the address can use it: make a key with a2a-canvas key new NAME."
            return (warning if local else failure)("grpc", message, advice)
        case "UNAUTHENTICATED" | "PERMISSION_DENIED" if authenticated in ("", "OK"):
            taken = " and accepts yours" if authenticated else ""
            return ok("grpc", f"gRPC at {address} refuses callers without credentials{taken}.")
        case "UNAUTHENTICATED" | "PERMISSION_DENIED":
            message = f"gRPC at {address} answers to the credentials with {authenticated}."
            return failure("grpc", message, "Get a valid key: a2a-canvas key list shows the keys.")
        case _:
            message = f"gRPC at {address} answers with {alone}."
            return failure("grpc", message, "Check the name, the port, and that the proxy speaks HTTP/2 on both sides.")


def judge_credentials(status: int, variable: str) -> Finding:
    match status:
        case 200:
            return ok("credentials", f"The credentials in {variable} are taken.")
        case 401 | 403:
            message = f"The credentials in {variable} are refused (HTTP {status})."
            return failure("credentials", message, "Get a valid key: a2a-canvas key list shows the keys.")
        case 429:
            return warning("credentials", "Too many wrong credentials came from here.", "Try again in a few minutes.")
        case _:
            message = f"With the credentials in {variable} it answers with HTTP {status}."
            return failure("credentials", message, "Check the proxy in front of the server, and the server's log.")
