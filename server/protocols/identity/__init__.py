"""Finds the caller of a request by its credentials: API keys, tokens, links, sessions, signed addresses.

`http_authentication.py` and `grpc_authentication.py` put the caller where handlers find it, or refuse the request.
"""
