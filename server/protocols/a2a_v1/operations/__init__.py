"""The eleven operations of A2A and those of the extensions, whatever the binding. They act through the runtime."""
