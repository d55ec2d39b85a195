"""The edit of a selection, as an agent's function sees it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from a2a_canvas.server.agent.model import EditPrompt, ModelRequest, ModelText
from a2a_canvas.store.edit_events import Strategy
from a2a_canvas.tools.functions.canvas_artifact import CanvasArtifact


@dataclass(frozen=True, slots=True)
class Edit:
    """What a user asks for: the new text of a passage.

    Attributes:
        instruction: of the user.
        passage: the selected text; empty if a place is selected, where text is to be inserted.
        before, after: some of the text around it, as context.
        outline: of the document, with the numbers of lines; may be empty.
        artifact: the document, to be read.
        name, language: of the document; the language is empty if unknown.
        place: of the passage, as "lines 3-5 of 120".
        strategy: whether the text replaces the passage, or is inserted before or after it.
        deletion_mark: the text that deletes the passage: an empty one changes nothing.
        system_prompt, user_prompt: ask a language model for the text, as this server asks its own model.
    """

    instruction: str
    passage: str
    before: str
    after: str
    outline: str
    artifact: CanvasArtifact
    name: str
    language: str
    place: str
    strategy: Strategy
    deletion_mark: str
    system_prompt: str
    user_prompt: str

    @property
    def prompt(self) -> str:
        """Both prompts as one text, for an agent that has a system prompt of its own."""
        return f"{self.system_prompt}\n\n{self.user_prompt}"


def to_edit(request: ModelRequest, prompt: EditPrompt, artifact: CanvasArtifact) -> Edit:
    """The edit that a model's request asks for."""
    content = (each for message in request.messages for each in message.content)
    return Edit(
        prompt.instruction,
        prompt.selected,
        prompt.before,
        prompt.after,
        prompt.outline,
        artifact,
        prompt.name,
        prompt.language,
        prompt.place,
        prompt.strategy,
        prompt.deletion_mark,
        request.system,
        "\n\n".join(each.text for each in content if isinstance(each, ModelText)),
    )
