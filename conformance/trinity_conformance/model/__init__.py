"""What a merged read means, in plain Python, written from the rules and from no implementation."""
