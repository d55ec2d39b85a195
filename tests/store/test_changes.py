"""The part rules (docs/a2a.md, "How parts are combined") against a naive model: a string, lists, the order of kinds."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_canvas.store.changes import AppendParts, Change, EditText, ReplaceParts, apply, check, group
from a2a_canvas.store.errors import ArtifactTooLarge, EmptyUpdate, MediaTypeConflict, OutsideText, TooManyParts
from a2a_canvas.store.models import DataPart, FilePart, Limits, Part, Parts, TextPart, text_part
from a2a_canvas.store.text.spans import Span
from tests.property_examples import examples
from tests.store.artifact_builders import KINDS, PART_TUPLES, PARTS, TEXTS, appending, kinds, replacing, text

# ---------------------------------------------------------------------------------------- the naive model


@dataclass
class Naive:
    """An artifact, written down as the table of section 5 reads."""

    order: list[str] = field(default_factory=list)
    text: str = ""
    media_type: str = ""
    metadata: dict[str, object] = field(default_factory=dict)
    items: dict[str, list[Part]] = field(default_factory=lambda: {"file": [], "data": []})

    def change(self, change: Change) -> None:
        append = isinstance(change, AppendParts)
        texts = [part for part in change.parts if isinstance(part, TextPart)]
        if not change.parts:
            raise EmptyUpdate
        if texts:
            self._change_text(texts, append)
        for kind in ("file", "data"):
            if new := [part for part in change.parts if part.kind == kind]:
                self.items[kind] = self.items[kind] + new if append else new
        self.order += [kind for kind in dict.fromkeys(kinds(change.parts)) if kind not in self.order]

    def _change_text(self, texts: list[TextPart], append: bool) -> None:
        types = list(dict.fromkeys(part.media_type for part in texts if part.media_type))
        if len(types) == 1 and append and self.media_type:
            types = list(dict.fromkeys([self.media_type, *types]))
        if len(types) > 1:
            raise MediaTypeConflict(types[0], types[1])
        new = "".join(part.text for part in texts)
        self.text = self.text + new if append else new
        self.media_type = types[0] if types else self.media_type if append else ""
        for part in texts:
            self.metadata = {**self.metadata, **part.metadata}

    def parts(self) -> list[object]:
        one_text = ("text", self.text, self.media_type, self.metadata)
        return [item for kind in self.order for item in ([one_text] if kind == "text" else self.items[kind])]


def outcome(naive: Naive, change: Change) -> tuple[Naive, Exception | None]:
    items = {kind: list(parts) for kind, parts in naive.items.items()}
    after = Naive(list(naive.order), naive.text, naive.media_type, dict(naive.metadata), items)
    try:
        after.change(change)
    except (EmptyUpdate, MediaTypeConflict) as error:
        return naive, error
    return after, None


def plain(parts: Parts) -> list[object]:
    return [
        ("text", part.text, part.media_type, part.metadata) if isinstance(part, TextPart) else part for part in parts
    ]


CHANGES = st.builds(lambda kind, parts: kind(parts), KINDS, PART_TUPLES)


@given(st.lists(CHANGES, max_size=6))
@settings(max_examples=examples(300))
def test_any_changes_in_a_row_do_what_the_table_says(changes: list[Change]) -> None:
    parts: Parts = ()
    naive = Naive()
    for change in changes:
        before, (expected, error) = repr(parts), outcome(naive, change)
        if error:
            with pytest.raises(type(error)) as caught:
                apply(parts, change)
            assert str(caught.value) == str(error)
            continue
        after = apply(parts, change)
        assert plain(after) == expected.parts()
        assert repr(parts) == before, "the artifact as it was has been altered"
        assert apply(parts, change) == after, "the same update gave another result"
        parts, naive = after, expected


@given(PART_TUPLES)
def test_an_update_is_grouped_as_it_would_be_appended_to_nothing(parts: Parts) -> None:
    naive, error = outcome(Naive(), AppendParts(parts))
    if isinstance(error, MediaTypeConflict):
        with pytest.raises(MediaTypeConflict):
            group(parts)
    else:
        assert plain(group(parts)) == naive.parts()
        assert group(group(parts)) == group(parts)


@given(st.lists(PARTS, min_size=1, max_size=5), st.booleans())
def test_a_list_that_is_extended_and_then_grouped_is_what_appending_gives(parts: list[Part], grouped: bool) -> None:
    """What a stock client relies on: it extends its list and groups when it shows it."""
    try:
        whole = group(parts)
    except MediaTypeConflict:
        return
    middle = len(parts) // 2
    client = [*(group(parts[:middle]) if grouped else parts[:middle]), *parts[middle:]]
    assert group(client) == whole == apply(group(parts[:middle]), AppendParts(tuple(parts[middle:])))


# ---------------------------------------------------------------------------------------- fixed examples

FILE, OTHER_FILE = FilePart(b"1", name="1.bin"), FilePart(url="https://example.org/2")
DATA, OTHER_DATA = DataPart([1]), DataPart({"b": 2})


def test_hello_world_is_replaced_by_goodbye() -> None:
    greeting = group((text("Hello "), text("World")))
    assert greeting == (text("Hello World"),)
    assert apply(greeting, replacing("Goodbye")) == (text("Goodbye"),)


def test_world_is_appended_to_hello() -> None:
    assert apply((text("Hello "),), appending("World")) == (text("Hello World"),)


def test_two_texts_of_one_update_become_one_part() -> None:
    for kind in (ReplaceParts, AppendParts):
        assert apply((), kind((text("Part 1"), text("Part 2")))) == (text("Part 1Part 2"),)


def test_text_around_a_file_becomes_one_text_at_the_slot_of_the_first() -> None:
    assert group((text("a"), FILE, text("b"))) == (text("ab"), FILE)
    assert group((FILE, text("a"), OTHER_FILE, text("b"))) == (FILE, OTHER_FILE, text("ab"))


def test_files_and_data_are_kept_apart_in_order() -> None:
    assert group((DATA, FILE, OTHER_DATA, OTHER_FILE, FILE)) == (DATA, OTHER_DATA, FILE, OTHER_FILE, FILE)


def test_replacing_a_kind_replaces_all_of_it_at_its_slot_and_leaves_the_others() -> None:
    parts = (FILE, OTHER_FILE, text("a"), DATA)
    assert apply(parts, ReplaceParts((OTHER_DATA, text("b")))) == (FILE, OTHER_FILE, text("b"), OTHER_DATA)
    assert apply(parts, ReplaceParts((OTHER_FILE,))) == (OTHER_FILE, text("a"), DATA)


def test_appending_adds_after_those_of_the_kind_and_a_new_kind_goes_to_the_end() -> None:
    assert apply((FILE, text("a")), AppendParts((DATA, OTHER_FILE))) == (FILE, OTHER_FILE, text("a"), DATA)


def test_an_empty_text_replaces_a_text_by_nothing_and_stays_a_part() -> None:
    assert apply((text("a"), FILE), replacing("")) == (text(""), FILE)


@pytest.mark.parametrize("kind", [ReplaceParts, AppendParts])
def test_an_update_without_parts_is_an_error_that_says_what_to_do(kind: type[Change]) -> None:
    with pytest.raises(EmptyUpdate, match="at least one part"):
        apply((FILE,), kind(()))


@pytest.mark.parametrize("change", [replacing("b"), appending("b")])
def test_metadata_of_the_update_wins_over_existing_keys_and_keeps_the_others(change: Change) -> None:
    change = type(change)((text("b", metadata={"x": 2, "y": 2}),))
    (after,) = apply((text("a", metadata={"w": 1, "x": 1}),), change)
    assert after.metadata == {"w": 1, "x": 2, "y": 2}


def test_metadata_of_a_replaced_file_goes_with_the_file() -> None:
    old, new = FilePart(b"1", metadata={"x": 1}), FilePart(b"2", metadata={"y": 1})
    assert apply((old,), ReplaceParts((new,))) == (new,)


PLAIN, MARKDOWN = text("a", media_type="text/plain"), text("b", media_type="text/markdown")


@pytest.mark.parametrize(
    ("parts", "change"),
    [
        ((), ReplaceParts((PLAIN, MARKDOWN))),
        ((), AppendParts((PLAIN, text("-"), MARKDOWN))),
        ((PLAIN,), AppendParts((MARKDOWN,))),
        ((PLAIN, FILE), AppendParts((FILE, text("-"), MARKDOWN))),
    ],
)
def test_joining_two_media_types_is_an_error_that_names_both(parts: Parts, change: Change) -> None:
    with pytest.raises(MediaTypeConflict, match=r"'text/plain'.*'text/markdown'") as caught:
        apply(parts, change)
    assert (caught.value.first, caught.value.second) == ("text/plain", "text/markdown")


def test_a_replacement_takes_the_new_media_type_also_when_it_has_none() -> None:
    assert apply((PLAIN,), ReplaceParts((MARKDOWN,))) == (MARKDOWN,)
    assert apply((PLAIN,), replacing("b")) == (text("b"),)


def test_text_without_a_media_type_joins_any_other() -> None:
    joined = text("ab", media_type="text/plain")
    assert apply((PLAIN,), appending("b")) == (joined,)
    assert apply((text("a"),), AppendParts((text("b", media_type="text/plain"),))) == (joined,)
    assert group((text("a"), text("b", media_type="text/plain"))) == (joined,)


def test_files_of_different_media_types_stand_side_by_side() -> None:
    pictures = (FilePart(b"1", media_type="image/png"), FilePart(b"2", media_type="image/gif"))
    assert apply(pictures[:1], AppendParts(pictures[1:])) == pictures


# ------------------------------------------------------------------------------------------------- edits


@given(PART_TUPLES, TEXTS, st.integers(-1, 12), st.integers(-1, 12))
@settings(max_examples=examples(300))
def test_an_edit_puts_a_text_in_the_place_of_a_range_and_changes_nothing_else(
    parts: Parts, new: str, start: int, end: int
) -> None:
    try:
        parts = group(parts)
    except MediaTypeConflict:
        return
    old = next((part.text for part in parts if isinstance(part, TextPart)), "")
    before, edit = repr(parts), EditText(Span(start, end), new, base=1)
    if not 0 <= start <= end <= len(old):
        with pytest.raises(OutsideText, match=f"is 0 to {len(old)}") as caught:
            apply(parts, edit)
        assert (caught.value.start, caught.value.end, caught.value.length) == (start, end, len(old))
        return
    naive, _ = outcome(Naive(), AppendParts(parts)) if parts else (Naive(), None)
    naive.text = old[:start] + new + old[end:]
    naive.order += [] if "text" in naive.order else ["text"]
    edited = apply(parts, edit)
    assert plain(edited) == naive.parts()
    assert sum(part.size for part in edited if isinstance(part, TextPart)) == len(naive.text.encode())
    assert repr(parts) == before


def test_an_edit_cannot_bring_in_what_no_transport_carries() -> None:
    assert apply((text("ab"),), EditText(Span(1, 1), "\ud83d", base=1)) == (text("a\ufffdb"),)


# ------------------------------------------------------------------------------------------------ bounds


def test_an_artifact_may_reach_its_bounds_and_not_pass_them() -> None:
    parts = (text("é€"), FilePart(b"123"), FilePart(url="https://x.org"), DataPart(None, size=4))
    size = 5 + 3 + 13 + 4
    check(parts, Limits(artifact_bytes=size, parts=4))
    with pytest.raises(ArtifactTooLarge, match=f"{size} bytes; {size - 1} are allowed") as too_large:
        check(parts, Limits(artifact_bytes=size - 1))
    assert (too_large.value.size, too_large.value.limit) == (size, size - 1)
    with pytest.raises(TooManyParts, match="4 parts; 3 are allowed") as too_many:
        check(parts, Limits(parts=3))
    assert (too_many.value.count, too_many.value.limit) == (4, 3)


def test_metadata_counts_towards_the_size_of_an_artifact() -> None:
    with pytest.raises(ArtifactTooLarge):
        check((text_part("x", metadata={"note": "y" * 100}),), Limits(artifact_bytes=100))
