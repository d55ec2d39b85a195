"""What pydantic found wrong, in our words."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from a2a_canvas.store.text.unicode import valid_id
from a2a_canvas.tools.faults import reason_of


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


class Form(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    name: Annotated[str, Field(min_length=1, max_length=5), AfterValidator(valid_id)] = "x"
    count: Annotated[int, Field(ge=1, le=9)] = 1
    exact: bool = True
    size: float = 1.0
    tags: list[str] = []
    pet: Annotated[Cat | Dog, Field(discriminator="kind")] = Cat(kind="cat")
    unit: Literal["utf16", "codepoint"] = "utf16"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"name": 1}, "is 1 and must be a string"),
        ({"name": ""}, "must not be empty"),
        ({"name": "abcdef"}, "must not be longer than 5 characters"),
        ({"name": "\0"}, "must not contain the character NUL"),
        ({"count": "1"}, "is '1' and must be a whole number"),
        ({"count": 0}, "is 0 and must be at least 1"),
        ({"count": 10}, "is 10 and must be at most 9"),
        ({"exact": "yes"}, "is 'yes' and must be true or false"),
        ({"size": None}, "is null and must be a number"),
        ({"tags": {}}, "is an object and must be a list"),
        ({"unit": "byte"}, "is 'byte' and must be 'utf16' or 'codepoint'"),
        ({"pet": []}, "is a list and must be an object"),
        ({"pet": {}}, "has no kind"),
        ({"pet": {"kind": "cow"}}, "has kind 'cow', which must be one of 'cat', 'dog'"),
        ({"colour": 1}, "is unknown"),
    ],
)
def test_a_reason_follows_the_name_of_its_field(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Form.model_validate(given)
    assert [reason_of(fault) for fault in caught.value.errors()] == [says]
