"""The functions that a request runs through are counted."""

from bench import hops


async def test_each_flow_runs_through_some_functions_and_one_that_is_refused_through_the_fewest() -> None:
    found = await hops.measure()
    numbers = {name: len(each.code) for name, each in found.items()}
    assert min(numbers, key=numbers.__getitem__) == "a wrong key is refused"
    assert all(0 < each.files <= len(each.code) for each in found.values())
