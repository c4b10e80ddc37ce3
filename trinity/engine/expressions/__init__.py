"""Expressions of Spark SQL, evaluated over Arrow data in this process.

What is evaluated here has the values that Spark gives it, bit by bit; everything else is a
:class:`~trinity.engine.not_local.NotLocal` that names the part which only Spark evaluates.
"""
