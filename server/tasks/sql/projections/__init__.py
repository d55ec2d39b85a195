"""All tables of tasks: those derived from entries, the inbox, message files, and those of the replicas. A table is in
one file, with what writes, reads, prunes and removes its rows.

Owns the tables `tasks`, `task_contexts`, `pages`, `message_keys`, `contexts`, `removed_contexts`, `owned_contexts`,
`latest_changes`, `loop_values`, `states_before`, `context_holders`, `artifact_annotations`, `inbox_messages`,
`message_files`, `unnamed_files`, `task_counts`, `context_watchers`, `replicas` and `brokers`.
"""
