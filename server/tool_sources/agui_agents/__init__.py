"""Agents that speak AG-UI, as the loop of ours: a run for each message. It has no tables."""
