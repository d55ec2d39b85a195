"""Everything that the server speaks over the network: one package per protocol, behind `pipeline`.

`pipeline` takes a request to its protocol: it uses `edge` (connections, shutdown, metrics), `identity` (the caller) and
`guard` (limits, parsing).
"""
