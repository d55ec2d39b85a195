"""Settings: every one from the environment and from the command line, and one clear line for each that is wrong."""

import os
from pathlib import Path
from typing import Any

import pytest

from server.cli import parser
from server.settings import PREFIX, Settings, SettingsError, load, option, span

SCRIPT = Path(__file__).parent / "scripts" / "app.yaml"
VALUES: dict[str, tuple[str, Any]] = {
    "host": ("0.0.0.0", "0.0.0.0"),
    "port": ("9000", 9000),
    "grpc_port": ("9001", 9001),
    "model": ("rehearsal", "rehearsal"),
    "database": ("memory", "memory"),
    "public_url": ("https://agent.example.com/", "https://agent.example.com"),
    "agent_card": ("/tmp/card.json", Path("/tmp/card.json")),
    "advertise_0_3": ("false", False),
    "frame_ms": ("12.5", 12.5),
    "max_rounds": ("3", 3),
    "max_tool_errors": ("4", 4),
    "max_artifact_bytes": ("5000", 5000),
    "max_parts": ("6", 6),
    "max_body_bytes": ("7000", 7000),
    "max_output_tokens": ("800", 800),
    "expose_thinking": ("true", True),
    "on_disconnect": ("cancel", "cancel"),
    "log_level": ("DEBUG", "debug"),
}
"""What is written, and what it is read as."""
SWITCHES = {"advertise_0_3": "--no-advertise-0.3", "expose_thinking": "--expose-thinking"}
"""The options that take no value, as they must be given for what `VALUES` expects."""


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in tuple(os.environ):
        if name.upper().startswith(PREFIX):
            monkeypatch.delenv(name)


def given(*arguments: str) -> dict[str, Any]:
    """What the command line says, as `serve` passes it on."""
    options = vars(parser().parse_args(["serve", *arguments]))
    return {field: value for field, value in options.items() if field in Settings.model_fields}


def loaded(*arguments: str) -> Settings:
    return load(given(*arguments))


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
    arguments = [SWITCHES[field]] if field in SWITCHES else [option(field), written]
    assert getattr(loaded(*arguments), field) == expected


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


@pytest.mark.parametrize("field", VALUES.keys() - SWITCHES.keys())
def test_an_empty_option_is_not_given(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written, expected = VALUES[field]
    assert loaded(option(field), "") == Settings()
    monkeypatch.setenv(PREFIX + field.upper(), written)
    assert getattr(loaded(option(field), ""), field) == expected


@pytest.mark.parametrize(
    ("field", "words"),
    [("port", "1 to 65535"), ("grpc_port", "1 to 65535"), ("max_body_bytes", "at least 1024"), ("host", "")],
)
def test_the_numbers_that_a_setting_takes_can_be_told(field: str, words: str) -> None:
    assert span(field) == words


def test_the_defaults_are_those_of_a_server_for_oneself() -> None:
    settings = loaded()
    assert (settings.host, settings.port, settings.grpc_port) == ("127.0.0.1", 8000, None)
    assert (settings.model, settings.database, settings.advertise_0_3) == (None, "memory", True)
    assert (settings.expose_thinking, settings.on_disconnect) == (False, "continue")


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
        (["--port", "9000", "--grpc-port", "9000"], "port and grpc_port are both 9000"),
        (["--grpc-port", "8000"], "port and grpc_port are both 8000"),
        (["--database", "sqlite"], "--database=sqlite: only 'memory'"),
        (["--public-url", "agent.example.com"], "--public-url=agent.example.com: must be an address"),
        (["--public-url", "ftp://agent.example.com"], "must be an address"),
        (["--public-url", "http://"], "must be an address"),
        (["--public-url", "http://["], "--public-url=http://[: "),
        (["--public-url", "http://h:99999"], "--public-url=http://h:99999: Port out of range"),
        (["--on-disconnect", "stop"], "--on-disconnect=stop: must be continue or cancel"),
        (["--log-level", "loud"], "--log-level=loud: must be critical, error, warning, info or debug"),
        (["--frame-ms", "-1"], "--frame-ms=-1: must be 0 to 1000"),
        (["--frame-ms", "nan"], "--frame-ms=nan: must be 0 to 1000"),
        (["--port", "8" * 5000], ": is too large"),
        (["--port", "8000.5"], "--port=8000.5: must be a whole number"),
        (["--frame-ms", "fast"], "--frame-ms=fast: must be a number"),
        (["--frame-ms", "1001"], "--frame-ms=1001: must be 0 to 1000"),
        (["--max-body-bytes", "10"], "--max-body-bytes=10: must be at least 1024"),
        (["--max-rounds", "0"], "--max-rounds=0: must be at least 1"),
        (
            ["--max-rounds", "x", "--max-parts", "y"],
            "--max-rounds=x: must be a whole number; --max-parts=y: must be a whole number",
        ),
    ],
)
def test_a_wrong_option_is_one_line_that_names_it(arguments: list[str], says: str) -> None:
    with pytest.raises(SettingsError) as caught:
        loaded(*arguments)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


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
    assert loaded().port == 8000
