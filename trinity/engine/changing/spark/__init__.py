"""The executor of row changes that makes DataFrames of Spark."""
