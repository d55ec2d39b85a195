"""Outbound connections: limits on answers, and checks of addresses.

Rule 1: answers have a size limit. They are requested uncompressed, and rejected if they are compressed.
Rule 2: redirects to other origins are not followed. A token is sent only to the origin that it was configured for, and
        never over HTTP in place of HTTPS.
Rule 3: addresses are checked when the connection is made, not at an earlier lookup.
Rule 4: unless it is a stream, an exchange has a time-out as a whole, not only for each read.

Decisions are in `answers.py`, `token_origin.py` and `addresses.py`. Each of the other modules applies them to the HTTP
library that it is named after: the SDKs of MCP, A2A and the model providers have three different ones.
"""
