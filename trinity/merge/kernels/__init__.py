"""Computations on Arrow data by numpy: keys, orders, sums and lists of rows. They know no tables and options."""
