"""Settings: every one from the environment and from the command line, and one clear line for each that is wrong."""

import os
from pathlib import Path
from typing import Any

import pytest

from a2a_canvas.server.accounts.api_key import ApiKey
from a2a_canvas.server.settings.loop_setting import RemoteLoop
from a2a_canvas.server.settings.settings import GROUPS, PREFIX, Settings, SettingsError, bounds_of, load, option_name
from a2a_canvas.server.settings.value_types import without_password
from tests.command_line import parsed

SCRIPT = Path(__file__).parents[1] / "scripts" / "app.yaml"
AGENT = Path(__file__).parents[1] / "fixtures" / "agent"
"""A folder with instructions and nothing else."""
VALUES: dict[str, tuple[str, Any]] = {
    "agent": (str(AGENT), AGENT),
    "instructions": (str(SCRIPT), SCRIPT),
    "tools": (f"{SCRIPT},{__file__}", (SCRIPT, Path(__file__))),
    "loop": ("agui:http://[::1]:9000/run", RemoteLoop("agui:", "http://[::1]:9000/run")),
    "mcp_config": (str(SCRIPT), SCRIPT),
    "agents": ("http://a.example.com/a/,http://[::1]:9000", ("http://a.example.com/a", "http://[::1]:9000")),
    "agent_tokens": ("a.example.com=s3cret,[::1]=x=", {"a.example.com": "s3cret", "::1": "x="}),
    "host": ("0.0.0.0", "0.0.0.0"),
    "port": ("9000", 9000),
    "grpc_port": ("9001", 9001),
    "metrics_port": ("9002", 9002),
    "workers": ("1", 1),
    "model": ("rehearsal", "rehearsal"),
    "database": ("postgres://me:secret@db/canvas", "postgresql://me:secret@db/canvas"),
    "broker": (
        "tls://me:secret@a:4222, nats://localhost",
        ("tls://me:secret@a:4222", "nats://localhost"),
    ),
    "keep_versions": ("30", 30.0),
    "keep_contexts": ("365", 365.0),
    "shared_token": ("0123456789abcdef", "0123456789abcdef"),
    "api_keys": (f"ann=sha256:{'0' * 64}", (ApiKey("ann", "ann", "0" * 64),)),
    "jwt_issuer": ("https://login.example.com/", "https://login.example.com/"),
    "jwt_audience": ("https://agent.example.com", "https://agent.example.com"),
    "jwt_jwks_url": ("http://127.0.0.1:9000/keys", "http://127.0.0.1:9000/keys"),
    "jwt_user_claim": ("email", "email"),
    "oidc_client_id": ("canvas-page", "canvas-page"),
    "oidc_client_secret": ("0123456789", "0123456789"),
    "allow_anonymous": ("true", True),
    "adopt_anonymous": ("ann", "ann"),
    "public_url": ("https://agent.example.com/", "https://agent.example.com"),
    "public_grpc": ("grpc.example.com:443", "grpc.example.com:443"),
    "allowed_hosts": ("agent.example.com, *.example.org", ("agent.example.com", "*.example.org")),
    "agent_card": ("/tmp/card.json", Path("/tmp/card.json")),
    "card_signing_key": (str(SCRIPT), SCRIPT),
    "advertise_0_3": ("false", False),
    "cors_origin": (
        "https://a.example.com,http://localhost:3000",
        ("https://a.example.com", "http://localhost:3000"),
    ),
    "push_allow": ("hooks.internal, 10.0.0.0/8, [::1]", ("hooks.internal", "10.0.0.0/8", "[::1]")),
    "page": ("https://a.example.com, http://[::1]:9000", ("https://a.example.com", "http://[::1]:9000")),
    "embed_origins": (
        "https://Wiki.example.com, http://localhost:3000",
        ("https://wiki.example.com", "http://localhost:3000"),
    ),
    "frame_ms": ("12.5", 12.5),
    "max_turns": ("2", 2),
    "max_turns_per_user": ("3", 3),
    "max_streams": ("40", 40),
    "max_streams_per_user": ("4", 4),
    "max_requests": ("600", 600),
    "max_requests_per_user": ("60", 60),
    "max_tokens": ("5000000", 5_000_000),
    "max_tokens_per_user": ("100000", 100_000),
    "max_bytes": ("50000000000", 50_000_000_000),
    "max_bytes_per_user": ("100000000", 100_000_000),
    "max_rounds": ("3", 3),
    "max_artifact_bytes": ("5000", 5000),
    "max_state_bytes": ("5000", 5000),
    "max_body_bytes": ("7000", 7000),
    "max_connections": ("50", 50),
    "max_output_tokens": ("800", 800),
    "context_window": ("32768", 32_768),
    "thinking": ("off", "off"),
    "expose_thinking": ("false", False),
    "on_disconnect": ("cancel", "cancel"),
    "shutdown_grace": ("30", 30.0),
    "log_level": ("DEBUG", "debug"),
    "log_format": ("json", "json"),
}
"""What is written, and what it is read as."""
SERVER = "postgresql://USER:PASSWORD@HOST/DATABASE"
BROKER = "tls://USER:PASSWORD@HOST:PORT"
FILE = "a file such as ./my.db, sqlite:///FILE"
SWITCHES = {
    "advertise_0_3": "--no-advertise-0.3",
    "allow_anonymous": "--allow-anonymous",
    "expose_thinking": "--no-expose-thinking",
}
"""The options that take no value, as they must be given for what `VALUES` expects."""


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in tuple(os.environ):
        if name.upper().startswith(PREFIX):
            monkeypatch.delenv(name)


def given(field: str, written: str) -> list[str]:
    """The words of the command line that set a field."""
    return [written] if field == "agent" else [option_name(field), written]


def loaded(*arguments: str) -> Settings:
    return load(parsed("serve", *arguments)[1])


def test_the_help_has_every_setting_in_one_group() -> None:
    assert sorted(field for group in GROUPS.values() for field in group) == sorted(Settings.model_fields)


def test_the_tests_know_every_setting() -> None:
    assert VALUES.keys() == Settings.model_fields.keys()


@pytest.mark.parametrize("field", VALUES)
def test_every_setting_is_an_environment_variable(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written, expected = VALUES[field]
    monkeypatch.setenv(PREFIX + field.upper(), written)
    assert getattr(loaded(), field) == expected


@pytest.mark.parametrize("field", VALUES)
def test_every_setting_is_an_option(field: str) -> None:
    written, expected = VALUES[field]
    arguments = [SWITCHES[field]] if field in SWITCHES else given(field, written)
    assert getattr(loaded(*arguments), field) == expected


def test_origins_are_given_one_by_one_or_in_a_list() -> None:
    settings = loaded(
        "--cors-origin", "https://a.example.com", "--cors-origin", "http://localhost:3000, tauri://localhost"
    )
    assert settings.cors_origin == ("https://a.example.com", "http://localhost:3000", "tauri://localhost")
    assert loaded().cors_origin == ()


def test_the_servers_of_the_page_are_origins_in_lower_case() -> None:
    assert loaded("--page", "https://A.example.com, http://[::1]:9000").page == (
        "https://a.example.com",
        "http://[::1]:9000",
    )
    assert loaded().page == Settings(page=True).page == ()


def test_the_page_is_off_by_name_and_in_python() -> None:
    assert loaded("--page", "off").page is Settings(page=False).page is None


def test_the_command_line_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A2A_CANVAS_PORT", "9000")
    monkeypatch.setenv("A2A_CANVAS_ADVERTISE_0_3", "false")
    settings = loaded("--port", "9001", "--advertise-0.3")
    assert (settings.port, settings.advertise_0_3) == (9001, True)


@pytest.mark.parametrize("field", VALUES)
def test_an_empty_environment_variable_is_not_set(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PREFIX + field.upper(), "")
    assert loaded() == Settings()


def test_an_empty_environment_variable_is_not_set_whatever_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A2A_CANVAS_OF_ANOTHER_VERSION", "")
    assert loaded() == Settings()


@pytest.mark.parametrize("field", sorted(VALUES.keys() - SWITCHES.keys()))
def test_an_empty_option_is_not_given(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written, expected = VALUES[field]
    assert loaded(*given(field, "")) == Settings()
    monkeypatch.setenv(PREFIX + field.upper(), written)
    assert getattr(loaded(*given(field, "")), field) == expected


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("port", "1 to 65535"),
        ("grpc_port", "1 to 65535"),
        ("max_body_bytes", "at least 1024"),
        ("host", ""),
        ("keep_versions", "more than 0, at most 36500"),
        ("shutdown_grace", "0 to 600"),
    ],
)
def test_the_numbers_that_a_setting_takes_can_be_told(field: str, words: str) -> None:
    assert bounds_of(field) == words


def test_the_defaults_are_those_of_a_server_for_oneself() -> None:
    settings = loaded()
    assert (settings.host, settings.port, settings.grpc_port) == ("127.0.0.1", 8000, None)
    assert (settings.model, settings.database, settings.advertise_0_3) == (None, "sqlite:///a2a-canvas.db", True)
    assert (settings.keep_versions, settings.keep_contexts) == (None, None)
    assert (settings.expose_thinking, settings.on_disconnect) == (True, "continue")


@pytest.mark.parametrize(
    ("arguments", "url"),
    [
        ([], "http://127.0.0.1:8000"),
        (["--host", "0.0.0.0"], "http://localhost:8000"),
        (["--host", "::"], "http://localhost:8000"),
        (["--host", "::1", "--port", "9000"], "http://[::1]:9000"),
        (["--public-url", "https://agent.example.com/a/"], "https://agent.example.com/a"),
    ],
)
def test_the_card_names_an_address_that_can_be_reached(arguments: list[str], url: str) -> None:
    assert loaded(*arguments).url == url


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--port", "0"], "--port=0: must be 1 to 65535"),
        (["--port", "65536"], "--port=65536: must be 1 to 65535"),
        (["--port", "http"], "--port=http: must be a whole number"),
        (["--grpc-port", "0"], "--grpc-port=0: must be 1 to 65535"),
        (
            ["--public-grpc", "https://g.example.com"],
            "--public-grpc=https://g.example.com: must be a host and a port such",
        ),
        (["--port", "9000", "--grpc-port", "9000"], "port and grpc_port are both 9000"),
        (["--grpc-port", "8000"], "port and grpc_port are both 8000"),
        (["--grpc-port", "9000", "--metrics-port", "9000"], "grpc_port and metrics_port are both 9000"),
        (
            ["--database", "memory", "--max-bytes", "9"],
            "max_bytes needs a database that counts, and database is memory",
        ),
        (["--database", "mysql://h/d"], f"--database=mysql://h/d: must be memory, {FILE} or {SERVER}"),
        (["--database", "mydata"], f"--database=mydata: must be memory, {FILE} or "),
        (["--database", "./data/"], f"--database=./data/: must be memory, {FILE} or "),
        (["--database", "memory:"], f"--database=memory:: must be memory, {FILE} or "),
        (["--database", "sqlite"], "--database=sqlite: must be sqlite:///FILE (three slashes; four before"),
        (["--database", "sqlite://canvas.db"], "--database=sqlite://canvas.db: must be sqlite:///FILE (three"),
        (["--database", "sqlite:///"], "--database=sqlite:///: must be sqlite:///FILE (three slashes"),
        (["--database", "sqlite:///:memory:"], "'memory' stores nothing"),
        (["--database", "sqlite:///file:x"], "with the name of a file and nothing else"),
        (["--database", "sqlite:///x.db?mode=ro"], "with the name of a file and nothing else"),
        (["--database", "postgresql"], f"--database=postgresql: must be {SERVER}; in a user or password @ : "),
        (["--database", "postgresql://db"], f"--database=postgresql://db: must be {SERVER}"),
        (["--database", "postgresql://db/"], f"--database=postgresql://db/: must be {SERVER}"),
        (["--database", "postgresql://db:0/x"], f"must be {SERVER}"),
        (["--database", "postgresql://[/x"], f"must be {SERVER}"),
        (["--database", "postgresql+psycopg://db/x"], f"must be memory, {FILE} or postgresql://"),
        (["--database", "postgresql://db/x?a=b"], "?a= is unknown; there are ?sslmode=, ?host= and ?target_session"),
        (["--database", "postgresql://a,/x"], f"must be {SERVER}"),
        (["--database", "postgresql://a:1,b:0/x"], f"must be {SERVER}"),
        (["--database", "postgresql://a:1,b:1,a:1/x"], "must name each server once"),
        (["--database", "postgresql:///x?host=a,b"], "several servers are named before the database: postgresql://"),
        (
            ["--database", "postgresql://a,b/x?host=/run"],
            "several servers are named before the database: postgresql://",
        ),
        (["--database", "postgresql://a,b/x?target_session_attrs=any"], "target_session_attrs must be read-write"),
        (["--database", "postgresql://db/x?sslmode=on"], "sslmode must be one of disable, allow, prefer"),
        (["--page", "https://a.example.com/a2a"], "--page=https://a.example.com/a2a: must be origins"),
        (["--page", "https://a.example.com; script-src *"], "must be origins such as"),
        (["--page", "tauri://localhost"], "must be origins such as"),
        (
            ["--embed-origins", "*"],
            "--embed-origins=*: must be origins such as https://wiki.example.com, without a path",
        ),
        (["--embed-origins", "https://*.example.com"], "must be origins such as"),
        (["--embed-origins", "https://wiki.example.com/"], "must be origins such as"),
        (["--embed-origins", "https://a.example.com; script-src *"], "must be origins such as"),
        (["--embed-origins", "http://[::1]:9000"], "and no IPv6 address"),
        (["--embed-origins", "https://a.example.com", "--page", "off"], "for documents of the page, and page is off"),
        (["--cors-origin", "*"], "--cors-origin=*: must be origins such as https://app.example.com, without a path"),
        (["--cors-origin", "https://a.example.com/"], "must be origins such as"),
        (["--cors-origin", "a.example.com"], "must be origins such as"),
        (["--token", "short"], "--token='***': must be 16 or more letters, digits and -_~+/="),
        (["--token", "0123456789 abcdef"], "--token='***': must be 16 or more"),
        (["--token", "a2ac_0123456789abcdef"], "--token='***': must be 16 or more"),
        (["--api-keys", f"shared=sha256:{'0' * 64}"], "--api-keys='***': must not name the user 'shared'"),
        (["--api-keys", "ann=s3cret"], "--api-keys='***': must be pairs such as ann=KEY or ann=sha256:HASH"),
        (
            ["--jwt-issuer", "http://login.example.com"],
            "--jwt-issuer=http://login.example.com: must be an address with",
        ),
        (["--jwt-jwks-url", "login.example.com"], "--jwt-jwks-url=login.example.com: must be an address with https"),
        (["--keep-contexts", "0"], "--keep-contexts=0: must be more than 0, at most 36500"),
        (["--keep-versions", "inf"], "--keep-versions=inf: must be more than 0, at most 36500"),
        (["--keep-contexts", "month"], "--keep-contexts=month: must be a number"),
        (["--shutdown-grace", "601"], "--shutdown-grace=601: must be 0 to 600"),
        (["--public-url", "agent.example.com"], "--public-url=agent.example.com: must be an address"),
        (["--public-url", "ftp://agent.example.com"], "must be an address"),
        (["--public-url", "http://"], "must be an address"),
        (["--public-url", "http://["], "--public-url=http://[: "),
        (["--public-url", "http://h:99999"], "--public-url=http://h:99999: Port out of range"),
        (["--on-disconnect", "stop"], "--on-disconnect=stop: must be continue or cancel"),
        (["--log-level", "loud"], "--log-level=loud: must be critical, error, warning, info or debug"),
        (["--log-format", "xml"], "--log-format=xml: must be text or json"),
        (["--frame-ms", "-1"], "--frame-ms=-1: must be 0 to 1000"),
        (["--frame-ms", "nan"], "--frame-ms=nan: must be 0 to 1000"),
        (["--port", "8" * 5000], ": is too large"),
        (["--port", "8000.5"], "--port=8000.5: must be a whole number"),
        (["--frame-ms", "fast"], "--frame-ms=fast: must be a number"),
        (["--frame-ms", "1001"], "--frame-ms=1001: must be 0 to 1000"),
        (["--max-body-bytes", "10"], "--max-body-bytes=10: must be at least 1024"),
        (["--max-rounds", "0"], "--max-rounds=0: must be at least 1"),
        (["--max-turns", "-1"], "--max-turns=-1: must be at least 0"),
        (["--broker", "localhost:4222"], f"--broker='***': must be {BROKER}, or nats://localhost:4222; in a user"),
        (
            ["--broker", "tls://me:s#cret@a"],
            f"must be {BROKER}, or nats://localhost:4222; in a user or password @ : / ",
        ),
        (["--broker", "nats://localhost/x"], f"must be {BROKER}, or"),
        (["--broker", "nats://localhost,http://localhost"], f"must be {BROKER}, or"),
        (["--broker", "nats://me:secret@nats.internal"], f"must be {BROKER} for a broker on another machine: "),
        (["--broker", "tls://nats.internal"], f"must be {BROKER} for a broker on another machine: "),
        (
            ["--max-turns", "x", "--max-rounds", "y"],
            "--max-turns=x: must be a whole number; --max-rounds=y: must be a whole number",
        ),
    ],
)
def test_a_wrong_option_is_one_line_that_names_it(arguments: list[str], says: str) -> None:
    with pytest.raises(SettingsError) as caught:
        loaded(*arguments)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "database",
    [
        "memory",
        "sqlite:///a2a-canvas.db",
        "sqlite:////data/my canvas.db",
        "postgresql://db/canvas",
        "postgresql://me:p%40ss@[::1]:5433/canvas?sslmode=verify-full",
        "postgresql:///canvas?host=/run/postgresql",
        "postgresql://db1,db2/canvas",
        "postgresql://me:p%40ss@[::1]:5433,db2,10.0.0.5:5432/canvas?target_session_attrs=read-write&sslmode=require",
    ],
)
def test_a_database_is_nothing_on_disk_or_a_file_or_a_server(database: str) -> None:
    assert loaded("--database", database).database == database


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("./my.db", "sqlite:///my.db"),
        ("my.db", "sqlite:///my.db"),
        (".hidden/canvas", "sqlite:///.hidden/canvas"),
        ("../other folder/my.db", "sqlite:///../other folder/my.db"),
        ("/data/canvas", "sqlite:////data/canvas"),
        ("~/my.db", "sqlite:////home/me/my.db"),
    ],
)
@pytest.mark.parametrize("by", ["option", "variable"])
def test_a_path_is_the_database_in_that_file(path: str, url: str, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    if by == "variable":
        monkeypatch.setenv("A2A_CANVAS_DATABASE", path)
    assert loaded(*(["--database", path] if by == "option" else [])).database == url


SECRET = "hunter2"


@pytest.mark.parametrize(
    "written",
    [
        "mysql://me:hunter2@db/canvas",
        "postgresql//me:hunter2@db/canvas",
        "postgresql:/me:hunter2@db/canvas",
        "postgresql://me:hunter2@db",
        "postgresql://me:hunter2#@db/canvas",
        "postgresql://me:x/hunter2@db/canvas",
        "postgresql://me:hunter2/x@db/canvas",
        "postgresql://me:hunter2?x@db/canvas",
        "postgresql://me:@hunter2@db",
        "postgresql://me:hunter2\n@db",
        "postgresql://me:hunter2\u2100@db/canvas",
        "postgresql://me:[hunter2@db/canvas",
        "postgresql://db/canvas?password=hunter2",
        "postgresql://db/canvas?sslPassword=hunter2&sslmode=on",
        "me:hunter2@db",
        "me:hunter2@db.example.com/canvas",
        "postgres:me:hunter2@db/canvas",
    ],
)
def test_a_password_is_in_no_message_however_wrong_the_address_is(written: str) -> None:
    with pytest.raises(SettingsError) as caught:
        loaded("--database", written)
    assert SECRET not in str(caught.value)
    assert str(caught.value).startswith("--database=")


def test_tokens_are_by_host_and_in_no_message() -> None:
    assert Settings(agent_tokens="A.example.com=s3cret,b.example.com=t=").agent_tokens == {
        "a.example.com": "s3cret",
        "b.example.com": "t=",
    }
    with pytest.raises(SettingsError) as refused:
        load({"agent_tokens": "s3cret"})
    assert "--agent-tokens='***': must be pairs such as agent.example.com=TOKEN" in str(refused.value)


def test_a_token_of_an_ipv6_address_is_found_by_the_host_of_its_url() -> None:
    assert Settings(agent_tokens="[::1]=s3cret").agent_tokens == Settings(agent_tokens="::1=s3cret").agent_tokens
    assert Settings(agent_tokens="[::1]=s3cret").agent_tokens["::1"] == "s3cret"


@pytest.mark.parametrize("host", ["127.0.0.1:18005", "a.example.com:443", "[::1]:9000"])
def test_a_token_may_be_for_a_port(host: str) -> None:
    assert Settings(agent_tokens=f"{host}=s3cret").agent_tokens == {host: "s3cret"}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:secret@db:5432/canvas", "postgresql://me:***@db:5432/canvas"),
        ("postgresql://db/canvas", "postgresql://db/canvas"),
        ("postgresql://me@db/canvas", "postgresql://me@db/canvas"),
        ("postgresql://me:secret@db1,db2:5433/canvas", "postgresql://me:***@db1,db2:5433/canvas"),
        ("sqlite:///a2a-canvas.db", "sqlite:///a2a-canvas.db"),
    ],
)
def test_an_address_is_shown_without_its_password(url: str, shown: str) -> None:
    assert without_password(url) == shown


def test_a_wrong_environment_variable_is_called_by_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A2A_CANVAS_PORT", "x")
    monkeypatch.setenv("A2A_CANVAS_ADVERTISE_0_3", "maybe")
    with pytest.raises(SettingsError) as caught:
        loaded()
    assert str(caught.value) == (
        "A2A_CANVAS_PORT=x: must be a whole number; A2A_CANVAS_ADVERTISE_0_3=maybe: must be true or false"
    )


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("A2A_CANVAS_PROT", "Did you mean A2A_CANVAS_PORT?"),
        ("A2A_CANVAS_GRPCPORT", "Did you mean A2A_CANVAS_GRPC_PORT?"),
        ("a2a_canvas_modl", "Did you mean A2A_CANVAS_MODEL?"),
        ("A2A_CANVAS_XYZZY_QUUX", "See a2a-canvas serve --help"),
    ],
)
def test_an_unknown_variable_is_refused_with_the_nearest_known_one(
    monkeypatch: pytest.MonkeyPatch, name: str, says: str
) -> None:
    monkeypatch.setenv(name, "1")
    with pytest.raises(SettingsError) as caught:
        loaded()
    assert str(caught.value).startswith(f"Unknown setting {name}. ")
    assert says in str(caught.value)


def test_other_variables_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A2A_PORT", "x")
    monkeypatch.setenv("PORT", "x")
    monkeypatch.setenv("A2A_CANVAS_TOKEN", "the client's")
    assert loaded().port == 8000
