"""A2A over JSON-RPC, HTTP+JSON and gRPC: what reads a call and writes its answer, in both versions.

What a call does is in `operations`.
Owns no table.
"""
