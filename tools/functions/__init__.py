"""Tools that are functions of an agent's author: `@tool`, `Canvas`, their results, and how their code runs."""
