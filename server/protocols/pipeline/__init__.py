"""Takes a request to its handler: authenticates the caller, then runs the checks of `guard`.

A request passes the same steps over HTTP and gRPC; one module for each of them reads the request and sends refusals.
"""
