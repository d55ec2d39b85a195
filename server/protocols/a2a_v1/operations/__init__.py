"""The eleven operations of A2A and those of the extensions, whatever the binding.

They read and change tasks by the runtime.
Owns no table.
"""
