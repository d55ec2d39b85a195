import pytest

from a2a_canvas.server.outbound.token_origin import TokenOrigin, token_for

TOKENS = {"a.example": "A", "a.example:9000": "A9", "::1": "six", "[::1]:9000": "six9"}
AGENT = "https://a.example/agent"


@pytest.mark.parametrize(
    ("url", "configured", "token"),
    [
        ("https://a.example/rest/tasks", AGENT, "A"),
        ("https://A.EXAMPLE:443/", AGENT, "A"),
        ("http://a.example/", AGENT, ""),
        ("http://a.example:443/", AGENT, ""),
        ("https://a.example:8443/", AGENT, ""),
        ("https://a.example:9000/", AGENT, "A9"),
        ("http://a.example:9000/", AGENT, ""),
        ("http://a.example:9000/", "http://a.example/", "A9"),
        ("https://a.example/", "http://a.example/", ""),
        ("https://b.example/", AGENT, ""),
        ("http://[::1]:8000/", "http://[::1]:8000", "six"),
        ("http://[::1]:8001/", "http://[::1]:8000", ""),
        ("http://[::1]:9000/", "http://[::1]:8000", "six9"),
        ("file:///etc/passwd", AGENT, ""),
        ("https://a.example:x/", AGENT, ""),
    ],
)
def test_a_token_goes_to_the_origin_that_it_was_configured_for(url: str, configured: str, token: str) -> None:
    assert token_for(url, configured, TOKENS) == token


@pytest.mark.parametrize(
    ("url", "authority"),
    [
        ("https://a.example/x", "a.example"),
        ("http://a.example:443", "a.example:443"),
        ("https://[::1]/", "[::1]"),
        ("http://[::1]:8000", "[::1]:8000"),
    ],
)
def test_an_authority_has_no_port_that_goes_without_saying(url: str, authority: str) -> None:
    assert TokenOrigin.parse(url).authority == authority


def test_the_port_of_an_origin_is_that_of_its_scheme_unless_it_says() -> None:
    assert TokenOrigin.parse("https://a.example") == ("https", "a.example", 443)
    assert TokenOrigin.parse("nonsense") == ("", "", 0)
