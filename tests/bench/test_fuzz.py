"""`make fuzz` in miniature: it finds nothing, it covers every route, and a request can be made again."""

import random
from itertools import islice

import pytest

from a2a_canvas.server.agent.endings import INTERNAL_ERROR
from bench.fuzz import bystander, frames, others
from bench.fuzz import requests as fuzz_requests
from bench.fuzz import run as fuzz
from bench.fuzz.users import HIDDEN, OPEN, PRIVATE, SENDERS, TASKS, WORDS, Accounts
from bench.fuzz.worst_bodies import MAX_BODY, worst_bodies
from bench.servers import MEMORY


@pytest.mark.parametrize("database", ["sqlite", MEMORY])
async def test_some_hundred_hostile_requests_do_no_harm(database: str) -> None:
    result = await fuzz.fuzz(300, database, seed=9)
    assert result.faults == []
    assert result.answers.total() == 300
    kinds = {answer.split()[0] for answer in result.answers}
    assert kinds == {"JSON-RPC", "REST", "AG-UI", "/artifacts", "gRPC", "page", "worst"}


def test_a_request_is_made_of_the_seed_and_its_number() -> None:
    assert [fuzz_requests.request(1, number) for number in range(50)] == [
        fuzz_requests.request(1, number) for number in range(50)
    ]
    assert fuzz_requests.request(1, 3) != fuzz_requests.request(2, 3)


@pytest.mark.parametrize(
    ("kind", "characters"),
    [
        *((kind, rb"\%s" % code) for kind in ("JSON-RPC", "REST", "AG-UI") for code in (b"u0000", b"ud83d", b"udc80")),
        *((kind, b"\xed\xa0\xbd") for kind in ("JSON-RPC", "REST", "AG-UI")),
        *((kind, code) for kind in ("REST", "/artifacts", "page") for code in (b"%00", b"%ED%A0%BD", b"%ED%B2%80")),
        ("gRPC", b"\0j"),
    ],
)
def test_nul_and_lone_surrogates_reach_every_kind_of_string(kind: str, characters: bytes) -> None:
    requests = (fuzz_requests.request(1, number) for number in range(3000))
    assert any(characters in asked.target.encode() + asked.body for asked in requests if asked.kind == kind)


def test_no_context_gets_more_requests_for_a_longer_run() -> None:
    contexts = {fuzz_requests.RequestRandom(1, number).context for number in range(1000)}
    assert len({*contexts} - {*PRIVATE.values(), OPEN}) == 1000 / fuzz_requests.REQUESTS_PER_CONTEXT


def test_users_say_their_own_words_and_name_the_tasks_and_contexts_of_each_other() -> None:
    requests = [fuzz_requests.request(1, number) for number in range(3000)]
    assert {asked.sender for asked in requests} == {*SENDERS}
    for asked in requests:
        mine = {WORDS.get(asked.sender, ""), WORDS[OPEN] if asked.sender == "ann" else ""}
        assert not [word for word in WORDS.values() if word.encode() in asked.body and word not in mine]
        assert not any(hidden.encode() in asked.target.encode() + asked.body for hidden in HIDDEN.values())
        assert asked.sender not in PRIVATE or PRIVATE[asked.sender].encode() not in asked.body
    of_bob = b"".join(asked.target.encode() + asked.body for asked in requests if asked.sender == "bob")
    assert PRIVATE["ann"].encode() in of_bob
    assert all(stand_in.encode() in of_bob for stand_in in TASKS)


@pytest.mark.parametrize(
    ("sender", "answer", "leaks"),
    [
        ("ann", f"{WORDS['ann']} {HIDDEN['ann']} {WORDS[OPEN]} {WORDS['editor']}", []),
        ("ann", f"x{WORDS['bob']}x", [WORDS["bob"]]),
        ("bob", HIDDEN["ann"], [HIDDEN["ann"]]),
        ("bob", WORDS[OPEN], [WORDS[OPEN]]),
        ("reader", f"{WORDS[OPEN]} {WORDS['ann']}", [WORDS["ann"]]),
        ("nobody", WORDS["ann"], [WORDS["ann"]]),
        ("forger", WORDS[OPEN], [WORDS[OPEN]]),
    ],
)
def test_what_a_sender_must_not_see(sender: str, answer: str, leaks: list[str]) -> None:
    assert Accounts.new().leaks(sender, answer) == leaks


def test_nobody_is_told_a_credential_and_the_log_has_neither_these_nor_what_users_say() -> None:
    accounts = Accounts.new()
    for secret in accounts.secrets.values():
        assert accounts.leaks("ann", f"...{secret}") == [secret]
        assert accounts.logged(f"...{secret}") == [secret]
    assert accounts.logged(f"context={PRIVATE['ann']} {WORDS['ann']}") == [WORDS["ann"]]


@pytest.mark.parametrize(
    ("answer", "text", "fault"),
    [
        ("200", "", False),
        ("400", "id must not contain the character NUL.", False),
        ("503 retryable", "", False),
        ("503", "", True),
        ("500", "", True),
        ("200", '{"error": {"code": -32603, "message": "Internal error"}}', True),
        ("OK", f"...{INTERNAL_ERROR}", True),
        ("400", "IndexError: list index out of range", True),
        ("INTERNAL", "", True),
        ("UNAVAILABLE", "", False),
        ("TimeoutError, or no answer within 20 s", "", True),
    ],
)
def test_what_counts_as_a_fault(answer: str, text: str, fault: bool) -> None:
    assert fuzz._is_fault(answer, text) is fault


@pytest.mark.parametrize(
    ("code", "log", "faults"),
    [
        (0, "INFO ready", []),
        (-9, "INFO ready", ["SIGTERM: ended with -9"]),
        (0, "INFO ready\nERROR x\nTraceback", ["the log:\nINFO ready\nERROR x\nTraceback"]),
    ],
)
def test_a_server_ends_with_0_and_without_a_sign_of_a_fault_in_its_log(code: int, log: str, faults: list[str]) -> None:
    assert fuzz.faults_of_end(code, log, "Traceback") == faults


# ---------------------------------------------------------------------- its other parts


async def test_hostile_servers_do_no_harm() -> None:
    faults, answered = await others.against_servers(3, seed=9)
    assert faults == []
    assert answered["good"] > 0


async def test_frames_that_no_client_sends_do_no_harm() -> None:
    faults, sent = await others.against_frames(seed=9, seconds=0.05)
    assert faults == []
    assert sent > 0


async def test_a_bystander_is_served_among_others_with_the_worst_bodies() -> None:
    found = await bystander.measure(20)
    assert (found.alone.failed, found.among.failed) == ((), ())
    assert found.among.longest.keys() == found.alone.longest.keys()
    assert found.slowest


def test_a_bystander_reads_with_get_and_writes_with_all_else() -> None:
    asked = list(islice(bystander._requests("c"), 20))
    assert {kind for kind, method, _, _ in asked if method != "GET"} == bystander.WRITES
    assert {kind for kind, method, _, _ in asked if method == "GET"}.isdisjoint(bystander.WRITES)


def waits(read: float, write: float, *failed: str) -> bystander.Waits:
    return bystander.Waits({"health": 0.001, "a context": read, "a share": 0.002, "put": write}, failed)


@pytest.mark.parametrize(
    ("read", "write", "missed"),
    [(0.34, 0.39, []), (0.36, 0.39, ["read"]), (0.34, 0.41, ["write"]), (9.0, 9.0, ["read", "write"])],
)
def test_a_bystander_that_waits_beyond_a_goal_on_a_quiet_machine_is_a_fault(
    read: float, write: float, missed: list[str]
) -> None:
    found = bystander.Measured(waits(0.05, 0.1), waits(read, write), {})
    assert [fault.split(":")[0].split()[-1] for fault in bystander.faults(found, "")] == missed
    assert bystander.faults(found, "the machine was busy") == []


def test_a_request_of_a_bystander_that_fails_is_a_fault_on_any_machine() -> None:
    found = bystander.Measured(waits(0.05, 0.1), waits(0.05, 0.1, "put: 500"), {})
    for busy in ("", "the machine was busy"):
        assert bystander.faults(found, busy) == ["a bystander's request failed: put: 500"]


def test_the_worst_bodies_are_as_large_as_may_be_and_reach_every_route_that_takes_one() -> None:
    bodies = worst_bodies(OPEN)
    assert max(len(each.body) for each in bodies) <= MAX_BODY
    assert {each.target.replace(OPEN, "…") for each in bodies if len(each.body) > MAX_BODY - 2**10} == {
        *("/", "/rest/message:send", "/canvas/stream", "/artifacts/…", "/artifacts/…/shares", "/auth/signed-urls"),
        "/lf.a2a.v1.A2AService/SendMessage",
    }


def test_each_kind_of_frame_is_one_after_the_other() -> None:
    assert frames.frame(frames.PING, 0, 0, bytes(8)) == b"\0\0\x08\x06\0\0\0\0\0" + bytes(8)
    for flood in frames.floods(random.Random(1)).values():
        assert all(next(flood) for _ in range(3))


async def test_what_another_user_waits_while_a_body_is_served_is_measured_for_each() -> None:
    bodies = [each for each in worst_bodies(bystander.PLACE) if each.name == "a fraction"]
    held = await bystander.hold_of_each(bodies)
    assert len(held) == len(bodies)
    assert all(seconds > 0 for seconds in held.values())
