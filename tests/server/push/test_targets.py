"""Which urls and addresses notifications may go to."""

from __future__ import annotations

import pytest

from a2a_canvas.server.push.targets import AllowedTargets, TargetRefused, check_addresses, target_of

HOOK = "https://hooks.example.com/x?y=z"
PUBLIC = ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946"]
NOT_PUBLIC = [
    *("127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1"),
    *("169.254.169.254", "100.64.0.1", "192.0.0.1", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1"),
    *("192.88.99.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255"),
    *("::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "ff02::1", "2001:db8::1", "3fff::1", "fec0::1"),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "::ffff:0:127.0.0.1"),  # IPv4-mapped and -compatible
    *("64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::1"),  # NAT64
    *("2002:7f00:1::", "2002:808:808::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2"),  # 6to4, Teredo
]


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    with pytest.raises(TargetRefused, match="has no address on the public internet"):
        check_addresses(target_of(HOOK), [address], AllowedTargets())


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_one_of_them_refuses_all_others(address: str) -> None:
    with pytest.raises(TargetRefused):
        check_addresses(target_of(HOOK), [*PUBLIC, address], AllowedTargets())


def test_public_addresses_are_taken() -> None:
    check_addresses(target_of(HOOK), PUBLIC, AllowedTargets())
    check_addresses(target_of(HOOK), ["::ffff:93.184.216.34"], AllowedTargets())  # it is what it says


def test_no_address_is_refused() -> None:
    with pytest.raises(TargetRefused, match="has no address on the public internet"):
        check_addresses(target_of(HOOK), [], AllowedTargets())


@pytest.mark.parametrize(
    "url",
    [
        *("", "x", "hooks.example.com/x", "ftp://hooks.example.com/", "file:///etc/passwd", "gopher://a/", "https://"),
        *("https:///x", "https://a b/", "https://a/\r\nX: y", "https://good.example\\@evil.example/", "https://ä.de/"),
        *("https://a:99999/", "https://a:0/", "https://[::1", "https://[fe80::1%25eth0]/", "https://a/" + "x" * 2048),
        *("https://user@a/", "https://user:password@a/", "https://:password@a/", "https://a:443@evil.example/"),
        *("https://2130706433/", "https://127.1/", "https://0x7f.1/", "https://0177.0.0.1/", "https://a.0x7f/"),
        *("https://1.1.1.1./", "https://01.1.1.1/", "https://1.1.1/", "https://%31%32%37.0.0.1/", "https://1。1.1.1/"),
    ],
)
def test_what_is_no_plain_url_is_refused(url: str) -> None:
    with pytest.raises(TargetRefused) as refusal:
        target_of(url)
    assert "password" not in str(refusal.value).replace("a password", "")


@pytest.mark.parametrize(
    ("url", "name"),
    [
        (HOOK, "hooks.example.com:443"),
        ("HTTPS://Hooks.Example.com:8443", "hooks.example.com:8443"),
        ("http://[2606:2800::1]/", "2606:2800::1:80"),
        ("https://xn--strae-oqa.example/", "xn--strae-oqa.example:443"),  # not looked up as strasse.example
        ("https://a1.example/#@evil.example", "a1.example:443"),
        ("https://a.example?@evil.example", "a.example:443"),
    ],
)
def test_a_target_has_the_name_of_its_host_and_port(url: str, name: str) -> None:
    assert target_of(url).name == name


def test_plain_http_is_refused() -> None:
    with pytest.raises(TargetRefused, match="must begin with https"):
        check_addresses(target_of("http://hooks.example.com"), PUBLIC, AllowedTargets())


ALLOWED = AllowedTargets.parse(["Hooks.Internal", "10.0.0.0/8", "127.0.0.1", "[::1]", "fd00::/8"])


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://hooks.internal/", "192.168.0.1"),
        ("https://hooks.internal./", "127.0.0.1"),
        ("http://anything/", "10.9.8.7"),
        ("http://anything/", "::ffff:10.9.8.7"),
        ("http://127.0.0.1:9000/", "127.0.0.1"),
        ("http://[::1]:9000/", "::1"),
        ("https://anything/", "fd12::1"),
    ],
)
def test_what_the_operator_allows_may_be_private_and_http(url: str, address: str) -> None:
    check_addresses(target_of(url), [address], ALLOWED)


@pytest.mark.parametrize(
    ("url", "addresses"),
    [
        ("http://hooks.example.com/", PUBLIC),
        ("https://other.internal/", ["192.168.0.1"]),
        ("https://evil-hooks.internal/", ["192.168.0.1"]),
        ("https://anything/", ["127.0.0.2"]),
        ("https://anything/", ["10.0.0.1", "127.0.0.2"]),
        ("http://anything/", ["10.0.0.1", *PUBLIC]),
    ],
)
def test_what_it_does_not_allow_is_refused_as_ever(url: str, addresses: list[str]) -> None:
    with pytest.raises(TargetRefused):
        check_addresses(target_of(url), addresses, ALLOWED)
