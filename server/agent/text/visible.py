"""Removes thinking and tool tags that models leak into their replies (docs/turn.md).

Rule 1: an element of `ELEMENTS` or `PAIRS` is removed with its content; nested elements of its name are counted. A
        closing tag that closes nothing is removed alone.
Rule 2: a token of `TOKENS` is removed alone.
Rule 3: nothing is removed in Markdown code (`CodeFinder`). Hidden content is not Markdown.
Rule 4: removed text counts as never written. Markdown rules apply to the shown text, pieces that a removal
        joins into a tag are that tag, and so `visible(visible(text)) == visible(text)`.
Rule 5: whitespace stays; only where nothing else was shown before a removal, it is dropped after it.
Rule 6: what never closes is hidden to the end of the block, if it is of `PAIRS` or nothing was shown before it (a reply
        that was cut off while the model thought). But an element of `ELEMENTS` in the middle of prose was prose ("I
        added a <reasoning> section"): when the block ends, it and what follows are restored as written.
Rule 7: a tag is at most `MAX_TAG_LENGTH` characters, and after its first holds no `<`, `[`, ◁, `, ~ or line break.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from a2a_canvas.server.agent.text.markdown_code import CodeFinder

THINKING: Final = (  # also removed where the reply is document text (`edit_reply.py`), at its beginning
    "think",  # DeepSeek, Qwen, GLM, Kimi K2, Granite, MiniMax, Seed; most reasoning models
    "thinking",  # Claude when prompted for it, Reflection
)

ELEMENTS: Final = (  # <name …>…</name>, in any case, with any attributes
    *THINKING,
    "antThinking",  # Claude beside its artifacts
    "thought",  # EXAONE, Gemini when prompted for it
    "reasoning",  # models prompted to reason aloud
    "scratchpad",  # Claude when prompted for it, Hermes
    "longcat_think",  # LongCat
    "tool_call",  # Hermes, Qwen, GLM, Granite, MiniMax, Seed
    "tool_calls",  # Hunyuan, Jamba, DeepSeek V4
    "tool_code",  # Gemini, Gemma
    "tool_use",  # Claude, naming the block it would send
    "tool_result",  # Claude, imagining the answer
    "tool_response",  # Hermes and Qwen, imagining the answer
    "longcat_tool_call",  # LongCat
    "function_call",  # Granite Code
    "function_calls",  # Claude 2 and 3, Olmo 3, DeepSeek V3.2
    "function_results",  # Claude 2 and 3, imagining the answer
    "functioncall",  # Glaive and what was trained on its data
    "invoke",  # Claude and DeepSeek V3.2, when the element around it is lost
    "function=",  # Llama 3 and Qwen Coder: <function=name>…</function>; a bare <function> stays
)

NAMESPACES: Final = (  # in front of any of these names
    "antml:",  # Claude
    "minimax:",  # MiniMax M2
    "mm:",  # MiniMax M3
    "seed:",  # Seed OSS
    "atem:",  # Muse
    "｜DSML｜",  # DeepSeek V3.2 and V4
    "｜｜DSML｜｜",  # the same, as some hosts print it
)

PAIRS: Final[Mapping[str, str | None]] = {  # what opens -> what closes, both to the letter
    "[THINK]": "[/THINK]",  # Magistral
    "[TOOL_CALLS]": None,  # Mistral; nothing closes it
    "◁think▷": "◁/think▷",  # Kimi VL, Kimi Dev
    "<|START_THINKING|>": "<|END_THINKING|>",  # Command A, Command R7B
    "<|START_ACTION|>": "<|END_ACTION|>",  # Command A, Command R7B
    "<|channel>": "<channel|>",  # Gemma 4 thinking
    "<|tool_call>": "<tool_call|>",  # Gemma 4
    "<start_function_call>": "<end_function_call>",  # FunctionGemma
    "<|tool_call|>": "<|/tool_call|>",  # Phi-4 mini; Granite 3, which never closes it
    "<|tool_call_start|>": "<|tool_call_end|>",  # LFM2
    "<|python_tag|>": "<|eom_id|>",  # Llama 3
    "<|python_start|>": "<|python_end|>",  # Llama 4
    "<|start_header_id|>": "<|end_header_id|>",  # Llama 3: the role
    "<|header_start|>": "<|header_end|>",  # Llama 4: the role
    "<|action_start|>": "<|action_end|>",  # InternLM
    "<|start|>": "<|message|>",  # gpt-oss: role and channel; the channels are treated alike
    "<|channel|>": "<|message|>",  # gpt-oss: the channel, when the role is not repeated
    "<|tool_calls_section_begin|>": "<|tool_calls_section_end|>",  # Kimi K2
    "<|tool_call_begin|>": "<|tool_call_end|>",  # Kimi K2, when the section around it is lost
    "<｜tool▁calls▁begin｜>": "<｜tool▁calls▁end｜>",  # DeepSeek V3, R1
    "<｜tool▁call▁begin｜>": "<｜tool▁call▁end｜>",  # the same, when the element around it is lost
    "<｜tool▁outputs▁begin｜>": "<｜tool▁outputs▁end｜>",  # DeepSeek V3, imagining the answer
    "<TOOLCALL>": "</TOOLCALL>",  # Nemotron; to the letter, for List<ToolCall> is prose
}

TOKENS: Final = (
    *("<|im_start|>", "<|im_end|>", "<|im_sep|>", "<|endoftext|>"),  # ChatML: Qwen, Yi, InternLM, Phi-4
    *("<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>", "<|eot|>"),  # Llama 3 and 4
    *("<|system|>", "<|user|>", "<|assistant|>", "<|observation|>"),  # Phi, GLM
    *("<|begin_of_box|>", "<|end_of_box|>"),  # GLM, around an answer that is meant to be read
    *("<|end|>", "<|return|>", "<|call|>"),  # gpt-oss; <|end|> also Phi
    *("<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>", "<|CHATBOT_TOKEN|>"),  # Command
    *("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"),  # Command: the reply
    *("<start_of_turn>", "<end_of_turn>", "<|turn>", "<turn|>"),  # Gemma 3 and 4
    *("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>"),  # DeepSeek
    *("[INST]", "[/INST]"),  # Mistral, Llama 2
)

MAX_TAG_LENGTH: Final = 256
"""Characters of the longest tag, attributes and all."""

_STARTS: Final = frozenset("<[◁")
_PIECES: Final = re.compile(r"[<\[◁]|`+|~+|\n|[^<\[◁`~\n>\]▷]+[>\]▷]?|[>\]▷]")
_SHAPE: Final = re.compile(r"<(?P<slash>/?)(?P<name>[^\s/=>`~]*=?)(?P<rest>[^>`~\n]*)(?P<end>>?)")


class _Tag(NamedTuple):
    kind: Literal["open", "close", "alone"]
    element: str


_NAMES: Final = {(space + name).lower(): name for space in ("", *NAMESPACES) for name in ELEMENTS}
_LITERALS: Final = (
    {token: _Tag("alone", token) for token in TOKENS}
    | {shut: _Tag("close", opening) for opening, shut in PAIRS.items() if shut}
    | {opening: _Tag("open", opening) for opening in PAIRS}
)
_NAME_PREFIXES: Final = frozenset(name[:end] for name in _NAMES for end in range(len(name) + 1))
_LITERAL_PREFIXES: Final = frozenset(token[:end] for token in _LITERALS for end in range(1, len(token)))


def _tag(text: str, inside: str = "") -> _Tag | None:
    """The tag that `text` is, whole; `inside` names the element around it, if any."""
    if text == PAIRS.get(inside):
        return _Tag("close", inside)
    shape = _SHAPE.fullmatch(text)
    if text in _LITERALS or shape is None or not shape["end"] or len(text) > MAX_TAG_LENGTH:
        return _LITERALS.get(text)
    name = shape["name"].lower()
    if shape["slash"]:
        element = inside if inside == name + "=" else _NAMES.get(name)
        return _Tag("close", element) if element else None
    element = _NAMES.get(name)
    return _Tag("alone" if shape["rest"].endswith("/") else "open", element) if element else None


def _may_become_tag(text: str) -> bool:
    if text in _LITERAL_PREFIXES:
        return True
    shape = _SHAPE.fullmatch(text)
    if shape is None or shape["end"] or len(text) >= MAX_TAG_LENGTH:
        return False
    return shape["name"].lower() in (_NAMES if shape["rest"] else _NAME_PREFIXES)


class VisibleText:
    """The visible text of one block, while it streams in.

    However the block is cut, the joined results of `feed` and `finish` are `visible` of the whole. Only a possible tag
    is held back (under `MAX_TAG_LENGTH` characters, or twice that for a tag within another), and hidden text that may
    be prose (rule 6). A delta costs its own length and at most theirs.
    """

    def __init__(self) -> None:
        self._shown = CodeFinder()  # has read what was shown
        self._open = ""  # the end of the text, while it may become a tag
        self._stub = ""  # the text right before it, which may become a tag once it is removed
        self._hidden, self._depth = "", 0  # the element that hides the following text, and its nesting depth
        self._inner = ""  # the tag begun in it
        self._kept: list[str] = []  # all of it, tag first, if it may be prose
        self._began = self._removed = False  # something but whitespace was shown; something was removed

    def feed(self, delta: str) -> str:
        """The text to show now; empty if there is none."""
        return "".join(map(self._take, _PIECES.findall(delta)))

    def finish(self) -> str:
        """The rest at the end of the block: held-back text that is not a tag, or is prose."""
        prose, self._kept = "".join(self._kept), []
        return self._release() + self._show(prose)

    def _take(self, piece: str) -> str:
        if self._hidden:
            return self._skip(piece)
        if piece in _STARTS and not self._shown.code:
            shown = self._show(self._stub)
            self._stub, self._open = self._open, piece
            return shown
        if not self._open:
            return self._show(piece)
        text = self._open + piece
        tag = _tag(text)
        if tag is not None:
            return self._remove(tag, text)
        if _may_become_tag(text):
            self._open = text
            return ""
        return self._release() + self._show(piece)

    def _remove(self, tag: _Tag, text: str) -> str:
        self._removed = True
        self._open, self._stub = self._stub, ""
        if tag.kind == "open":
            self._hidden, self._depth, self._inner = tag.element, 1, ""
            self._kept = [text] if (self._began or self._open) and tag.element not in PAIRS else []
        return ""

    def _skip(self, piece: str) -> str:
        if self._kept:
            self._kept.append(piece)
        if piece in _STARTS:
            self._inner = piece
            return ""
        self._inner = (self._inner + piece)[: MAX_TAG_LENGTH + 1] if self._inner else ""
        tag = _tag(self._inner, self._hidden)
        if tag is not None and tag.element == self._hidden:
            self._depth += {"open": 1, "close": -1, "alone": 0}[tag.kind]
            if not self._depth:
                self._hidden, self._kept = "", []
        return ""

    def _release(self) -> str:
        shown = self._show(self._stub) + self._show(self._open)
        self._stub = self._open = ""
        return shown

    def _show(self, text: str) -> str:
        if self._removed and not self._began:
            text = text.lstrip()
        self._began = self._began or bool(text.strip())
        self._shown.read(text)
        return text


def visible(text: str) -> str:
    """The visible text of a whole block."""
    block = VisibleText()
    return block.feed(text) + block.finish()
