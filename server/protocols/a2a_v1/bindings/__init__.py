"""A2A over JSON-RPC, HTTP+JSON and gRPC: reads calls and writes their answers, in both versions."""
