"""`make fuzz` in miniature: it finds nothing, it covers every route, and a request can be made again."""

import pytest

from a2a_canvas.server.agent.endings import INTERNAL_ERROR
from bench import fuzz
from bench.fuzz_users import HIDDEN, OPEN, PRIVATE, SENDERS, TASKS, WORDS, Accounts
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
    ("kind", "characters"),
    [
        *((kind, rb"\%s" % code) for kind in ("JSON-RPC", "REST", "AG-UI") for code in (b"u0000", b"ud83d", b"udc80")),
        *((kind, b"\xed\xa0\xbd") for kind in ("JSON-RPC", "REST", "AG-UI")),
        *((kind, code) for kind in ("REST", "/artifacts", "page") for code in (b"%00", b"%ED%A0%BD", b"%ED%B2%80")),
        ("gRPC", b"\0j"),
    ],
)
def test_nul_and_lone_surrogates_reach_every_kind_of_string(kind: str, characters: bytes) -> None:
    requests = (fuzz.request(1, number) for number in range(3000))
    assert any(characters in asked.target.encode() + asked.body for asked in requests if asked.kind == kind)


def test_no_context_gets_more_requests_for_a_longer_run() -> None:
    contexts = {fuzz.RequestRandom(1, number).context for number in range(1000)}
    assert len({*contexts} - {*PRIVATE.values(), OPEN}) == 1000 / fuzz.REQUESTS_PER_CONTEXT


def test_users_say_their_own_words_and_name_the_tasks_and_contexts_of_each_other() -> None:
    requests = [fuzz.request(1, number) for number in range(3000)]
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
