"""The tools the model has."""

from __future__ import annotations

from tools.artifact_edit import ArtifactEdit
from tools.artifact_read import artifact_list, artifact_read
from tools.artifact_restore import artifact_restore
from tools.artifact_update import ArtifactUpdate
from tools.ask_user import ask_user, decline_task
from tools.base import Tool

TOOLS: tuple[Tool, ...] = (
    ArtifactUpdate(),
    ArtifactEdit(),
    artifact_restore,
    artifact_read,
    artifact_list,
    ask_user,
    decline_task,
)
