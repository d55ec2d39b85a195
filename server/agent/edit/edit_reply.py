"""What of a model's reply to an edit is document text, while it streams in. Pure.

What comes first and last in a reply:

Rule 1: thinking in tags at its beginning is dropped: `thought.py`.
Rule 2: tags of the message that the model echoes are taken off, and what follows the passage in them is no document
        text: `markers.py`.
Rule 3: so is a code fence around the rest: `fences.py`.
Rule 4: if all that is left is the mark that stands for it (`deletion_mark`), the selection is to be deleted whole, its
        line break included. A reply without text is no answer. Blanks are text.

Line breaks:

Rule 5: if all lines of the artifact end in "\\r\\n", so do those of the reply.
Rule 6: where it replaces a selection that ended in a line break, it ends in the very same one; where it replaces one
        that did not, line breaks at its very end are left off, unless there is nothing else in it.
Rule 7: an insertion beside lines (`on_own_lines`) stands on lines of its own. Before them, or after a line break, it
        ends in a line break; after them it begins with one, and one at its very end is left off. What is missing is
        added, but to nothing nothing is added.
Rule 8: any other insertion stands as it is. But a fence cannot tell whether its text ends in a line break: if one was
        taken off, and the insertion begins a line on which more text follows, a line break is added.

Law: the joined results of `feed` and `flush` do not depend on how the reply is cut.
"""

from __future__ import annotations

import re
from typing import Final, Protocol

from a2a_canvas.server.agent.edit.edit_prompt import deletion_mark, on_own_lines
from a2a_canvas.server.agent.edit.fences import FENCE_LINE, Fences, has_fence, talk, wrappers
from a2a_canvas.server.agent.edit.leading_thinking import LeadingThinking
from a2a_canvas.server.agent.edit.markers import Markers
from a2a_canvas.server.agent.model import EditPrompt

_LINE_BEGIN: Final = re.compile(r"\r?\n")
_LINE_END: Final = re.compile(r"\r?\n\Z")
_BARE: Final = re.compile(r"(?<!\r)\n")


class EditReply:
    """Takes a reply in pieces, and gives the text that it makes of them.

    Args:
        passage: what the model was asked to edit.
        inside_fence: whether the selection stands in a fenced block, by the whole text before it.
    """

    def __init__(self, passage: EditPrompt, *, inside_fence: bool) -> None:
        self._thought = LeadingThinking(passage.selected)
        self._markers = Markers(passage)
        self._fences = Fences(
            wrappers(passage, inside_fence=inside_fence), talk(passage, inside_fence=inside_fence), passage.selected
        )
        self._deletion = _Deletion(deletion_mark(passage) if _replaces(passage) else "")
        self._ends = _ends(passage)
        self._windows = passage.line_end == "\r\n"
        self._held = ""  # "\r", for as long as "\n" may follow
        self._written = False

    @property
    def remarks(self) -> str:
        """What the model said after its text, without the blanks around it; known after `flush`."""
        return "\n\n".join(filter(None, (self._fences.remarks.strip(), self._markers.remarks.strip())))

    @property
    def alone(self) -> bool:
        """Whether the model returned the passage alone, as far as can be told; known after `flush`."""
        told_apart = self._thought.over and self._markers.alone and self._fences.alone
        return told_apart and not has_fence(self.remarks)

    @property
    def empty(self) -> bool:
        """Whether there is no text, nor the word that the selection is to be deleted; known after `flush`."""
        return not self._written and not self._deletion.asked

    def feed(self, delta: str) -> str:
        """The text that is certain once `delta` has come."""
        reply = self._held + self._markers.feed(self._thought.feed(delta))
        self._held = "\r" if reply.endswith("\r") else ""
        text = self._fences.feed(self._broken(reply.removesuffix("\r")))
        return self._seen(self._ends.feed(self._deletion.feed(text)))

    def flush(self) -> str:
        """The rest of the text. Nothing may come after it."""
        rest = self._held + self._markers.feed(self._thought.flush()) + self._markers.flush()
        text = self._fences.feed(self._broken(rest)) + self._fences.flush()
        text = self._ends.feed(self._deletion.feed(text) + self._deletion.flush())
        return self._seen(text + self._ends.flush(wrapped=self._fences.wrapped or self._markers.on_lines))

    def _seen(self, text: str) -> str:
        self._written = self._written or bool(text)
        return text

    def _broken(self, reply: str) -> str:
        return _BARE.sub("\r\n", reply) if self._windows else reply


class _Deletion:
    """Rule 4. Holds back what may be the mark; without one it holds nothing back.

    Attributes:
        asked: whether the text was the mark alone; known after `flush`.
    """

    def __init__(self, mark: str) -> None:
        self.asked = False
        self._mark = mark
        self._held = ""
        self._over = not mark

    def feed(self, text: str) -> str:
        if self._over:
            return text
        self._held += text
        if len(self._held) <= FENCE_LINE and self._mark.startswith(self._bare()):
            return ""
        self._over = True
        return self._held

    def flush(self) -> str:
        self.asked = not self._over and self._bare() == self._mark
        return "" if self._over or self.asked else self._held

    def _bare(self) -> str:
        return "".join(self._held.split()).casefold()


# ------------------------------------------------------------------------- line breaks


class _Ends(Protocol):
    """Gives a text the beginning and the end that it must have."""

    def feed(self, text: str) -> str: ...

    def flush(self, *, wrapped: bool) -> str: ...


def _ends(passage: EditPrompt) -> _Ends:
    if _replaces(passage):
        return _Replacement(passage.selected)
    if on_own_lines(passage):
        after = passage.strategy == "insert_after" and not passage.selected.endswith("\n")
        return _LinesAfter(passage.line_end) if after else _LinesBefore(passage.line_end)
    return _Insertion(passage.line_end if _begins_line(passage) else "")


def _replaces(passage: EditPrompt) -> bool:
    return passage.strategy == "replace" and bool(passage.selected)


def _begins_line(passage: EditPrompt) -> bool:
    """Whether an insertion comes between a line's beginning and the text of that line."""
    around = (passage.before, passage.selected + passage.after)
    if passage.strategy == "insert_after":
        around = (passage.before + passage.selected, passage.after)
    left, right = around
    return (not left or left.endswith("\n")) and bool(right) and not right.startswith(("\n", "\r\n"))


class _Replacement:
    """Rule 6."""

    def __init__(self, selected: str) -> None:
        end = _LINE_END.search(selected)
        self._line_end = end[0] if end else ""
        self._held: list[str] = []  # line breaks at the end, as far as it has come
        self._begun = False

    def feed(self, text: str) -> str:
        certain = text.rstrip("\r\n")
        if not certain:
            self._held.append(text)
            return ""
        self._begun = True
        held, self._held = "".join(self._held), [text[len(certain) :]]
        return held + certain

    def flush(self, *, wrapped: bool) -> str:
        held = "".join(self._held)
        if not self._begun and (not held or not self._line_end):
            return held
        return _LINE_END.sub("", held) + self._line_end if self._line_end else _without_line_ends(held)


class _Insertion:
    """Rule 8."""

    def __init__(self, line_end: str) -> None:
        self._line_end = line_end
        self._begun = False

    def feed(self, text: str) -> str:
        self._begun = self._begun or bool(text)
        return text

    def flush(self, *, wrapped: bool) -> str:
        return self._line_end if wrapped and self._begun else ""


class _LinesBefore:
    """Rule 7, for a text that must end in a line break."""

    def __init__(self, line_end: str) -> None:
        self._line_end = line_end
        self._last = ""

    def feed(self, text: str) -> str:
        self._last = text[-1:] or self._last
        return text

    def flush(self, *, wrapped: bool) -> str:
        return self._line_end if self._last not in ("", "\n") else ""


class _LinesAfter:
    """Rule 7, for a text that must begin with a line break."""

    def __init__(self, line_end: str) -> None:
        self._line_end = line_end
        self._begun = False
        self._held = ""

    def feed(self, text: str) -> str:
        begin = "" if self._begun or not text else self._begin(text)
        body = self._held + text.removeprefix(begin)
        end = _LINE_END.search(body)
        self._held = end[0] if end else ""
        return begin + body.removesuffix(self._held)

    def flush(self, *, wrapped: bool) -> str:
        return ""

    def _begin(self, text: str) -> str:
        self._begun = True
        found = _LINE_BEGIN.match(text)
        return found[0] if found else self._line_end


def _without_line_ends(text: str) -> str:
    at = len(text)
    while text.endswith("\n", 0, at):
        at -= 2 if text.endswith("\r\n", 0, at) else 1
    return text[:at]
