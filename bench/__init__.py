"""Benchmarks: our server and a plain `DefaultRequestHandler`, both as real processes on loopback (`make bench`)."""
