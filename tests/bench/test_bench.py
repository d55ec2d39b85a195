"""The benchmarks in miniature, on real servers, so that they cannot rot; and what they rely on notices faults."""

import pytest

from bench import cpu, crowd, edits, provider, sleeper, versions, workers
from bench.client import ClientError, Watcher
from bench.cpu import Plan
from bench.pace import PIECE, Order, StampReader, stamp, stamps
from bench.quiet import Calibration, busy
from bench.report import Check, Report, quantile
from bench.servers import ours, running, script, theirs
from bench.sse import Chunked
from tests.free_port import free_port


def artifact_event(text: str, *, append: bool) -> dict[str, object]:
    artifact = {"artifactId": "a", "parts": [{"text": text}]}
    return {"result": {"artifactUpdate": {"taskId": "t", "artifact": artifact, "append": append}}}


# ------------------------------------------------------------------------ scenarios


async def test_at_full_speed_both_servers_send_the_exact_text_and_a_sleeper_of_ours_has_it_at_last() -> None:
    with script() as path:
        async with running(theirs) as other, running(ours(0, path)) as mine:
            report = cpu.every_delta(await cpu.measure(mine, other, Plan({1: 1, 10: 1, 40: 1}, {10: 1}, 1)))
            result = await sleeper.one(mine, Order(300), asleep=True)
    assert [row[0] for row in report.rows] == [1, 10, 40]
    assert [check.name for check in report.checks] == ["40 / 10"]
    assert result.kernel > 0


def test_a_delta_costs_less_than_in_another_checkout() -> None:
    plan = provider.Plan(crowd.Crowd(2, Order(20, 200)), 1)
    costs = {"ours": 2.0, "before": 4.0, "theirs": 8.0}
    results = {case: provider.Result([costs[case.whose]], [1.0]) for case in provider.cases(costs)}
    checks = {check.name: check.value for check in provider.report(plan, results).checks}
    assert checks["ours / before, in memory, 25 ms"] == 0.5


def test_two_workers_are_compared_with_one_by_the_turns_that_use_as_much_of_a_core() -> None:
    one = workers.Load(20, (0.35,), [10.0], [])
    two = workers.Load(36, (0.35, 0.35), [10.0], [90.0])
    apart = workers.Load(36, (0.32, 0.32), [10.0], [])
    third = workers.Load(6, (0.21,), [10.0], [])
    report = workers.report([one], [two], [apart], [third], [third])
    assert report.figures() == {"turns, two / one": 1.8, "CPU per delta, two / one": 1.111, "p99": 90.0}
    assert report.holds
    assert report.notes[0].endswith(
        "1.02 times that of one, which is the machine's; with a tenth watched elsewhere 1.09 times that"
    )
    assert "a third of the turns: 2.00 times" in report.notes[1]


@pytest.mark.parametrize("way", ["store", "runtime"])
def test_versions_made_either_way_read_as_they_were_written(way: versions.Way) -> None:
    result = versions.measure(way, versions.Plan(versions=40, size=1000, edit=20), traced=True)
    assert len(result.reads) == 40
    assert result.held > 0


async def test_an_edit_is_measured_on_every_binding_in_a_small_and_in_a_large_artifact() -> None:
    report = await edits.run(edits.Plan(1, (20,)))
    assert [row[:3] for row in report.rows] == [
        (binding, 5, size) for binding in edits.WATCHES for size in (edits.SMALL, edits.LARGE)
    ]
    *cpu_checks, disk = report.checks
    assert [check.name for check in cpu_checks] == [f"more CPU, {binding}, 5 chunks" for binding in edits.WATCHES]
    assert (disk.name, disk.target, disk.value < 20_000) == ("disk, 10 of 1000000 characters", 2048, True)
    for _, chunks, _, sent, chunk, _ in report.rows:
        assert isinstance(sent, int)
        assert isinstance(chunk, int)
        assert chunks * chunk < sent


async def test_an_edit_that_is_not_what_was_asked_for_is_noticed() -> None:
    port = free_port()
    with script(edits.SCRIPT) as path:
        async with running(edits.serving(path, port)) as server, edits.connected(port) as rpc:
            place = await edits.make(server, rpc, edits.SMALL)
            with pytest.raises(ClientError, match="chunks"):
                await edits.edit(place, edits.SMALL, 7, edits.WATCHES["gRPC"])


async def test_a_server_that_does_not_start_is_an_error_that_says_what_it_said() -> None:
    with pytest.raises(RuntimeError, match="out of order"):
        async with running(lambda port: ["-S", "-c", "raise SystemExit('out of order')"]):
            pass


# --------------------------------------------------------------------------- client


@pytest.mark.parametrize("size", range(1, 12))
def test_a_chunked_body_is_the_same_however_it_is_cut(size: int) -> None:
    wire = b"5\r\nhello\r\n1;x=y\r\n \r\nc\r\nworld\r\nagain\r\n0\r\n\r\n"
    body = Chunked()
    content = b"".join(body.feed(wire[at : at + size]) for at in range(0, len(wire), size))
    assert (content, body.ended) == (b"hello world\r\nagain", True)


def test_a_watcher_folds_as_a_stock_client_does() -> None:
    heard: list[str] = []
    watcher = Watcher(lambda text, at: heard.append(text))
    for text, append in (("lost", False), ("a", False), ("b", True)):
        watcher.take(artifact_event(text, append=append), 0)
    assert (watcher.text, heard) == ("ab", ["lost", "a", "b"])


def test_a_watcher_refuses_what_a_stock_client_refuses() -> None:
    with pytest.raises(ClientError, match="never begun"):
        Watcher().take(artifact_event("a", append=True), 0)
    with pytest.raises(ClientError, match="not an event"):
        Watcher().take({"error": {"code": -32603}}, 0)


# --------------------------------------------------------------------------- pieces


@pytest.mark.parametrize("order", [Order(4000), Order(10, 50.0), Order(10, 50.0, endless=True)])
def test_an_order_is_read_from_the_message_that_carries_it(order: Order) -> None:
    assert Order.read(str(order)) == order


async def test_pieces_are_twenty_characters_and_paced_ones_carry_their_time() -> None:
    assert [piece async for piece in Order(2).pieces()] == [PIECE, PIECE]
    first, second = [piece async for piece in Order(2, 1000.0).pieces()]
    assert len(first) == len(PIECE)
    (sooner,), (later,) = stamps(first), stamps(second)
    assert sooner < later


async def test_an_order_without_end_goes_on_at_its_rate() -> None:
    pieces = Order(2, 1000.0, endless=True).pieces()
    assert [await anext(pieces) for _ in range(4)] == [PIECE] * 4
    await pieces.aclose()


@pytest.mark.parametrize("cuts", [(20, 40), (19, 39, 40), (19, 40), (40,), (20, 39, 40)])
def test_each_delta_has_one_age_even_if_a_last_character_comes_later(cuts: tuple[int, ...]) -> None:
    text, ages = stamp(10_000_000) + stamp(20_000_000), []
    listen = crowd.Ages(ages).listen
    for begin, end in zip((0, *cuts), cuts, strict=False):
        listen(text[begin:end], 30_000_000)
    assert ages == [20.0, 10.0]


@pytest.mark.parametrize(("begun", "live"), [(0, [10, 20]), (19, [20]), (20, [20])])
def test_a_subscriber_reads_the_stamps_after_its_snapshot(begun: int, live: list[int]) -> None:
    reader = StampReader(begun)
    assert [time for character in (stamp(10) + stamp(20))[begun:] for time in reader.read(character)] == live


@pytest.mark.parametrize(
    ("times", "fault"), [((1, 2, 2), "in order"), ((1, 3, 2), "in order"), ((1, 2), "of 3 pieces")]
)
def test_a_repeat_a_swap_and_a_gap_are_noticed(times: tuple[int, ...], fault: str) -> None:
    watcher = Watcher()
    watcher.state = "TASK_STATE_COMPLETED"
    watcher.take(artifact_event("".join(map(stamp, times)), append=False), 0)
    with pytest.raises(ClientError, match=fault):
        crowd.check(watcher, Order(3, 50))


# --------------------------------------------------------------------------- report


@pytest.mark.parametrize(
    ("check", "holds"),
    [
        (Check("a", 1.2, "at most", 1.2), True),
        (Check("a", 1.21, "at most", 1.2), False),
        (Check("a", 3.0, "at least", 3), True),
        (Check("a", 2.99, "at least", 3), False),
    ],
)
def test_a_figure_holds_or_misses_its_target(check: Check, holds: bool) -> None:
    assert check.holds is holds
    assert str(check).startswith("pass" if holds else "MISS")


def test_a_report_shows_its_table_checks_and_notes() -> None:
    report = Report("name", "title", ("n", "us"), [(1000, 12.345)], [Check("x", 1, "at most", 2)], ["note"])
    assert str(report).splitlines()[1:] == [
        "== name: title",
        "   n    us",
        "1000  12.3",
        "pass  x: 1 (at most 2)",
        "note",
    ]


def test_a_figure_that_misses_its_target_on_a_busy_machine_fails_nothing() -> None:
    report = Report("name", "title", ("n",), [], [Check("x", 3, "at most", 2), Check("y", 1, "at most", 2)])
    assert not report.holds
    report.busy = busy(1.1, 1.5)
    assert report.holds
    assert str(report).splitlines()[3:] == [
        "BUSY  x: 3 (at most 2)",
        "pass  y: 1 (at most 2)",
        "the machine was busy: a fixed loop took 1.50 times as long as the fastest one (at most 1.3)",
    ]


def test_a_machine_is_busy_when_most_rounds_take_longer_than_the_fastest_of_all() -> None:
    calibration = Calibration()
    assert busy(calibration.rate([1.0] * 46 + [9.0] * 4), calibration.rate([1.2] * 50)) == ""
    assert busy(1.0, calibration.rate([1.4] * 50)) != ""
    assert busy(1.0, calibration.rate([1.0] * 40 + [2.0] * 10)) != ""
    assert calibration.slowdown() >= 1


def test_a_quantile_is_one_of_the_values() -> None:
    assert [quantile([4.0, 1.0, 3.0, 2.0], share) for share in (0, 0.5, 1)] == [1.0, 3.0, 4.0]
