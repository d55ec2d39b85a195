"""The tools the model has."""

from __future__ import annotations

from a2a_canvas.tools.annotations.annotation_tools import comment, comments, reply, resolve, suggest
from a2a_canvas.tools.artifact_edit import artifact_edit
from a2a_canvas.tools.artifact_read import artifact_list, artifact_read
from a2a_canvas.tools.artifact_restore import artifact_restore
from a2a_canvas.tools.artifact_update import artifact_update
from a2a_canvas.tools.ask_user import ask_user, auth_required, decline_task
from a2a_canvas.tools.tool import Tool

TOOLS: tuple[Tool, ...] = (
    artifact_update,
    artifact_edit,
    artifact_restore,
    artifact_read,
    artifact_list,
    comments,
    comment,
    reply,
    resolve,
    suggest,
    ask_user,
    decline_task,
)
"""The tools of every model."""

SCRIPT_TOOLS: tuple[Tool, ...] = (*TOOLS, auth_required)
"""The tools of a script."""
