"""What a user means by an id, a name, or the beginning of one. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches

from a2a_canvas.server.client.conversation.errors import CannotBeDone
from a2a_canvas.server.client.screen.display import one_line, short

MAX_CANDIDATES = 6


class UnknownName(CannotBeDone):
    """There is nothing of this id or name.

    Attributes:
        typed: what was typed.
        others: the end of a sentence, with what there is.
    """

    def __init__(self, typed: str, what: str, others: str) -> None:
        super().__init__(f"There is no {what} {typed!r}{others}")
        self.typed, self.others = typed, others


def resolve(typed: str, known: Mapping[str, str], what: str) -> str:
    """The id of the one thing that has this id, else this name, else an id or a name that begins so.

    Args:
        known: the names by the ids.
        what: what kind of thing it is, for the error.

    Raises:
        UnknownName: there is none.
        CannotBeDone: there are several.
    """
    fitting: tuple[Callable[[str], bool], ...] = (
        typed.__eq__,
        lambda text: text.casefold().startswith(typed.casefold()),
    )
    for fits in fitting:
        for found in ([id_ for id_ in known if fits(id_)], [id_ for id_, name in known.items() if name and fits(name)]):
            if len(found) == 1:
                return found[0]
            if found:
                raise CannotBeDone(
                    f"{typed!r} may be any of several {what}s: {format_names(found, known)}. Type more of it"
                )
    others = did_you_mean(typed, known) or (f". There are: {format_names([*known], known)}" if known else "")
    raise UnknownName(typed, what, others)


def did_you_mean(typed: str, known: Mapping[str, str]) -> str:
    """The ends of a sentence about what is not there: the nearest that is; empty if nothing is near."""
    texts = {text.casefold(): id_ for id_, name in known.items() for text in (name, id_) if text}
    near = [*dict.fromkeys(texts[text] for text in get_close_matches(typed.casefold(), texts, 3))]
    return f". Did you mean {format_names(near, known)}?" if near else ""


def format_names(ids: list[str], known: Mapping[str, str]) -> str:
    """Things in a sentence."""
    named = [one_line(f"{id_} ({known[id_]})" if known[id_] not in ("", id_) else short(id_)) for id_ in ids]
    return ", ".join(named[:MAX_CANDIDATES] + ["…"] * (len(named) > MAX_CANDIDATES))
