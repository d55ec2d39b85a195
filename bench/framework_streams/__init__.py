"""Agents whose model writes `write N` as N pieces of one call of `artifact_update`, for `bench/framework_cost.py`.

Each module has `agent`, for a server of ours, and `alone(order)`, which only consumes the same stream with the
framework. A piece of text is PIECE (`bench/pace.py`); the input's frame around it is OPENING and CLOSING.
"""
