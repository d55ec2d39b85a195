"""Push configs and the outbox in a database.

Owns the tables of `push_tables.py`. Its rows are written in the transactions of the journal (`outbox_writing.py`).
"""
