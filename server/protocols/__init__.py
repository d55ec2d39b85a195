"""Everything that is spoken over the network: one package per protocol, built on `pipeline`.

`pipeline` has the way of a request to its protocol: it uses `edge` (connections, shutdown, metrics), `identity` (who
calls) and `guard` (limits, parsing).
"""
