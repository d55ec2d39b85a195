"""The way of a request to its handler: who may enter, and how the steps of `identity` and `guard` follow each other.

A request passes the same steps over HTTP and gRPC; one module for each of them reads the request and sends refusals.
"""
