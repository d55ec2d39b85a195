"""What Starlette's routes can take of a path besides its own: `{name:anything}`."""

from __future__ import annotations

from starlette.convertors import Convertor, register_url_convertor

ANYTHING = "anything"


class _Anything(Convertor[str]):
    """All the rest of a path: unlike Starlette's `path`, line breaks too."""

    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor(ANYTHING, _Anything())
