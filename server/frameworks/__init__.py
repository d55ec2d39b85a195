"""Agents of frameworks as the loop: one adapter for each (one module, three for LangGraph), which alone imports it.

Owns what an adapter needs besides `Turn`. `canvas_tools`, our tools in a form that frameworks take, and
`message_history`, the messages of an agent, are shared; `partial_arguments` is ADK's. It has no tables.
"""
