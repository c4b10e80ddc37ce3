"""What predicates say of rows, by their trees: comparisons, literals, listed keys, what statistics rule out."""
