"""An agent server that speaks A2A and streams artifacts while they are written.

    from a2a_canvas import Settings, create_app

    app = create_app(Settings(database="memory"))  # an ASGI application

These names are the public surface; anything else may change in any release. They are imported when they are used, so
that `import a2a_canvas` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from a2a_canvas.server.agent.loops.agent_function import agent
    from a2a_canvas.server.agent.loops.agent_turn import Turn
    from a2a_canvas.server.agent.loops.turn_values import StateConflict
    from a2a_canvas.server.agent.model import LLM
    from a2a_canvas.server.app import create_app
    from a2a_canvas.server.settings.settings import Settings
    from a2a_canvas.server.tool_sources.a2a_agents.a2a_loop import a2a_agent
    from a2a_canvas.server.tool_sources.agui_agents.agui_loop import agui_agent
    from a2a_canvas.tools.functions.canvas import Canvas
    from a2a_canvas.tools.functions.python_tool import tool
    from a2a_canvas.tools.functions.results import File, ToolError

    __version__: str

__all__ = [
    "LLM",
    "Canvas",
    "File",
    "Settings",
    "StateConflict",
    "ToolError",
    "Turn",
    "__version__",
    "a2a_agent",
    "agent",
    "agui_agent",
    "create_app",
    "tool",
]

_MODULES = {
    "Canvas": "a2a_canvas.tools.functions.canvas",
    "File": "a2a_canvas.tools.functions.results",
    "LLM": "a2a_canvas.server.agent.model",
    "Settings": "a2a_canvas.server.settings.settings",
    "StateConflict": "a2a_canvas.server.agent.loops.turn_values",
    "ToolError": "a2a_canvas.tools.functions.results",
    "Turn": "a2a_canvas.server.agent.loops.agent_turn",
    "agent": "a2a_canvas.server.agent.loops.agent_function",
    "a2a_agent": "a2a_canvas.server.tool_sources.a2a_agents.a2a_loop",
    "agui_agent": "a2a_canvas.server.tool_sources.agui_agents.agui_loop",
    "create_app": "a2a_canvas.server.app",
    "tool": "a2a_canvas.tools.functions.python_tool",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("a2a-canvas")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
