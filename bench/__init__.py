"""Benchmarks: our server beside a plain `DefaultRequestHandler`, both as real processes on loopback (`make bench`)."""
