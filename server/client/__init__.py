"""The terminal client: a program of its own that speaks A2A. It shares `server/wire.py` and the form of commands.

commands     what each command takes                 arguments   what they have in common
                                                     invocation  one call of a command: server, output, errors
send, chat   messages                                exchange    sends a message, follows its task
tasks        lists tasks, watches, cancels           connection  the card, the transport, failures in words
artifacts    reads artifacts                         canvas      the artifacts of a conversation, operations on them
edit, files  edit, undo…; put, pull and open         passage     which passage of a text is meant
names        what is meant by an id's beginning      address     the server as it is typed, headers
fold         what is known of a task                 display     text that fits a screen
screen       A2A responses, styled on a terminal     state_file  what is remembered between commands
completion   ids and names, for a shell
timestamps   mends time stamps without a zone        errors      the error tree
"""
