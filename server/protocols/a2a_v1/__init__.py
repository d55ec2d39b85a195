"""A2A 1.0, and 0.3 by conversion: bindings, operations, projections and the card.

`errors.py` maps our errors to A2A's.
"""
