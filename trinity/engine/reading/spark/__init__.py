"""The executor of reads that makes DataFrames of Spark."""
