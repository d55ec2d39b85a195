"""What the model is told of `artifact_update`, and the shape of its input."""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from a2a_canvas.store.text.unicode import valid_id
from a2a_canvas.tools.part_inputs import Encodable, PartInput

DESCRIPTION = """\
Write an artifact: a document, program, file or data set that the user watches growing while you write it.

Write `append` and `artifact.artifact_id` first, then the parts.
- append=false replaces, append=true adds to what is there. Appending to an artifact that does not exist makes it.
- Which part an update means is decided by its kind (text, file, data), because parts have no ids:
  an artifact has at most one text part. All text parts of one update are joined, in order, into one; append joins
  them to the end of the existing text. Files and data are kept as separate items, in order; append adds items.
- append=false replaces a kind as a whole: all text, or all files, or all data. Kinds you do not name stay.
- To tell items of one kind apart, give them metadata such as {"partType": "summary"}, or keep a collection inside
  one data part, and write the whole collection when it changes.
- All text of an artifact has one mimeType.
- last_chunk=true says that the artifact is finished for now; it becomes a new version.
- append=false needs the whole text: never "… rest unchanged …", never a note that a text was left out.
To change a passage in the middle of a text, call artifact_edit instead of writing the text again.
A text of more than about 5,000 words goes in several calls, one per answer, with append=true from the second on.\
"""


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


ArtifactId = Annotated[
    str,
    Field(max_length=200, description="Short and stable, for example 'report'. The same id means the same artifact."),
    AfterValidator(_not_blank),
    AfterValidator(valid_id),
]


def _truth(value: object) -> object:
    """Some models write the words in quotes."""
    return {"true": True, "false": False}.get(value.strip().lower(), value) if isinstance(value, str) else value


def _from_text(value: object) -> object:
    """Some models write an object or a list as JSON in a string; what is not JSON is refused as the string it is."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


Bool = Annotated[bool, BeforeValidator(_truth)]


class ArtifactInput(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    artifact_id: ArtifactId
    name: Encodable | None = Field(default=None, description="What the user sees, for example 'report.md'.")
    description: Encodable | None = Field(default=None, description="One sentence.")
    parts: Annotated[list[PartInput], Field(min_length=1), BeforeValidator(_from_text)]


class ArtifactUpdateInput(BaseModel):
    """The whole input. The order of the fields is the order in which the model should write them."""

    model_config = ConfigDict(extra="ignore", strict=True)

    append: Bool = Field(description="false: replace; true: add to the end.")
    last_chunk: Bool = Field(default=False, description="true: the artifact is finished for now.")
    artifact: Annotated[ArtifactInput, BeforeValidator(_from_text)]


class UpdateHead(BaseModel):
    """What stands beside the parts, as it comes in: each field is checked before anything is done with it."""

    model_config = ConfigDict(strict=True)

    append: Bool | None = None
    last_chunk: Bool = False
    artifact_id: ArtifactId | None = None
    name: Encodable | None = None
    description: Encodable | None = None

    @property
    def addressed(self) -> bool:
        """Whether it is known where text goes, and what becomes of the text that is there."""
        return self.append is not None and self.artifact_id is not None

    def knowing(self, field: str, value: object) -> UpdateHead:
        return self.model_copy(update={field: getattr(UpdateHead.model_validate({field: value}), field)})
