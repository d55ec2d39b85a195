"""Tasks: records, the log of their entries, and the runtime that accepts messages and runs turns.

`journal` and `runtime` know no database; `sql` is the journal in one, and what several servers agree on through it.
"""
