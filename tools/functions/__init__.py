"""Tools written as functions by an agent's author: `@tool`, `Canvas`, results, and running their code."""
