"""Push notifications: the outbox of what is to be delivered, which deliveries are begun, signed and tried again.

`tasks/push.py` says what a client registers, and what a notification tells of. `sql/` has the outbox in a database.
Owns the tables `push_configs` and `push_outbox`.
"""
