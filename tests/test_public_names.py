"""What programs read keeps its spelling."""

from tests.public_names import LIST, public_names


def test_names_that_programs_read_are_those_of_the_list() -> None:
    """A name that is added or dropped on purpose is in the list after `python -m tests.public_names`."""
    before = LIST.read_text().splitlines()
    now = public_names()
    assert [name for name in before if name not in now] == []
    assert [name for name in now if name not in before] == []
