"""Everything that is spoken over the network: one package per protocol, built on `identity`, `guard` and `edge`.

A request passes through them in this order: `edge` (connections, shutdown, metrics), `identity` (who calls), `guard`
(limits, parsing), its protocol.
"""
