"""`script:FILE.yaml`: a model that follows a script."""

from a2a_canvas.server.agent.models.script.scripted_model import ScriptedModel
from a2a_canvas.server.agent.models.script.yaml import ScriptError

__all__ = ["ScriptError", "ScriptedModel"]
