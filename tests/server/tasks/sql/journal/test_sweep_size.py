"""How many rows the transactions of a sweep take."""

import pytest

from a2a_canvas.server.tasks.sql.journal.sweep_size import LARGEST, SHORT_SECONDS, SMALLEST, BatchSize, next_size

ENOUGH = 1.5 * SHORT_SECONDS
LONG = 2.5 * SHORT_SECONDS


@pytest.mark.parametrize(
    ("size", "seconds", "expected"),
    [
        (SMALLEST, 0.0, 2 * SMALLEST),
        (LARGEST, 0.0, LARGEST),
        (LARGEST - 1, 0.0, LARGEST),
        (80, SHORT_SECONDS, 80),
        (80, ENOUGH, 80),
        (80, 2 * SHORT_SECONDS, 80),
        (80, LONG, 40),
        (SMALLEST, LONG, SMALLEST),
        (SMALLEST + 1, LONG, SMALLEST),
    ],
)
def test_after_a_short_transaction_there_are_more_rows_and_after_a_long_one_fewer(
    size: int, seconds: float, expected: int
) -> None:
    assert next_size(size, seconds) == expected


def test_a_sweep_begins_with_few_rows_and_measures_each_transaction_also_one_that_fails() -> None:
    times = iter([0.0, 0.0, 1.0, 1.0 + ENOUGH, 2.0, 2.0 + LONG])
    batch = BatchSize(lambda: next(times))
    assert batch.rows == SMALLEST
    with batch.measure():
        pass
    assert batch.rows == 2 * SMALLEST
    with batch.measure():
        pass
    assert batch.rows == 2 * SMALLEST
    with pytest.raises(ValueError, match="no"), batch.measure():
        raise ValueError("no")
    assert batch.rows == SMALLEST
