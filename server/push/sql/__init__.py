"""Push configs and the outbox in a database, written in the transactions of the journal (`outbox_rows.py`).

Owns the tables `push_configs` and `push_outbox`.
"""
