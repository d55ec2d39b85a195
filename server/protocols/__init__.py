"""Everything that is spoken over the network: one room for each protocol, on `identity`, `guard` and `edge`.

A request passes the rooms in this order: `edge` (connections, shutdown, metrics), `identity` (who calls), `guard`
(limits, parsing), its protocol.
"""
