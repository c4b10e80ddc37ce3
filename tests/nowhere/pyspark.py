"""A replacement of pyspark: with this folder on PYTHONPATH its import fails, as where it is not installed."""

raise ModuleNotFoundError("No module named 'pyspark'", name="pyspark")
