"""`rehearsal`: a packaged script, for trying the server offline and without a key.

The model is in `rehearsal.py`, which only some servers import: it needs the engine of the scripts.
"""

NOTICE = (
    "This is the rehearsal model, a small program that follows fixed rules, not a language model. "
    "To get a real one, start the server with ANTHROPIC_API_KEY set, or with --model ollama:NAME."
)
"""For the card and the first reply after a start: its readers use the page or another client."""

QUICK_ACTIONS = (
    {"label": "List", "instruction": "Turn it into a list", "for": "prose"},
    {"label": "Title Case", "instruction": "Make it title case", "for": "prose"},
    {"label": "UPPER CASE", "instruction": "Make it upper case", "for": "prose"},
    {"label": "Delete", "instruction": "Delete it"},
)
"""The actions that work on any passage."""

START_NOTICE = (
    "This is the rehearsal model, a small program that follows fixed rules, not a language model. "
    "Set ANTHROPIC_API_KEY, or choose a model with --model, to get a real one."
)
"""For the operator, at start-up."""
