"""The tools of the model. They know the store, and no protocol and no model.

`tool` says what a tool is, `streaming` is for those that act while their input arrives, `registry` lists them all.
"""
