"""`make fuzz`: what hostile callers, strangers, tool servers, agents and issuers do to a server."""
