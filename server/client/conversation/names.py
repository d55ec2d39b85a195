"""Resolves an id, a name, or the beginning of one. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches

from a2a_canvas.server.client.conversation.errors import CannotBeDone
from a2a_canvas.server.client.screen.display import one_line, short

MAX_CANDIDATES = 6


class UnknownName(CannotBeDone):
    """No id or name matches.

    Attributes:
        typed: by the user.
        others: the end of a sentence that lists the existing names.
    """

    def __init__(self, typed: str, what: str, others: str) -> None:
        super().__init__(f"There is no {what} {typed!r}{others}")
        self.typed, self.others = typed, others


def resolve(typed: str, known: Mapping[str, str], what: str) -> str:
    """The only id that matches: by id, else by name, else by the beginning of an id or a name.

    Args:
        known: the names by the ids.
        what: the kind of thing, for the error.

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
    """The end of a sentence that suggests the nearest names; empty if none is near."""
    texts = {text.casefold(): id_ for id_, name in known.items() for text in (name, id_) if text}
    near = [*dict.fromkeys(texts[text] for text in get_close_matches(typed.casefold(), texts, 3))]
    return f". Did you mean {format_names(near, known)}?" if near else ""


def format_names(ids: list[str], known: Mapping[str, str]) -> str:
    """Ids and names as a list in a sentence."""
    named = [one_line(f"{id_} ({known[id_]})" if known[id_] not in ("", id_) else short(id_)) for id_ in ids]
    return ", ".join(named[:MAX_CANDIDATES] + ["…"] * (len(named) > MAX_CANDIDATES))
