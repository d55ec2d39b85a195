"""The agent card: what it says, what a broken one is answered with, and how it is cached."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from a2a.client import A2ACardResolver
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict
from starlette.applications import Starlette

from a2a_canvas.server.protocols.a2a_v1.card.card import Addresses, CurrentCard, LoadedCard, card_route, load_card
from a2a_canvas.server.protocols.a2a_v1.card.card_file import CardError
from a2a_canvas.server.protocols.pipeline.extension_headers import SUPPORTED
from a2a_canvas.server.wire import CANVAS
from a2a_canvas.tools.functions.function_tool import AnyTool

CARD = Path(__file__).parents[5] / "agent_card.json"
HERE = Addresses.from_settings("https://agent.example.com", None)
MODIFIED = datetime(2026, 11, 21, 9, 0, 0, 500_000, tzinfo=UTC)
PATH = "/.well-known/agent-card.json"


def loaded(path: Path | None = CARD, addresses: Addresses = HERE, **options: Any) -> LoadedCard:
    return load_card(path, addresses, **{"advertise_0_3": True} | options)


def load(path: Path | None = CARD, addresses: Addresses = HERE, **options: Any) -> pb.AgentCard:
    return loaded(path, addresses, **options).content


def app_of(card: pb.AgentCard) -> Starlette:
    return Starlette(routes=[card_route(CurrentCard(LoadedCard(card, names_skills=True)), lambda: MODIFIED)])


async def get(app: Starlette, **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        return await client.get(PATH, headers={name.replace("_", "-"): value for name, value in headers.items()})


async def fetch(card: pb.AgentCard, **headers: str) -> httpx.Response:
    return await get(app_of(card), **headers)


def interfaces(card: pb.AgentCard) -> list[tuple[str, str, str]]:
    return [(each.protocol_binding, each.protocol_version, each.url) for each in card.supported_interfaces]


# ------------------------------------------------------------------------ what it says


def test_it_lists_every_binding_of_both_versions_1_0_first() -> None:
    addresses = Addresses.from_settings("https://agent.example.com", 50051, "agent.example.com")
    assert interfaces(load(addresses=addresses)) == [
        ("JSONRPC", "1.0", "https://agent.example.com/"),
        ("HTTP+JSON", "1.0", "https://agent.example.com/rest"),
        ("GRPC", "1.0", "agent.example.com:50051"),
        ("JSONRPC", "0.3", "https://agent.example.com/"),
        ("HTTP+JSON", "0.3", "https://agent.example.com/rest"),
        ("GRPC", "0.3", "agent.example.com:50051"),
    ]


@pytest.mark.parametrize("public_grpc", ["", "grpc.example.com:443"])
@pytest.mark.parametrize("port", [None, 9000])
def test_grpc_is_listed_only_if_it_is_on_and_asked_for(port: int | None, public_grpc: str) -> None:
    addresses = Addresses.from_settings("https://agent.example.com", port, public_grpc)
    listed = {binding for binding, _, _ in interfaces(load(addresses=addresses))}
    assert ("GRPC" in listed) == (port is not None and public_grpc != "")


@pytest.mark.parametrize(
    ("public_grpc", "expected"),
    [("localhost", "localhost:9000"), ("[::1]", "[::1]:9000"), ("a.b:443", "a.b:443"), ("[::1]:443", "[::1]:443")],
)
def test_the_address_of_grpc_is_a_bare_host_and_port(public_grpc: str, expected: str) -> None:
    assert Addresses.from_settings("https://agent.example.com", 9000, public_grpc).grpc == expected


def test_behind_a_proxy_grpc_is_where_it_is_published_if_it_is_on() -> None:
    assert (
        Addresses.from_settings("https://agent.example.com", 9000, "grpc.example.com:443").grpc
        == "grpc.example.com:443"
    )
    assert Addresses.from_settings("https://agent.example.com", None, "grpc.example.com:443").grpc == ""


def test_it_says_what_this_server_can_do() -> None:
    card = load()
    assert card.capabilities.streaming
    assert card.capabilities.push_notifications
    assert not card.capabilities.extended_agent_card
    assert {extension.uri for extension in card.capabilities.extensions} == SUPPORTED
    assert not any(extension.required for extension in card.capabilities.extensions)


def test_each_skill_names_its_modes_for_clients_that_want_them_there() -> None:
    card = load()
    modes = [(skill.input_modes, skill.output_modes) for skill in card.skills]
    assert modes == [(card.default_input_modes, card.default_output_modes)] * 2


def test_a_note_is_added_to_the_description() -> None:
    assert load(note="Only a rehearsal.").description == load().description + " Only a rehearsal."


def quick_actions(card: pb.AgentCard) -> Any:
    [canvas] = [each for each in card.capabilities.extensions if each.uri == CANVAS]
    return MessageToDict(canvas.params).get("quickActions")


def test_it_declares_the_quick_actions_of_its_model_unless_its_file_has_some(tmp_path: Path) -> None:
    own, model = [{"label": "Rhyme", "instruction": "Make it rhyme"}], [{"label": "List", "instruction": "List it"}]
    fields = {"capabilities": {"extensions": [{"uri": CANVAS, "params": {"quickActions": own}}]}}
    assert quick_actions(load()) is None
    assert quick_actions(load(quick_actions=model)) == model
    assert quick_actions(of(tmp_path, fields, quick_actions=model)) == own


def test_it_declares_the_formats_that_the_server_has_and_no_others(tmp_path: Path) -> None:
    def formats(card: pb.AgentCard) -> Any:
        [canvas] = [each for each in card.capabilities.extensions if each.uri == CANVAS]
        return MessageToDict(canvas.params).get("formats")

    fields = {"capabilities": {"extensions": [{"uri": CANVAS, "params": {"formats": ["pdf"]}}]}}
    assert formats(load()) is None
    assert formats(load(formats=["docx"])) == formats(of(tmp_path, fields, formats=["docx"])) == ["docx"]


async def test_with_0_3_it_has_the_fields_of_0_3_and_without_none_of_them() -> None:
    with_it = (await fetch(load())).json()
    without = (await fetch(load(advertise_0_3=False))).json()
    assert (with_it["url"], with_it["preferredTransport"], with_it["protocolVersion"][:3]) == (
        "https://agent.example.com/",
        "JSONRPC",
        "0.3",
    )
    old = {"url", "preferredTransport", "protocolVersion", "additionalInterfaces", "supportsAuthenticatedExtendedCard"}
    assert not old & without.keys()
    assert {each["protocolVersion"] for each in without["supportedInterfaces"]} == {"1.0"}
    assert without.keys() <= {field.json_name for field in pb.AgentCard.DESCRIPTOR.fields}


async def test_the_sdks_client_reads_back_the_card_that_was_loaded() -> None:
    card = load(advertise_0_3=False)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app_of(card)), base_url="http://test") as client:
        assert await A2ACardResolver(client, "http://test").get_agent_card() == card


# --------------------------------------------------------------------- of a few lines


def loaded_of(tmp_path: Path, fields: dict[str, Any], **options: Any) -> LoadedCard:
    path = tmp_path / "card.json"
    path.write_text(json.dumps(fields))
    return loaded(path, **options)


def of(tmp_path: Path, fields: dict[str, Any], **options: Any) -> pb.AgentCard:
    return loaded_of(tmp_path, fields, **options).content


class Told(NamedTuple):
    name: str
    description: str


WEATHER = Told("get_weather", "The forecast\n    for a city.\n\nArgs:\n    city: its name")
FEW = {"name": "Reef", "description": "Knows tides.", "skills": [{"name": "Tell tides", "description": "By port."}]}
IN_0_3 = {
    "name": "Reef",
    "description": "Knows tides.",
    "version": "2.0",
    "protocolVersion": "0.3.0",
    "url": "https://old.example.com/a2a",
    "preferredTransport": "JSONRPC",
    "additionalInterfaces": [{"url": "https://old.example.com/rest", "transport": "HTTP+JSON"}],
    "capabilities": {"streaming": False, "stateTransitionHistory": True},
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
    "skills": [{"id": "tides", "name": "Tell tides", "description": "By port.", "tags": ["sea"]}],
    "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
    "security": [{"key": []}],
}


def test_a_card_of_a_few_lines_is_filled_in(tmp_path: Path) -> None:
    card, packaged = of(tmp_path, FEW), load()
    assert (card.name, card.description, card.version) == ("Reef", "Knows tides.", "0.1.0")
    assert card.capabilities == packaged.capabilities
    assert card.default_input_modes == packaged.default_input_modes
    assert interfaces(card) == interfaces(packaged)
    [skill] = card.skills
    assert (skill.id, skill.name, skill.tags) == ("tell-tides", "Tell tides", ["tell-tides"])
    assert (skill.input_modes, skill.output_modes) == (card.default_input_modes, card.default_output_modes)


def test_what_a_card_says_stays(tmp_path: Path) -> None:
    theirs = {"uri": "https://example.com/tides", "required": False}
    said = {**FEW, "version": "3.1", "defaultInputModes": ["text/plain"], "iconUrl": "https://example.com/reef.png"}
    card = of(tmp_path, {**said, "capabilities": {"extensions": [theirs]}}, name="folder")
    assert (card.name, card.version, card.icon_url) == ("Reef", "3.1", "https://example.com/reef.png")
    assert card.default_input_modes == card.skills[0].input_modes == ["text/plain"]
    assert {each.uri for each in card.capabilities.extensions} == {*SUPPORTED, "https://example.com/tides"}


def test_without_a_card_the_agent_has_the_name_of_its_folder() -> None:
    assert load(None, name="reef").name == "reef"
    assert load(None).name == load().name


def test_skills_that_are_left_out_are_made_from_the_tools(tmp_path: Path) -> None:
    card = loaded_of(tmp_path, {"name": "Reef"}).with_tools([WEATHER])
    assert [skill.id for skill in card.skills] == ["get_weather", "write-artifacts", "edit-selections"]
    assert (card.skills[0].name, card.skills[0].description) == ("Get weather", "The forecast for a city.")
    modes = [(skill.input_modes, skill.output_modes, list(skill.tags)) for skill in card.skills[:1]]
    assert modes == [(card.default_input_modes, card.default_output_modes, ["tool"])]


@pytest.mark.parametrize(
    ("description", "told"),
    [("", "Get weather"), ("  \n\n", "Get weather"), ("x" * 10_000, "x" * 500 + "…")],
    ids=["none", "blank", "pages"],
)
def test_a_tool_that_says_nothing_or_pages_makes_a_short_skill(description: str, told: str) -> None:
    skill = loaded(None).with_tools([Told("get_weather", description)]).skills[0]
    assert skill.description.lower() == told.lower()


@pytest.mark.parametrize("skills", [FEW["skills"], json.loads(CARD.read_text())["skills"]], ids=["its own", "packaged"])
def test_a_card_that_names_skills_stays_as_it_is(tmp_path: Path, skills: Any) -> None:
    card = loaded_of(tmp_path, {**FEW, "skills": skills})
    assert card.with_tools([WEATHER]) == card.content


def test_a_card_of_0_3_is_converted(tmp_path: Path) -> None:
    card = of(tmp_path, IN_0_3)
    assert (card.name, card.version, card.default_input_modes) == ("Reef", "2.0", ["text/plain"])
    assert interfaces(card) == interfaces(load())
    assert (card.capabilities.streaming, card.capabilities.push_notifications) == (False, True)
    assert [skill.id for skill in card.skills] == ["tides"]
    assert card.security_schemes["key"].api_key_security_scheme.location == "header"
    assert [list(each.schemes) for each in card.security_requirements] == [["key"]]


def test_a_card_of_0_3_may_have_a_few_lines_too(tmp_path: Path) -> None:
    card = of(tmp_path, {**FEW, "protocolVersion": "0.3.0"})
    assert (card.name, card.version, [skill.id for skill in card.skills]) == ("Reef", "0.1.0", ["tell-tides"])


async def test_the_card_that_a_server_serves_can_be_read_back(tmp_path: Path) -> None:
    served = (await fetch(load())).json()
    assert {"url", "supportedInterfaces"} <= served.keys()
    assert of(tmp_path, served) == load()


# ----------------------------------------------------------------------------- broken


def with_fields(**fields: Any) -> str:
    return json.dumps(json.loads(CARD.read_text()) | fields)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "Expecting value"),
        ("{", "line 1"),
        ("[]", "object"),
        ("3", "object"),
        ("null", "object"),
        ("[" * 100_000, "nested"),
        ("\udcff", "utf-8"),
        (with_fields(name=5), '"name" must be a text in quotes'),
        (with_fields(description=["x"]), '"description" must be a text in quotes'),
        (with_fields(skills=["x"]), '"skills" must be a list of objects, such as {"name":'),
        (with_fields(skills={"name": "x"}), '"skills" must be a list of objects, such as {"name":'),
        (with_fields(nmae="x"), 'AgentCard has no field "nmae". Did you mean "name"?'),
        (with_fields(skills=[{"id": "x", "name": "X", "colour": "red"}]), 'AgentSkill has no field "colour".'),
        (with_fields(name=3), "name"),
        (with_fields(skills={}), "skills"),
        (with_fields(skills=[{"id": "x"}]), "skills"),
        (json.dumps({"url": "http://a", "nmae": "x"}), 'A2A 0.3 has no field "nmae" in a card'),
        (json.dumps({"url": "http://a", "skills": [{"name": "x"}]}), "A2A 0.3: skills.0.description"),
        (json.dumps({"protocolVersion": "0.3.0", "supportsAuthenticatedExtendedCard": True}), "does not offer it"),
    ],
)
def test_a_card_that_cannot_be_served_is_refused_in_one_line_with_file_and_fault(
    tmp_path: Path, content: str, says: str
) -> None:
    path = tmp_path / "card.json"
    path.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(CardError) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_card_need_not_say_that_this_server_streams(tmp_path: Path) -> None:
    path = tmp_path / "card.json"
    path.write_text(with_fields(capabilities={}))
    assert load(path).capabilities.streaming


@pytest.mark.parametrize("fields", [{}, {"preferredTransport": "JSONRPC"}], ids=["1.0", "0.3"])
def test_a_card_may_switch_streams_and_push_notifications_off(tmp_path: Path, fields: dict[str, str]) -> None:
    path = tmp_path / "card.json"
    path.write_text(json.dumps({"name": "Reef", "capabilities": {"streaming": False}, **fields}))
    capabilities = load(path).capabilities
    assert (capabilities.streaming, capabilities.push_notifications) == (False, True)
    path.write_text(json.dumps({"name": "Reef", "capabilities": {"pushNotifications": False}, **fields}))
    capabilities = load(path).capabilities
    assert (capabilities.streaming, capabilities.push_notifications) == (True, False)


@pytest.mark.parametrize("capability", ["extendedAgentCard"])
def test_a_card_that_promises_what_this_server_does_not_do_is_refused(tmp_path: Path, capability: str) -> None:
    path = tmp_path / "card.json"
    path.write_text(with_fields(capabilities={"streaming": True, capability: True}))
    with pytest.raises(CardError, match=capability):
        load(path)


def test_a_missing_card_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CardError, match="cannot be read"):
        load(tmp_path / "none.json")


# ---------------------------------------------------------------------------- caching


async def test_it_is_served_with_etag_date_and_max_age() -> None:
    response = await fetch(load())
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "public, max-age=300"
    assert response.headers["last-modified"] == "Sat, 21 Nov 2026 09:00:00 GMT"
    assert response.headers["etag"].startswith('"')


async def test_the_etag_is_that_of_the_content() -> None:
    first, same, other = [await fetch(load(note=note)) for note in ("a", "a", "b")]
    assert first.headers["etag"] == same.headers["etag"] != other.headers["etag"]


@pytest.fixture
async def etag() -> str:
    return (await fetch(load())).headers["etag"]


@pytest.mark.parametrize("form", ["{}", "W/{}", '"x", {}', "*", ' "x" ,W/{} '])
async def test_who_has_it_is_answered_304_without_a_body(etag: str, form: str) -> None:
    response = await fetch(load(), If_None_Match=form.format(etag))
    assert (response.status_code, response.content) == (304, b"")
    assert response.headers["etag"] == etag
    assert response.headers["cache-control"] == "public, max-age=300"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"If_None_Match": '"other"'}, 200),
        ({"If_Modified_Since": "Sat, 21 Nov 2026 09:00:00 GMT"}, 304),
        ({"If_Modified_Since": "Sun, 22 Nov 2026 09:00:00 GMT"}, 304),
        ({"If_Modified_Since": "Sat, 21 Nov 2026 08:59:59 GMT"}, 200),
        ({"If_Modified_Since": "yesterday"}, 200),
        ({"If_Modified_Since": "Sat, 21 Nov 2026 09:00:00 -0000"}, 200),
        ({"If_None_Match": '"other"', "If_Modified_Since": "Sun, 22 Nov 2026 09:00:00 GMT"}, 200),
    ],
)
async def test_an_etag_beats_a_date_and_a_bad_date_counts_for_nothing(headers: dict[str, str], status: int) -> None:
    assert (await fetch(load(), **headers)).status_code == status


# --------------------------------------------------------- tools that come and go


class Changing:
    """A server whose tools change, at a time that goes on when a test says so."""

    def __init__(self, card: LoadedCard) -> None:
        self.tools: Sequence[AnyTool] = []
        self.time = MODIFIED
        self.app = Starlette(routes=[card_route(CurrentCard(card, lambda: list(self.tools)), lambda: self.time)])

    async def skills(self) -> list[str]:
        return [skill["id"] for skill in (await get(self.app)).json()["skills"]]


async def test_the_skills_are_those_of_the_tools_that_there_are_now() -> None:
    server = Changing(loaded(None))
    assert await server.skills() == ["write-artifacts", "edit-selections"]
    server.tools = [WEATHER]
    assert await server.skills() == ["get_weather", "write-artifacts", "edit-selections"]
    server.tools = [Told("tides", "Says when.")]
    assert await server.skills() == ["tides", "write-artifacts", "edit-selections"]


@pytest.mark.parametrize(
    ("tool", "name", "tags"),
    [
        ("get_weather", "Get weather", ["tool"]),
        ("git__git_status", "Git status", ["tool", "git"]),
        ("files__read_file", "Read file", ["tool", "files"]),
    ],
)
async def test_a_skill_is_called_like_its_tool_and_tagged_with_the_tools_server(
    tool: str, name: str, tags: list[str]
) -> None:
    server = Changing(loaded(None))
    server.tools = [Told(tool, "Does it.")]
    skill = (await get(server.app)).json()["skills"][0]
    assert (skill["id"], skill["name"], skill["tags"]) == (tool, name, tags)


@pytest.mark.parametrize("later", [0, 0.2, 60])
async def test_who_has_the_card_of_before_gets_the_new_one_also_within_the_same_second(later: float) -> None:
    server = Changing(loaded(None))
    before = (await get(server.app)).headers
    server.tools, server.time = [WEATHER], server.time + timedelta(seconds=later)
    for condition in {"If_None_Match": before["etag"]}, {"If_Modified_Since": before["last-modified"]}:
        assert (await get(server.app, **condition)).status_code == 200
    now = (await get(server.app)).headers
    for condition in {"If_None_Match": now["etag"]}, {"If_Modified_Since": now["last-modified"]}:
        assert (await get(server.app, **condition)).status_code == 304


async def test_tools_that_go_and_come_back_give_the_etag_of_before_and_a_later_date() -> None:
    server = Changing(loaded(None))
    first = (await get(server.app)).headers
    server.tools = [WEATHER]
    await get(server.app)
    server.tools = []
    again = await get(server.app, If_Modified_Since=first["last-modified"])
    assert (again.status_code, again.headers["etag"]) == (200, first["etag"])
    assert (await get(server.app, If_None_Match=first["etag"])).status_code == 304


async def test_a_list_that_is_read_again_and_says_the_same_changes_nothing() -> None:
    server = Changing(loaded(None))
    server.tools = [WEATHER]
    first = (await get(server.app)).headers
    server.tools, server.time = [Told(WEATHER.name, WEATHER.description + " ")], server.time + timedelta(hours=1)
    assert (await get(server.app)).headers == first
