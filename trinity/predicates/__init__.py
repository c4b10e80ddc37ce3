"""Facts about rows that follow from a predicate's tree: comparisons, literals, listed keys, tests of statistics."""
