"""A replacement of py4j whose import fails, like that of pyspark beside it."""

raise ModuleNotFoundError("No module named 'py4j'", name="py4j")
