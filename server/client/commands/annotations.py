"""`a2a-canvas comments`, `comment`, `suggestions`, `suggest`, `reply` and the decisions on them; `a2a-canvas agents`.

Rule 1: annotations are named by their number in the artifact, `3` or `#3`: an id is for programs.
Rule 2: what is listed is what waits for somebody, unless all are asked for.
Rule 3: lines are those of the current version. A suggestion whose passage has changed since is shown as it was made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any

from a2a.types import a2a_pb2 as pb

from a2a_canvas.server.client.commands.artifacts import format_author, show_diff
from a2a_canvas.server.client.commands.edit import select_passage
from a2a_canvas.server.client.commands.send import show_end
from a2a_canvas.server.client.conversation.canvas_session import CanvasSession, open_canvas, text_of
from a2a_canvas.server.client.conversation.errors import CannotBeDone
from a2a_canvas.server.client.conversation.exchange import check_outcome
from a2a_canvas.server.client.conversation.invocation import Invocation
from a2a_canvas.server.client.screen.display import fit, local_time, one_line
from a2a_canvas.server.client.screen.fold import SeenTask

Json = dict[str, Any]

COMMENT_COLUMNS = ("#", "line", "by", "made", "state", "passage", "comment")
WAITING = ("open", "stale")
MAX_PASSAGE = 30
"""Cells of a passage in a table."""
_REPLY = "↳"
_SAID = {
    True: "Agents suggest changes to artifacts, and people accept or reject them.",
    False: "Agents change artifacts directly.",
}


@dataclass(frozen=True, slots=True)
class ArtifactReview:
    """The annotations of an artifact, and the text that their places are in.

    Attributes:
        answer: what the server said.
        text: empty if no annotation has a place.
    """

    artifact: str
    answer: Json
    annotations: tuple[Json, ...]
    text: str

    def of_kind(self, kind: str, *, closed: bool = False) -> list[Json]:
        """Those of a kind, `closed`: also those that nothing waits for."""
        return [each for each in self.annotations if each["kind"] == kind and (closed or each["state"] in WAITING)]

    def line_of(self, annotation: Json) -> int:
        """The line that its passage begins in; 0 if the place is not certain."""
        at = _place(annotation)
        return self.text.count("\n", 0, _codepoints(self.text, at[0])) + 1 if at else 0

    def diff_of(self, suggestion: Json) -> str:
        """The lines that accepting it changes, as a diff (rule 3)."""
        quote, replacement = str(suggestion["quote"]["exact"]), str(suggestion.get("replacement", ""))
        if at := _place(suggestion):
            start, end = (_codepoints(self.text, offset) for offset in at)
            if self.text[start:end] == quote:
                before, after = self.text[:start].rpartition("\n")[2], self.text[end:].partition("\n")[0]
                return diff_lines(before + quote + after, before + replacement + after)
        return diff_lines(quote, replacement)


def diff_lines(before: str, after: str) -> str:
    """The lines of two passages that differ, as a diff without heads."""
    old, new = ([f"{line}\n" for line in text.split("\n")] for text in (before, after))
    return "".join(line for line in [*unified_diff(old, new, n=0)][2:] if not line.startswith("@@"))


def _place(annotation: Json) -> tuple[int, int] | None:
    match annotation.get("place"):
        case {"selection": {"start": int(start), "end": int(end)}}:
            return start, end
        case _:
            return None


def _codepoints(text: str, utf16: int) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")[: 2 * utf16].decode("utf-16-le", "replace"))


async def read_review(canvas: CanvasSession, artifact: str) -> ArtifactReview:
    """The annotations of an artifact."""
    answer = await canvas.read(artifact, "annotations")
    listed = answer.get("first", {}).get("items", [])
    found = tuple(each["canvas"] for each in listed if isinstance(each, dict) and "canvas" in each)
    version = next((each["place"]["version"] for each in found if "place" in each), 0)
    text = text_of(await canvas.read(artifact, "versions", str(version))) if version else ""
    return ArtifactReview(artifact, answer, found, text)


# --------------------------------------------------------------------------- listing


async def comments(invocation: Invocation, artifact: str | None, context: str | None, closed: bool) -> None:
    """Print the comments of an artifact and their replies."""
    async with open_canvas(invocation, context) as canvas:
        review = await read_review(canvas, canvas.find(artifact))
        if invocation.json:
            invocation.print_json(review.answer)
            return
        rows = [row for each in review.of_kind("comment", closed=closed) for row in comment_rows(each, review)]
        invocation.table(COMMENT_COLUMNS, rows, "There are no comments." if closed else "There are no open comments.")


async def suggestions(
    invocation: Invocation, artifact: str | None, context: str | None, closed: bool, by: str | None
) -> None:
    """Print the suggestions for an artifact: what each of them changes."""
    async with open_canvas(invocation, context) as canvas:
        review = await read_review(canvas, canvas.find(artifact))
        if invocation.json:
            invocation.print_json(review.answer)
            return
        listed = [each for each in review.of_kind("suggestion", closed=closed) if by in (None, shown_author(each))]
        if not listed:
            invocation.tell("There are no suggestions." if closed else "There are no open suggestions.")
        for each in listed:
            invocation.say(suggestion_head(each, review.line_of(each)))
            show_diff(invocation, review.diff_of(each), head=0)
            for remark in each["thread"]:
                invocation.say(f"{_REPLY} {format_author(remark)}: {remark['text']}")


def comment_rows(comment: Json, review: ArtifactReview) -> Iterator[tuple[str, ...]]:
    """A comment and its replies as rows of a table."""
    line, passage = review.line_of(comment), fit(one_line(comment["quote"]["exact"]), MAX_PASSAGE)
    named = (f"#{comment['number']}", str(line or "–"))
    first, *replies = comment["thread"]
    yield (*named, format_author(first), local_time(first["at"]), comment["state"], passage, first["text"])
    for each in replies:
        yield ("", "", format_author(each), local_time(each["at"]), "", "", f"{_REPLY} {each['text']}")


def suggestion_head(suggestion: Json, line: int) -> str:
    """A suggestion in a line: its number, its place, its author and its state."""
    where = f"line {line}" if line else "its passage is gone" if suggestion["state"] == "stale" else "no place"
    made = local_time(suggestion["at"])
    return (
        f"#{suggestion['number']}, {where}, by {shown_author(suggestion) or 'anonymous'}, {made}: {suggestion['state']}"
    )


def shown_author(annotation: Json) -> str:
    """The name by which annotations are filtered: `agent`, or that of the user."""
    return "agent" if annotation.get("author") == "agent" else str(annotation.get("by", ""))


# ---------------------------------------------------------------------------- making


async def comment(
    invocation: Invocation,
    artifact: str,
    words: tuple[str, ...],
    lines: tuple[int, int] | None,
    base: int | None,
    ask: bool,
    context: str | None,
) -> int:
    """Comment on a passage, which is the first of the words unless lines are given."""
    passage, text = (None, words) if lines else (words[0], words[1:])
    if not text:
        example = invocation.line("comment", artifact, "text of the passage", "What about…?")
        raise CannotBeDone("Give the passage and then the comment, or --lines", f"For example: {example}")
    return await _annotate(invocation, artifact, passage, lines, base, context, " ".join(text), ask=ask)


async def suggest(
    invocation: Invocation,
    artifact: str,
    words: tuple[str, ...],
    lines: tuple[int, int] | None,
    base: int | None,
    because: str | None,
    context: str | None,
) -> None:
    """Suggest a text for a passage, which is the first of the words unless lines are given."""
    passage, text = (None, words) if lines else (words[0], words[1:])
    if len(text) != 1:
        example = invocation.line("suggest", artifact, "text of the passage", "the new text")
        needed = (
            "Give the new text in quotation marks"
            if lines
            else "Give the passage and the new text, each in quotation marks"
        )
        raise CannotBeDone(needed, f"For example: {example}")
    await _annotate(invocation, artifact, passage, lines, base, context, because or "", replacement=text[0])


async def _annotate(
    invocation: Invocation,
    artifact: str,
    passage: str | None,
    lines: tuple[int, int] | None,
    base: int | None,
    context: str | None,
    text: str,
    **fields: Any,
) -> int:
    async with open_canvas(invocation, context) as canvas:
        id_ = canvas.find(artifact)
        selection, version = await select_passage(canvas, id_, lines, passage or "", base)
        return await _write(canvas, id_, text, op="annotate", selection=selection, baseVersion=version, **fields)


async def _write(canvas: CanvasSession, artifact: str, text: str, *, ask: bool = False, **fields: Any) -> int:
    """Make an annotation or a reply; `ask`: follow the turn that answers it. Returns the exit code."""
    if not ask:
        await canvas.operate_and_say(artifact, text, **fields)
        return 0
    invocation, seen = canvas.invocation, SeenTask()

    def show(response: pb.StreamResponse, now: SeenTask) -> None:
        nonlocal seen
        seen = now
        invocation.screen.show(response, now, artifacts=False)

    await canvas.operate(artifact, text, {**fields, "ask": True}, show)
    if not invocation.json:
        show_end(invocation, seen, {})
    return check_outcome(seen)


# -------------------------------------------------------------------------- deciding


async def agents(invocation: Invocation, policy: str | None, context: str | None) -> None:
    """Choose whether agents suggest or write in a conversation, or print which they do."""
    async with open_canvas(invocation, context) as canvas:
        said: dict[str, Any] = {"contextId": canvas.context, "agentsSuggest": canvas.agents_suggest}
        if policy:
            said = await canvas.change_context(agentsSuggest=policy == "suggest")
    if invocation.json:
        invocation.print_json(said)
    else:
        invocation.say(_SAID[said["agentsSuggest"]])


async def reply(invocation: Invocation, words: tuple[str, ...], ask: bool, context: str | None) -> int:
    """Add to the thread of a comment or a suggestion."""
    async with open_canvas(invocation, context) as canvas:
        artifact, rest = split_artifact(canvas, words)
        if len(rest) < 2:
            example = invocation.line("reply", artifact, "3", "Because…")
            raise CannotBeDone("Give the number and then the reply", f"For example: {example}")
        [found] = await _find_numbers(canvas, artifact, rest[:1])
        fields = {"op": "reply", "annotationId": found["annotationId"]}
        return await _write(canvas, artifact, " ".join(rest[1:]), ask=ask, **fields)


async def resolve_comments(invocation: Invocation, words: tuple[str, ...], context: str | None) -> None:
    """Resolve comments."""
    await _decide(invocation, words, context, "resolve", "comment")


async def reject(invocation: Invocation, words: tuple[str, ...], context: str | None) -> None:
    """Reject suggestions."""
    await _decide(invocation, words, context, "reject", "suggestion")


async def withdraw(invocation: Invocation, words: tuple[str, ...], context: str | None) -> None:
    """Withdraw comments and suggestions."""
    await _decide(invocation, words, context, "withdraw", "")


async def accept(
    invocation: Invocation, words: tuple[str, ...], every: bool, by: str | None, context: str | None
) -> int:
    """Accept suggestions: each makes a version, `every`: all together make one.

    Returns:
        1 if one of those that were named is not accepted.
    """
    if by is not None and not every:
        raise CannotBeDone("--by selects among all: add --all")
    if not every:
        return await _decide(invocation, words, context, "accept", "suggestion")
    async with open_canvas(invocation, context) as canvas:
        artifact, rest = split_artifact(canvas, words)
        if rest:
            raise CannotBeDone("Give numbers or --all, not both")
        review = await read_review(canvas, artifact)
        data = await _operate(canvas, artifact, "Accept all", op="accept-all", by=by)
        show_conflicts(invocation, review.annotations, data)
    return 0


async def _decide(invocation: Invocation, words: Sequence[str], context: str | None, op: str, kind: str) -> int:
    """Run an operation on each annotation that is named, all of which must be of the kind."""
    undone = 0
    async with open_canvas(invocation, context) as canvas:
        artifact, numbers = split_artifact(canvas, words)
        for each in await _find_numbers(canvas, artifact, numbers, kind):
            name = f"{op.capitalize()} #{each['number']}"
            data = await _operate(canvas, artifact, name, op=op, annotationId=each["annotationId"])
            undone |= op == "accept" and not data.get("accepted")
            show_conflicts(invocation, [each], data)
    return int(undone)


async def _operate(canvas: CanvasSession, artifact: str, request: str, **fields: Any) -> Json:
    """What the server says of the outcome."""
    done = await canvas.operate(artifact, request, fields)
    if not canvas.invocation.json:
        canvas.invocation.say(done.said)
    return done.data


def show_conflicts(invocation: Invocation, annotations: Iterable[Json], data: Json) -> None:
    """Print the texts of suggestions in conflict: how the passage is now, and what was suggested."""
    numbers = {each["annotationId"]: each["number"] for each in annotations}
    for each in () if invocation.json else data.get("conflicts", ()):
        invocation.tell(f"#{numbers.get(each['annotationId'], '?')}: the text now, and the suggestion")
        show_diff(invocation, diff_lines(str(each["current"]), str(each["suggested"])), head=0)


def split_artifact(canvas: CanvasSession, words: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The artifact that the first word names, and the other words. A number names the only artifact."""
    if words and (annotation_number(words[0]) is None or canvas.has(words[0])):
        return canvas.find(words[0]), tuple(words[1:])
    return canvas.find(None), tuple(words)


def annotation_number(word: str) -> int | None:
    """The number that `3` or `#3` is."""
    digits = word.removeprefix("#")
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 10 else None


async def _find_numbers(canvas: CanvasSession, artifact: str, words: Sequence[str], kind: str = "") -> list[Json]:
    """The annotations with these numbers, all of them of the kind.

    Raises:
        CannotBeDone: one of them does not exist, or is of the other kind.
    """
    lists = [canvas.invocation.line(each, artifact) for each in ("comments", "suggestions")]
    advice = f"To list them: {' and '.join(lists)}"
    if not words:
        raise CannotBeDone("Give the number of an annotation, such as 3", advice)
    known = {each["number"]: each for each in (await read_review(canvas, artifact)).annotations}
    found = []
    for word in words:
        annotation = known.get(annotation_number(word) or 0)
        if annotation is None:
            raise CannotBeDone(f"{canvas.title(artifact)} has no annotation {word!r}", advice)
        if kind and annotation["kind"] != kind:
            other = "resolve" if kind == "suggestion" else "accept"
            instead = canvas.invocation.line(other, artifact, str(annotation["number"]))
            raise CannotBeDone(f"#{annotation['number']} is a {annotation['kind']}", f"Instead: {instead}")
        found.append(annotation)
    return found
