"""Subjects say nothing without the key, and messages count only with their signature, on their subject."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from a2a_canvas.server.broker.signatures import PREFIX, SIGNATURE_BYTES, Signatures

OURS, THEIRS = Signatures(b"a" * 32), Signatures(b"b" * 32)


@given(st.text(), st.text())
def test_a_subject_is_of_words_and_digits_whatever_the_names_are(context: str, task: str) -> None:
    prefix, installation, kind, *names = OURS.subject("page", context, task).split(".")
    assert (prefix, kind, len(names)) == (PREFIX, "page", 2)
    assert set("".join((installation, *names))) <= set("0123456789abcdef")


def test_names_kinds_and_keys_have_subjects_of_their_own() -> None:
    every = product((OURS, THEIRS), ("page", "x"), ("*", ">", "a"))
    subjects = {signatures.subject(kind, name) for signatures, kind, name in every}
    assert len(subjects) == 12
    *of_context, last = OURS.subject("page", "a", None).split(".")
    assert last == "*"
    assert OURS.subject("page", "a", "b").split(".")[:-1] == of_context


@given(st.binary(), st.integers(0))
def test_a_message_is_opened_as_it_was_signed(payload: bytes, place: int) -> None:
    message = OURS.sign("subject", payload)
    assert len(message) == SIGNATURE_BYTES + len(payload)
    assert OURS.open("subject", message) == payload
    assert OURS.open("another", message) is None
    assert THEIRS.open("subject", message) is None
    place %= len(message)
    assert OURS.open("subject", message[:place] + bytes([message[place] ^ 1]) + message[place + 1 :]) is None
    assert OURS.open("subject", message[:place]) is None
