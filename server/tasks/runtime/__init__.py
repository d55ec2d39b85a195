"""Accepts messages, admits turns, runs them, and stops them. `runtime.py` is what protocols call."""
