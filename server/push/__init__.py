"""Push notifications: the outbox of what is to be delivered, and how deliveries are chosen, signed and tried again.

`tasks/push_configs.py` has what a client registers. `sql/` has the outbox in a database.
"""
