"""The terminal client: a program of its own that speaks A2A. It shares `server/wire.py` with the server, nothing else.

talk_commands      what each command takes:          arguments   what they have in common, and how one is run
artifact_commands    light, for `--help`             invocation  one call of a command: server, output, errors
send         the command that sends a message         exchange    send a message, follow its task, show it
artifacts    the commands that read artifacts        connection  the card, the transport, failures in words
edit, files  edit, undo…; put, pull and open         canvas      the artifacts of a conversation, operations on them
operations   what edits, undo and put mean           address     the server as it is typed, headers
names        what is meant by the beginning of a name
timestamps   mends time stamps without a zone        errors      the error tree
fold         A2A responses to events for a screen    display     those events, and text that fits a screen
terminal     events to text, with a status line
"""
