"""The result of a run as a value, and the forms in which it is shown."""
