"""Presence: who has a context open, and where their cursors and those of agents stand.

Nothing of it is stored. It owns no table: replicas tell each other by notifications (`server/tasks/sql/replica`).
"""
