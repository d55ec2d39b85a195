"""The tools of the model. They depend on the store, not on protocols or models.

`tool` says what a tool is, `streaming` is for those that act while their input arrives, `registry` lists them all.
"""
