"""REST requests against the table of routes."""

import pytest
from starlette.datastructures import QueryParams

from a2a_canvas.server.protocols.guard.checks import (
    BodyLimits,
)
from a2a_canvas.server.protocols.guard.rest import RestRoute, allowed_methods, check_rest, find_rest_route

LIMITS = BodyLimits()


@pytest.mark.parametrize(
    ("method", "path", "version"),
    [
        ("POST", "/rest/message:send", "1.0"),
        ("POST", "/rest/v1/message:stream", "0.3"),
        ("POST", "/acme/rest/tasks/a:b:cancel", "1.0"),
        ("HEAD", "/rest/tasks", "1.0"),
        ("DELETE", "/rest/tasks/x/pushNotificationConfigs/y", "1.0"),
        ("GET", "/rest/v1/card", "0.3"),
    ],
)
def test_a_rest_path_finds_its_route(method: str, path: str, version: str) -> None:
    route = find_rest_route(method, path, "/rest")
    assert isinstance(route, RestRoute)
    assert route.version == version


@pytest.mark.parametrize(
    "path", ["/message:send", "/rest", "/rest/", "/rest/x", "/a/b/rest/tasks", "/acme/rest/v1/card"]
)
def test_other_paths_have_no_route(path: str) -> None:
    assert allowed_methods(path, "/rest") == ()


def test_a_path_knows_its_methods() -> None:
    assert allowed_methods("/rest/tasks/x/pushNotificationConfigs/y", "/rest") == ("DELETE", "GET")
    assert allowed_methods("/rest/message:send", "/rest") == ("POST",)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("pageSize=x", "pageSize"),
        ("pageSize=99999999999", "pageSize"),
        ("statusTimestampAfter=x", "statusTimestampAfter"),
    ],
)
def test_query_parameters_are_tried_as_the_sdk_reads_them(query: str, field: str) -> None:
    route = find_rest_route("GET", "/rest/tasks", "/rest")
    assert route is not None
    assert check_rest(route, QueryParams("pageSize=5&unknown=x"), b"", "1.0", LIMITS) is None
    refusal = check_rest(route, QueryParams(query), b"", "1.0", LIMITS)
    assert refusal is not None
    assert [path for path, _ in refusal.fields] == [field]


def test_a_body_that_the_sdk_does_not_read_may_be_missing_but_not_be_nonsense() -> None:
    route = find_rest_route("POST", "/rest/tasks/x:cancel", "/rest")
    assert route is not None
    assert check_rest(route, QueryParams(), b"", "1.0", LIMITS) is None
    assert check_rest(route, QueryParams(), b'{"metadata":{}}', "1.0", LIMITS) is None
    assert check_rest(route, QueryParams(), b"[]", "1.0", LIMITS) is not None
