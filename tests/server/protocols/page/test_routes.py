"""`GET /` and the files of the page, as browsers and programs get them from the whole application."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from a2a_canvas.server.app import create_app
from a2a_canvas.server.protocols.page.routes import FOLDERS, program_sources
from a2a_canvas.server.settings.settings import Settings

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
PROGRAMS = ["", "*/*", "application/json", "application/json, text/plain, */*", "text/event-stream", "image/png"]
READ = ("GET", "HEAD")


def client(**settings: Any) -> httpx.AsyncClient:
    app = create_app(Settings(database="memory", model="rehearsal", **settings))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost:8000")


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with client() as connected:
        yield connected


async def page_of(http: httpx.AsyncClient, **headers: str) -> httpx.Response:
    return await http.get("/", headers={"Accept": BROWSER, **headers})


async def digest_of(http: httpx.AsyncClient) -> str:
    [digest] = set(re.findall(r"page/([0-9a-f]{16})/", (await page_of(http)).text))
    return digest


async def file_of(http: httpx.AsyncClient, name: str, **headers: str) -> httpx.Response:
    return await http.get(f"/page/{await digest_of(http)}/{name}", headers=headers)


def without_nonce(answer: httpx.Response) -> dict[str, str]:
    """The headers, without what each answer has its own of; compressed, a nonce is not always as long as another."""
    headers = {name: re.sub("nonce-[^']+", "nonce", value) for name, value in answer.headers.items()}
    return headers | {"content-length": str(len(headers["content-length"]))}


def addresses_in(page: str) -> list[str]:
    return re.findall(r'(?:href|src)="([^"#]+)"', page)


# ------------------------------------------------------------------------------ GET /


async def test_a_browser_gets_the_page(http: httpx.AsyncClient) -> None:
    answer = await page_of(http)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert answer.text.startswith("<!doctype html>")
    assert "{assets}" not in answer.text


@pytest.mark.parametrize("accept", PROGRAMS)
async def test_a_program_gets_json_with_the_address_of_the_card(http: httpx.AsyncClient, accept: str) -> None:
    answer = await http.get("/", headers={"Accept": accept})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json() == {
        "name": "a2a-canvas",
        "version": "0.1.0",
        "agentCard": "http://127.0.0.1:8000/.well-known/agent-card.json",
        "page": "http://127.0.0.1:8000/",
        "servers": [],
        "assets": f"page/{await digest_of(http)}",
    }


async def test_the_addresses_are_below_the_public_one() -> None:
    async with client(public_url="https://agent.example.com/canvas") as http:
        answer = (await http.get("/")).json()
    assert answer["agentCard"] == "https://agent.example.com/canvas/.well-known/agent-card.json"
    assert answer["page"] == "https://agent.example.com/canvas/"


@pytest.mark.parametrize("accept", [BROWSER, "*/*"])
async def test_without_a_page_everyone_gets_the_json_and_there_are_no_files(accept: str) -> None:
    async with client(page=False) as http:
        answer = await http.get("/", headers={"Accept": accept})
        assert set(answer.json()) == {"name", "version", "agentCard"}
        assert (await http.get("/page/0/main.js")).status_code == 404


@pytest.mark.parametrize("accept", [BROWSER, "*/*"])
async def test_what_is_known_is_not_sent_again(http: httpx.AsyncClient, accept: str) -> None:
    first = await http.get("/", headers={"Accept": accept})
    assert first.headers["cache-control"].endswith("no-cache")
    assert first.headers["vary"].startswith("Accept, Accept-Encoding")
    again = await http.get("/", headers={"Accept": accept, "If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])


async def test_the_two_forms_have_tags_of_their_own(http: httpx.AsyncClient) -> None:
    answers = [await http.get("/", headers={"Accept": accept}) for accept in (BROWSER, "*/*")]
    assert len({answer.headers["etag"] for answer in answers}) == 2


async def test_head_has_the_headers_of_get(http: httpx.AsyncClient) -> None:
    for path in ("/", f"/page/{await digest_of(http)}/main.js"):
        got, head = [await http.request(method, path, headers={"Accept": BROWSER}) for method in READ]
        assert head.status_code == 200
        assert without_nonce(head) == without_nonce(got)


@pytest.mark.parametrize("page", [True, False])
@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
async def test_other_methods_are_405_as_json_rpc_says_it(method: str, page: bool) -> None:
    async with client(page=page) as http:
        answer = await http.request(method, "/")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, POST")
    assert answer.json()["jsonrpc"] == "2.0"


async def test_the_host_is_checked_first(http: httpx.AsyncClient) -> None:
    assert (await page_of(http, Host="evil.example.com")).status_code == 421
    async with client(public_url="https://agent.example.com/canvas") as public:
        assert (await page_of(public, Host="agent.example.com")).status_code == 200


# ------------------------------------------------------------------------- the files


async def test_the_addresses_in_the_page_are_relative_and_there(http: httpx.AsyncClient) -> None:
    addresses = addresses_in((await page_of(http)).text)
    assert any(address.endswith("/main.js") for address in addresses)
    assert [each for each in addresses if each.startswith("/") or ":" in each] == []
    for address in addresses:
        assert (await http.get(f"/{address}")).status_code == 200


async def test_a_browser_paints_from_the_page_alone_and_that_is_less_than_20_kb(http: httpx.AsyncClient) -> None:
    page = await page_of(http, **{"Accept-Encoding": "gzip"})
    assert int(page.headers["content-length"]) < 20_000
    assert 'rel="stylesheet"' not in page.text
    assert re.findall(r"<script[^>]*>", page.text) == [
        f'<script type="module" src="page/{await digest_of(http)}/main.js">'
    ]


async def test_a_file_is_kept_for_good(http: httpx.AsyncClient) -> None:
    answer = await file_of(http, "main.js")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/javascript; charset=utf-8")
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.content == (FOLDERS[""] / "main.js").read_bytes()
    again = await file_of(http, "main.js", **{"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip, deflate, br, zstd", "zstd"),
        ("gzip, deflate", "gzip"),
        ("gzip;q=0, identity", None),
        ("br", None),
        ("", None),
    ],
)
async def test_a_file_is_compressed_as_the_browser_takes_it(
    http: httpx.AsyncClient, accepted: str, coding: str | None
) -> None:
    answer = await file_of(http, "main.js", **{"Accept-Encoding": accepted})
    assert answer.headers.get("content-encoding") == coding
    assert answer.headers["vary"] == "Accept-Encoding"
    assert answer.content == (FOLDERS[""] / "main.js").read_bytes()


async def test_each_coding_has_a_tag_of_its_own(http: httpx.AsyncClient) -> None:
    codings = ("zstd", "gzip", "identity")
    tags = {(await file_of(http, "main.js", **{"Accept-Encoding": coding})).headers["etag"] for coding in codings}
    assert len(tags) == len(codings)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nope.js", "The page has no file 'nope.js'."),
        ("%2e%2e/%2e%2e/agent_card.json", "The page has no file '../../agent_card.json'."),
        ("//etc/passwd", "The page has no file '//etc/passwd'."),
        ("index.html", "The page has no file 'index.html'."),
        ("", "The page has no file ''."),
    ],
)
async def test_no_other_file_is_reached(http: httpx.AsyncClient, name: str, says: str) -> None:
    app = create_app(Settings(database="memory", model="rehearsal"))
    path = f"/page/{await digest_of(http)}/{name}".encode()
    answer = await httpx.ASGITransport(app).handle_async_request(
        httpx.Request("GET", httpx.URL("http://localhost:8000").copy_with(raw_path=path))
    )
    assert answer.status_code == 404
    assert says.encode() in await answer.aread()


async def test_the_files_of_another_version_are_gone_and_the_answer_says_what_to_do(http: httpx.AsyncClient) -> None:
    answer = await http.get("/page/0123456789abcdef/main.js")
    assert (answer.status_code, answer.headers["cache-control"]) == (404, "no-store")
    error = answer.json()["error"]
    assert (error["status"], error["message"]) == (
        "NOT_FOUND",
        "The page has changed since it was loaded. Reload it.",
    )


# --------------------------------------------------------------------------- headers


@pytest.mark.parametrize("path", ["/", "/page/{digest}/main.js", "/page/{digest}/nope.js", "/page/0/main.js"])
async def test_every_answer_keeps_the_page_to_itself(http: httpx.AsyncClient, path: str) -> None:
    answer = await http.get(path.format(digest=await digest_of(http)), headers={"Accept": BROWSER})
    policy = dict(each.split(" ", 1) for each in answer.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == "'self'"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert "camera=()" in answer.headers["permissions-policy"]


async def test_every_answer_has_a_nonce_of_its_own_for_its_styles(http: httpx.AsyncClient) -> None:
    nonces = set()
    for coding in ("zstd", "gzip", "identity"):
        answer = await page_of(http, **{"Accept-Encoding": coding})
        [nonce] = re.findall(r'<style nonce="([^"]+)">', answer.text)
        assert f"style-src 'self' 'nonce-{nonce}';" in answer.headers["content-security-policy"]
        nonces.add(nonce)
    assert len(nonces) == 3


async def test_a_page_that_is_known_keeps_the_policy_that_it_came_with(http: httpx.AsyncClient) -> None:
    first = await page_of(http)
    assert first.headers["cache-control"] == "private, no-cache"
    again = await page_of(http, **{"If-None-Match": first.headers["etag"]})
    assert again.status_code == 304
    assert "content-security-policy" not in again.headers


async def test_another_policy_is_another_page(http: httpx.AsyncClient) -> None:
    async with client(page="https://a.example.com") as other:
        assert (await page_of(http)).headers["etag"] != (await page_of(other)).headers["etag"]


async def test_the_policy_has_no_inline_style_elements_one_frame_and_html_in_named_places(
    http: httpx.AsyncClient,
) -> None:
    policy = dict(each.split(" ", 1) for each in (await page_of(http)).headers["content-security-policy"].split("; "))
    assert "unsafe-inline" not in policy["style-src"] + policy["script-src"]
    assert policy["frame-src"] == "localhost:8000/page/program 127.0.0.1:8000/page/program"
    assert policy["worker-src"] == "'self'"
    assert policy["require-trusted-types-for"] == "'script'"
    assert policy["trusted-types"] == "dompurify a2a-canvas"


@pytest.mark.parametrize(
    ("host", "path", "public", "sources"),
    [
        ("localhost:8000", "/", "http://localhost:8000/", "localhost:8000/page/program"),
        ("agent.example.com", "/a%20b/", "https://agent.example.com/a%20b/", "agent.example.com/a%20b/page/program"),
        (
            "localhost:8000",
            "/",
            "https://agent.example.com/canvas/",
            "localhost:8000/page/program agent.example.com/canvas/page/program",
        ),
        ("[::1]:8000", "/", "http://[::1]:8000/", "'none'"),
        ("x; script-src *", "/", "http://localhost:8000/", "localhost:8000/page/program"),
    ],
)
def test_the_page_frames_the_route_of_programs_alone(host: str, path: str, public: str, sources: str) -> None:
    assert program_sources(host, path, public) == sources


async def test_a_program_has_a_policy_of_its_own_and_an_origin_of_its_own(http: httpx.AsyncClient) -> None:
    answer = await http.get("/page/program")
    assert answer.text.startswith("<!doctype html>")
    policy = dict(each.split(" ", 1) for each in answer.headers["content-security-policy"].split("; "))
    assert policy.pop("script-src") == policy.pop("style-src") == "'unsafe-inline'"
    assert policy.pop("img-src") == "data: blob:"
    assert policy.pop("sandbox") == "allow-scripts"
    assert policy.pop("frame-ancestors") == "'self'"
    assert policy.pop("webrtc") == "'block'"
    assert policy == dict.fromkeys(("default-src", "connect-src", "form-action", "base-uri"), "'none'")
    assert answer.headers["connection-allowlist"] == "()"
    assert "camera=()" in answer.headers["permissions-policy"]


@pytest.mark.parametrize("path", ["/page/program", "/embed"])
async def test_a_page_that_is_off_has_nothing_for_frames(path: str) -> None:
    async with client(page="off") as http:
        assert (await http.get(path)).status_code == 404


async def test_nobody_frames_the_documents_unless_the_operator_names_them(http: httpx.AsyncClient) -> None:
    async with client(embed_origins="https://wiki.example.com, http://localhost:3000") as embedding:
        answers = [await each.get("/embed") for each in (http, embedding)]
        whole = await page_of(embedding)
    assert [answer.headers["content-type"] for answer in answers] == ["text/html; charset=utf-8"] * 2
    policies = [
        dict(each.split(" ", 1) for each in answer.headers["content-security-policy"].split("; "))
        for answer in (*answers, whole)
    ]
    ancestors = [policy.pop("frame-ancestors") for policy in policies]
    assert ancestors == ["'none'", "https://wiki.example.com http://localhost:3000", "'none'"]
    for policy in policies[:2]:
        assert policy["frame-src"] == policy["default-src"] == policy["form-action"] == "'none'"
        assert policy["script-src"] == policy["connect-src"] == "'self'"
        assert policy["style-src"].startswith("'self' 'nonce-")


async def test_the_documents_in_a_frame_connect_to_no_other_server() -> None:
    async with client(page="https://a.example.com", embed_origins="https://wiki.example.com") as http:
        answer = await http.get("/embed")
    assert "; connect-src 'self'; " in answer.headers["content-security-policy"]


async def test_the_addresses_of_the_documents_in_a_frame_are_relative_and_there(http: httpx.AsyncClient) -> None:
    addresses = addresses_in((await http.get("/embed")).text)
    assert any(address.endswith("/embed/embed.js") for address in addresses)
    for address in addresses:
        assert (await http.get(f"/{address}")).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/embed", "/page/program", "/.well-known/agent-card.json", "/nowhere", "/page/0/nope.js", "/healthz"),
        *("/artifacts", "/artifacts/nope", "/auth/sign-in"),
    ],
)
async def test_no_browser_guesses_the_type_of_an_answer(http: httpx.AsyncClient, path: str) -> None:
    assert (await http.get(path)).headers["x-content-type-options"] == "nosniff"


async def test_the_page_may_talk_to_the_servers_that_the_operator_names() -> None:
    async with client(page="https://a.example.com, http://127.0.0.1:9000") as http:
        answer = await page_of(http)
        assert (await http.get("/")).json()["servers"] == ["https://a.example.com", "http://127.0.0.1:9000"]
    policy = answer.headers["content-security-policy"]
    assert "; connect-src 'self' https://a.example.com http://127.0.0.1:9000; " in policy
