"""docs/deploy.md: the application can be made as shown, and its pins are those of the image."""

from __future__ import annotations

import re
from typing import Any

from starlette.applications import Starlette

import a2a_canvas
from tests.docs.pages import ROOT, blocks, page, section

PAGE = page("deploy")


def test_the_application_can_be_made_as_shown() -> None:
    names: dict[str, Any] = {}
    [code] = blocks(PAGE, "python")
    exec(code, names)
    assert isinstance(names["app"], Starlette)
    told = re.findall(r"`(\w+)`", section(PAGE, "As a Python package").split("public names are")[1].split(";")[0])
    assert set(told) == set(a2a_canvas.__all__)


def test_what_is_pinned_is_installed_as_the_image_does_and_every_image_that_is_named_can_be_given() -> None:
    told = section(PAGE, "Pinned dependencies")
    dockerfile = (ROOT / "Dockerfile").read_text()
    installs = re.findall(r"^    pip install (.+)$", told, re.MULTILINE)
    assert installs == re.findall(r"pip install --no-cache-dir (.+)", dockerfile)
    variables = dict(re.findall(r"\$\{(\w+_IMAGE):-(.+)\}", (ROOT / "compose.yaml").read_text()))
    variables |= dict(re.findall(r"^ARG (\w+)=(.+)", dockerfile, re.MULTILINE))
    assert set(re.findall(r"\w+_IMAGE", told)) == variables.keys()
    assert set(re.findall(r"`(\w+:[\w.-]+)`", told)) == set(variables.values())
