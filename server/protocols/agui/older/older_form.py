"""The body of the older request, and how it is recognised. Pure.

    {message, thread_id?, run_id?, selectedText?: {start, end, text, lineStart, lineEnd},
     artifact?: {currentIndex, contents: [{index, type, code | fullMarkdown, language, title}]}}

Rule 1: in place of `message` it may have the `messages` of a RunAgentInput, of which the last one counts. Their ids are
        optional. `threadId` and `runId` mean the same as `thread_id` and `run_id`.
Rule 2: a body with `messages` is of this form if it names an artifact or a selection, at the top or in AG-UI's shared
        `state`. An answer to an interrupt and a canvas operation in `forwardedProps` need neither, so a body with one
        of them is a RunAgentInput. A selection is never ignored: beside one of these it is refused.
Rule 3: unknown fields are ignored: such clients send more than this server needs. Known fields are read strictly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.alias_generators import to_camel

from a2a_canvas.server.protocols.a2a_v1.errors import invalid_field
from a2a_canvas.server.protocols.agui.input import check_id, parse
from a2a_canvas.server.protocols.agui.older.older_state import TEXT_FIELD
from a2a_canvas.server.wire import AGENTSTACK, CANVAS
from a2a_canvas.store.models import JsonValue


class _OlderForm(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, alias_generator=to_camel)


class SelectedTextForm(_OlderForm):
    """A selection, by offsets (UTF-16), by lines, or both. Its rules are those of an operation's selection."""

    start: int | None = None
    end: int | None = None
    text: str | None = None
    line_start: int | None = None
    line_end: int | None = None


class OlderRequest(_OlderForm):
    """The body. Its artifact is parsed later, when it is known whether the thread has one."""

    message: str | None = None
    messages: list[dict[str, Any]] = Field(default_factory=list)
    context: Any = None
    thread_id: str = Field("", validation_alias=AliasChoices("thread_id", "threadId"))
    run_id: str | None = Field(None, validation_alias=AliasChoices("run_id", "runId"))
    artifact: dict[str, Any] | None = None
    selected_text: SelectedTextForm | None = None

    @field_validator("message")
    @classmethod
    def _is_not_blank(cls, message: str | None) -> str | None:
        if message is not None and not message.strip():
            raise ValueError("must say something")
        return message

    @property
    def message_field(self) -> str:
        """The field of the message."""
        return "message" if self.message is not None else f"messages.{len(self.messages) - 1}.content"

    @property
    def shows_messages(self) -> bool:
        """Whether a MESSAGES_SNAPSHOT can name every message that the client shows."""
        return bool(self.messages) and all("id" in message for message in self.messages)

    def run_agent_input(self, run_id: str, operation: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """The body as a RunAgentInput. A message without an id gets the run's."""
        given = self.messages if self.message is None else [{"role": "user", "content": self.message}]
        last = len(given) - 1
        numbered = enumerate(given)
        messages = [{"id": run_id if n == last else f"{run_id}:{n}", **message} for n, message in numbered]
        return {
            "threadId": self.thread_id,
            "runId": run_id,
            "messages": messages,
            "context": self.context,
            "forwardedProps": {CANVAS: dict(operation)} if operation else {},
        }

    def without_artifact(self) -> OlderRequest:
        """The body without artifact and selection: it is about the thread's own artifact."""
        return self.model_copy(update={"artifact": None, "selected_text": None})


class ContentForm(_OlderForm):
    index: int
    type: Literal["code", "text"]
    code: str | None = None
    full_markdown: str | None = None
    language: str | None = None
    title: str | None = None

    @model_validator(mode="after")
    def _has_its_text(self) -> ContentForm:
        if self._own_text is None:
            raise ValueError(f"needs {TEXT_FIELD[self.type]}, because its type is {self.type}")
        return self

    @property
    def _own_text(self) -> str | None:
        text: str | None = getattr(self, self.text_field)
        return text

    @property
    def text_field(self) -> str:
        """The name of the field with its text."""
        return "code" if self.type == "code" else "full_markdown"

    @property
    def text(self) -> str:
        return self._own_text or ""

    @property
    def head(self) -> dict[str, JsonValue]:
        """The fields that are set, except index and text."""
        fields = {"type": self.type, "language": self.language, "title": self.title}
        return {name: value for name, value in fields.items() if value is not None}

    @property
    def kind(self) -> dict[str, JsonValue]:
        """Its type, and its language if there is one: a text part keeps them as metadata."""
        return {name: value for name, value in self.head.items() if name != "title"}


class ArtifactForm(_OlderForm):
    contents: list[Any] = Field(min_length=1)
    current_index: int


def is_older(value: Mapping[str, JsonValue]) -> bool:
    """Whether a body is of the older form (rule 2)."""
    if "messages" not in value:
        return "message" in value
    if value.get("resume") or _has_operation(value):
        return False
    without_ids = "thread_id" in value and any(_lacks_id(each) for each in _items(value["messages"]))
    return without_ids or any(name in value for name in _CANVAS_FIELDS) or bool(_shared_state(value))


def check_no_selection(value: Mapping[str, JsonValue]) -> None:
    """Raises `InvalidParamsError` for a selection in a body that is not of the older form (rule 2)."""
    if "messages" not in value:
        return  # `run_input` reports what is missing
    for within, fields in (("", value), ("state.", _shared_state(value))):
        if fields.get("selectedText") is not None:
            other = "resume" if value.get("resume") else "an operation in forwardedProps"
            raise invalid_field(f"{within}selectedText", f"must be left out, because the body has {other}")


def older_request(value: Mapping[str, JsonValue], thread_id: str = "") -> OlderRequest:
    """Parse a body.

    Args:
        thread_id: used if the body has none.

    Raises:
        InvalidParamsError: it is not of the older form.
    """
    given = {**value, **{name: shared for name, shared in _shared_state(value).items() if value.get(name) is None}}
    if given.get("thread_id", given.get("threadId")) is None:
        given = {**given, "thread_id": thread_id}
    request = parse(OlderRequest, given)
    if request.message is None and "messages" not in given:
        raise invalid_field("message", "is missing")
    check_id("thread_id", request.thread_id)
    if request.run_id is not None:
        check_id("run_id", request.run_id)
    return request


_CANVAS_FIELDS = ("artifact", "selectedText")


def _shared_state(value: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """The artifact and the selection in AG-UI's shared state.

    Another application's `artifact` may have the same name.
    """
    state = value.get("state")
    if not isinstance(state, dict):
        return {}
    artifact, selected = (state.get(name) for name in _CANVAS_FIELDS)
    shared = {"artifact": artifact} if isinstance(artifact, dict) and "contents" in artifact else {}
    return shared | ({} if selected in (None, "") else {"selectedText": selected})


def _has_operation(value: Mapping[str, JsonValue]) -> bool:
    forwarded = value.get("forwardedProps", value.get("forwarded_props"))
    return isinstance(forwarded, dict) and any(forwarded.get(uri) is not None for uri in (CANVAS, AGENTSTACK))


def _items(value: JsonValue) -> Sequence[JsonValue]:
    return value if isinstance(value, list) else ()


def _lacks_id(message: JsonValue) -> bool:
    return isinstance(message, dict) and "id" not in message
