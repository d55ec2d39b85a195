"""Agents with a loop of their own: a function that gets a `Turn`, in place of the rounds of `agent/turn/`.

Owns the `Turn`, the record of its run, and how a run is started, resumed and ended. It has no tables.
"""
