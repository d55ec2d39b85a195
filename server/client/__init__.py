"""The terminal client: a program of its own that speaks A2A. It shares `server/wire.py` with the server, nothing else.

arguments    what is typed                          operations what it means, as values; the errors
send, edit   the commands that start a task         exchange   send a message, follow its task, show it
artifacts    the commands that read artifacts       connection the card, the transport, failures in words
timestamps   mends time stamps without a zone
fold         A2A responses to events for a screen   display    those events, and text that fits a screen
terminal     events to text, with a status line
"""
