"""The values that columns take, by Spark."""
