"""Checks a request before a handler sees it: host, size, version, form. A request is parsed here, once.

What is decided is pure; `http_guard.py` and `pipeline/grpc_pipeline.py` read and answer.
"""
