"""One agent in each framework, and as a plain function, for `bench/framework_kills.py`: all do the same.

In each of ROUNDS rounds the model says a few words, appends a line to `report`, and calls the tool `note`. It decides
by what it reads: by the number of notes. Each request to it and each call of the tool is a line of the ledger.
"""
