"""Conditional answers: tags and dates; what `Accept` prefers.

The whole exchange is in the tests of the card and of the artifacts.
"""

from datetime import UTC, datetime

import pytest
from starlette.requests import Request

from a2a_canvas.server.protocols.edge.http_requests import etag_of, is_not_modified, negotiate

MARKDOWN = "text/markdown; charset=utf-8"
PLAIN = "text/plain; charset=utf-8"
OFFERS = ("application/json", MARKDOWN, PLAIN)
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8"
MODIFIED = datetime(2026, 11, 21, 9, tzinfo=UTC)


def request(**headers: str) -> Request:
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": "GET", "headers": raw})


def test_a_tag_is_strong_and_that_of_the_bytes_and_their_type() -> None:
    tags = {etag_of(b"a"), etag_of(b"b"), etag_of(b"a", "text/plain"), etag_of(b"a", "text/html")}
    assert len(tags) == 4
    assert etag_of(b"a", "text/plain") in tags
    assert all(tag[0] == tag[-1] == '"' for tag in tags)


@pytest.mark.parametrize(
    ("headers", "known"),
    [
        ({}, False),
        ({"if_none_match": '"a"'}, True),
        ({"if_none_match": '"b", W/"a"'}, True),
        ({"if_none_match": "*"}, True),
        ({"if_none_match": '"b"'}, False),
        ({"if_none_match": ""}, False),
        ({"if_modified_since": "Sat, 21 Nov 2026 09:00:00 GMT"}, True),
        ({"if_modified_since": "Sat, 21 Nov 2026 08:00:00 GMT"}, False),
        ({"if_none_match": '"b"', "if_modified_since": "Sat, 21 Nov 2026 09:00:00 GMT"}, False),
    ],
)
def test_a_tag_beats_a_date(headers: dict[str, str], known: bool) -> None:
    assert is_not_modified(request(**headers), '"a"', MODIFIED) is known


def test_what_has_no_date_is_not_known_by_one() -> None:
    assert not is_not_modified(request(if_modified_since="Sat, 21 Nov 2099 09:00:00 GMT"), '"a"')


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("application/json", "application/json"),
        ("application/*", "application/json"),
        (BROWSER, "application/json"),
        ("text/markdown", MARKDOWN),
        ("TEXT/Markdown;variant=GFM", MARKDOWN),
        ("text/plain", PLAIN),
        ("text/*", MARKDOWN),
        ("text/markdown, application/json", "application/json"),
        ("text/markdown, application/json;q=0.9", MARKDOWN),
        ("text/markdown, */*;q=0.1", MARKDOWN),
        ("text/markdown;q=0.5, */*", "application/json"),
        ("text/*;q=0.2, text/plain", PLAIN),
        ("application/json;q=0, */*", MARKDOWN),
        ("text/markdown; q = 0.9, application/json;Q=0.8", MARKDOWN),
        ("text/markdown;q=nonsense", MARKDOWN),
        ("image/png", None),
        ("text/markdown;q=0", None),
        ("*/*;q=0", None),
        (",;,", None),
    ],
)
def test_json_is_the_answer_unless_the_header_prefers_something_else(accept: str, chosen: str | None) -> None:
    assert negotiate(accept, OFFERS) == chosen
