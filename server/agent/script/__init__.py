"""`script:FILE.yaml`: a model that says what a script tells it to."""

from server.agent.script.model import ScriptedModel, load_script
from server.agent.script.yaml import ScriptError

__all__ = ["ScriptError", "ScriptedModel", "load_script"]
