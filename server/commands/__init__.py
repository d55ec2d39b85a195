"""The commands that run or manage a server: `serve`, `new`, `doctor`, `db`, `key`, `usage`, `card`, `models`, `demo`.

`cli.py` combines them with those of the client. Each module declares and runs its command.
"""
