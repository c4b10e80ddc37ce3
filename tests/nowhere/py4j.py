"""The absence of py4j, as that of pyspark beside it."""

raise ModuleNotFoundError("No module named 'py4j'", name="py4j")
