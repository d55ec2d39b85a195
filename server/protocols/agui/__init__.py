"""AG-UI: a run is a message and the task that it starts or continues, projected to AG-UI's events.

`older/` translates requests of the older form.
"""
