"""Agents that speak A2A, as the loop of ours: a task for each message. It has no tables."""
