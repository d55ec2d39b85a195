"""The commands that run or manage a server: `serve`, `new`, `doctor`, `db`, `key`, `usage`, `card`, `models`, `demo`.

`cli.py` puts them together with those of the client. Each module has the form of its command, and runs it.
"""
