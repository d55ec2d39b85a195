"""The words of a request that the ready-made text it gets does not follow: “vegan”, “eight lines”. Pure.

Rule: a word is followed if the rule's pattern, its first words or the document have it, in any form. So are the words
        with which people ask for a text. Requests in other languages are not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from a2a_canvas.server.agent.models.script.current_turn import ScriptTurn
from a2a_canvas.server.agent.models.script.placeholders import fill, parse_number

MAX_SHOWN: Final = 5

_LANGUAGE: Final = r"\bin (?:Chinese|Dutch|French|German|Italian|Japanese|Portuguese|Russian|Spanish)\b"
_WORD: Final = re.compile(
    rf"{_LANGUAGE}|\b(?:without|not?)(?: (?:an?|any|the))? \w+|[^\W\d_]{{2,}}|\d+(?:[.,]\d+)?", re.IGNORECASE
)
_ASKING: Final = re.compile(
    r"""
    about | an | and | any | are | as | asking | at | be | boss | build | but | by | can | catchy | checklist
    | compose | could | cover | create | describe | design | develop | do | document | documents | draft |
    draw | file | finds | for | from | generate | get | give | good | great | have | hello | help | hey | hi |
    hour | hours | how | imagine | in | into | invent | is | it | just | keeper | kind | let | like | little |
    long | made | make | me | minute | minutes | mum | my | need | new | nice | now | of | ok | okay | on |
    one | or | our | outline | piece | plan | please | prepare | produce | project | quick | quickly | real |
    sample | say | script | short | show | simple | small | so | some | start | string | table | tell | text |
    that | the | their | them | then | there | these | think | this | title | to | trip | up | us | useful |
    want | we | web | what | when | which | who | why | will | with | would | write | writing | you | your
    """,
    re.IGNORECASE | re.VERBOSE,
)
_FOREIGN: Final = re.compile(r"[^\x00-\x7f’‘“”–…]|\b(?:eine?n?|der|die|das|un|una|une|la|le|les|de)\b", re.IGNORECASE)


def ignored_words(turn: ScriptTurn) -> tuple[str, ...]:
    """The words, in order, each once; empty if its rule has no documents."""
    written = [document for one in turn.rounds for document in one.write]
    if not written or not turn.rule or not turn.rule.match.text or _FOREIGN.search(turn.text):
        return ()
    groups = {name: re.sub(_LANGUAGE, "", text, flags=re.IGNORECASE) for name, text in (turn.groups or {}).items()}
    pattern = turn.rule.match.text.pattern.replace("\\b", " ")
    shown = (fill(text, groups) for each in written for text in (each.name, each.text))
    known = frozenset(_words(pattern, fill(turn.rounds[0].text, groups), *groups.values(), *shown))
    words = dict.fromkeys(_WORD.findall(turn.text))
    return tuple(word for word in words if not _ASKING.fullmatch(word) and not _in(word, known))


def _words(*texts: str) -> Iterable[str]:
    """The words in lower case, numbers in digits."""
    words = (word.casefold() for text in texts for word in _WORD.findall(text))
    return (str(parse_number(word)) if parse_number(word) > 1 else word for word in words)


def _in(word: str, known: frozenset[str]) -> bool:
    """Whether it is known, perhaps in another form: “resizes” by “resizing”."""
    [plain] = _words(word)
    stem = plain[: max(4, len(plain) - 2)]
    return plain in known or (len(plain) > 3 and any(each.startswith(stem) for each in known))
