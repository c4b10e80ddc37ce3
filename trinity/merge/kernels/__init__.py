"""Arrow data, in numbers: keys, orders, sums and lists of rows. They know nothing of tables and their options."""
