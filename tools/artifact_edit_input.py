"""What the model is told of `artifact_edit`, and the shape of its input."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from a2a_canvas.store.text.unicode import replace_surrogates
from a2a_canvas.tools.artifact_input import ArtifactId

DESCRIPTION = """\
Change one passage of an artifact's text and nothing else. The user watches the new text grow in its place.

Write artifact_id, old_text and new_text in this order.
- old_text is the passage as it stands now, character for character: spaces, indentation and line breaks too. Quote
  enough, a whole sentence or a few lines, that it occurs exactly once in the text.
- new_text takes its place. An empty one deletes the passage. To insert, quote a neighbouring passage as old_text and
  repeat it in new_text.
- Write new_text out, whole: never "… rest unchanged …".
- Every call makes a new version. For changes in several places, make several calls.
Use it for small changes in the middle of a text. To add at the end, call artifact_update with append=true; when more
than four places or a third of the text change, write it again with append=false; to go back, call artifact_restore.\
"""

EMPTY = (
    "must not be empty. To add to the end of the text, call artifact_update with append=true; "
    "to insert elsewhere, quote a neighbouring passage and repeat it in new_text"
)


def _not_empty(text: str) -> str:
    if not text:
        raise ValueError(EMPTY)
    return text


OldText = Annotated[str, AfterValidator(_not_empty), AfterValidator(replace_surrogates)]


class ArtifactEditInput(BaseModel):
    """The whole input. The order of the fields is the order in which the model should write them."""

    model_config = ConfigDict(extra="ignore", strict=True)

    artifact_id: ArtifactId
    old_text: OldText = Field(description="The passage to be changed, exactly as it stands; it must occur once.")
    new_text: Annotated[str, AfterValidator(replace_surrogates)] = Field(description="What takes its place.")


class EditHead(BaseModel):
    """What says where the edit goes, as it comes in: each field is checked before anything is done with it."""

    model_config = ConfigDict(strict=True)

    artifact_id: ArtifactId | None = None
    old_text: OldText | None = None

    def knowing(self, field: str, value: object) -> EditHead:
        return self.model_copy(update={field: getattr(EditHead.model_validate({field: value}), field)})
