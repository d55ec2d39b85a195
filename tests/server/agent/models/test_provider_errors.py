"""What a user reads of a failed model call, and what only the operator's log says."""

import re
from typing import get_args

import pytest

from a2a_canvas.server.agent.model import ErrorKind, ModelError
from a2a_canvas.server.agent.models.provider_errors import (
    FOR_USERS,
    Provider,
    broken_error,
    other_error,
    overloaded_error,
)

PROVIDER = Provider("provider.test", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")
SAID = "messages.0: Extra inputs are not permitted"
STATUSES = [400, 401, 402, 403, 404, 413, 418, 422, 429, 500, 502, 529]
ERRORS = [
    *(PROVIDER.status_error(status, SAID, "claude-x") for status in STATUSES),
    PROVIDER.status_error(400, "prompt is too long: 9 tokens > 8 maximum", "claude-x"),
    PROVIDER.timeout_error(),
    PROVIDER.unreachable_error(),
    PROVIDER.unreadable_error("it is larger than 3 bytes"),
    PROVIDER.stream_error(SAID, {}),
    broken_error(),
    overloaded_error({}),
    other_error(ValueError("no")),
]
FOR_OPERATORS = re.compile(r"HTTP|[0-9]{3}|[A-Z]+_[A-Z]+|--[a-z]|provider|claude-x|\(|" + re.escape(SAID))


@pytest.mark.parametrize("error", ERRORS, ids=str)
def test_a_user_reads_what_happened_and_what_to_do_and_the_operator_the_rest(error: ModelError) -> None:
    assert error.reason == FOR_USERS[error.kind]
    assert not FOR_OPERATORS.search(error.reason)
    assert re.search("try again|tell the operator|send less", error.reason, re.IGNORECASE)
    assert str(error) != error.reason
    assert "provider" in str(error) or "--context-window" in str(error)


def test_each_kind_of_error_has_a_sentence_for_users() -> None:
    assert set(FOR_USERS) == set(get_args(ErrorKind))
