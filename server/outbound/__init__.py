"""The way out of the server: what is read from others, and where connections are made.

Rule 1: an answer has a limit, which counts what is read: it is asked for uncompressed, and refused if it is compressed.
Rule 2: no redirect leads to another origin. A token goes to the origin that it was configured for, never to http from
        https.
Rule 3: addresses are checked where the connection is made, not at an earlier lookup.
Rule 4: an exchange has a time-out as a whole, not for each read alone, unless it is a stream.

Decisions are in `answers.py`, `token_origin.py` and `addresses.py`. Each of the other modules applies them to the HTTP
library that it is named after: the SDKs of MCP, A2A and the model providers have three different ones.
"""
