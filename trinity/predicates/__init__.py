"""What predicates say of rows, by their trees: comparisons, literals, statistics, listed keys, equalities of ON."""
