"""The journal in a database: reading, writing, pruning and removing, and the tails that subscribers read.

Owns the tables `tasks`, `pages`, `latest_changes`, `task_counts`, `context_watchers`, `inbox_messages`,
`message_files`, `unnamed_files`, `task_contexts`, `message_keys` and `replicas`.
"""
