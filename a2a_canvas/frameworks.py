"""Agents of frameworks as the loop: each function makes one from what you already have.

| function | of | extra |
|---|---|---|
| `adk_agent` | an agent of `google.adk` | `a2a-canvas[google-adk]` |
| `langgraph_agent` | a compiled graph of LangGraph | `a2a-canvas[langgraph]` |
| `openai_agent` | an `agents.Agent` (OpenAI Agents SDK) | `a2a-canvas[openai-agents]` |
| `pydantic_ai_agent` | a `pydantic_ai.Agent` | `a2a-canvas[pydantic-ai]` |

`canvas_tools` are our tools for the model of a graph: they write documents and ask the user.

>>> from a2a_canvas.frameworks import pydantic_ai_agent
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from a2a_canvas.server.frameworks.google_adk import adk_agent
    from a2a_canvas.server.frameworks.langgraph import canvas_tools, langgraph_agent
    from a2a_canvas.server.frameworks.openai_agents import openai_agent
    from a2a_canvas.server.frameworks.pydantic_ai import pydantic_ai_agent

__all__ = ["adk_agent", "canvas_tools", "langgraph_agent", "openai_agent", "pydantic_ai_agent"]

_MODULES = {
    "adk_agent": "google_adk",
    "canvas_tools": "langgraph",
    "langgraph_agent": "langgraph",
    "openai_agent": "openai_agents",
    "pydantic_ai_agent": "pydantic_ai",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"a2a_canvas.server.frameworks.{_MODULES[name]}"), name)
