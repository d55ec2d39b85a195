"""Everything that the server speaks over the network: one package per protocol, behind `pipeline`.

`pipeline` takes a request to its protocol. It uses `identity` (the caller) and `guard` (limits, parsing); all use
`edge` (connections, shutdown, metrics).
"""
