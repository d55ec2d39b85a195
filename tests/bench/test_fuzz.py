"""`make fuzz` in miniature: it finds nothing, it covers every route, and a request can be made again."""

import pytest

from bench import fuzz
from bench.servers import MEMORY


@pytest.mark.parametrize("database", ["sqlite", MEMORY])
async def test_some_hundred_hostile_requests_do_no_harm(database: str) -> None:
    result = await fuzz.fuzz(300, database, seed=9)
    assert result.faults == []
    assert result.answers.total() == 300
    kinds = {answer.split()[0] for answer in result.answers}
    assert kinds == {"JSON-RPC", "REST", "AG-UI", "/artifacts", "gRPC", "page"}


def test_a_request_is_made_of_the_seed_and_its_number() -> None:
    assert [fuzz.request(1, number) for number in range(50)] == [fuzz.request(1, number) for number in range(50)]
    assert fuzz.request(1, 3) != fuzz.request(2, 3)


@pytest.mark.parametrize(
    ("answer", "text", "fault"),
    [
        ("200", "", False),
        ("400", "id: must not contain the character NUL.", False),
        ("503 retryable", "", False),
        ("503", "", True),
        ("500", "", True),
        ("200", '{"error": {"code": -32603, "message": "Internal error"}}', True),
        ("400", "IndexError: list index out of range", True),
        ("INTERNAL", "", True),
        ("UNAVAILABLE", "", False),
        ("TimeoutError, or no answer within 20 s", "", True),
    ],
)
def test_what_counts_as_a_fault(answer: str, text: str, fault: bool) -> None:
    assert fuzz._is_fault(answer, text) is fault
