"""CREATE, ALTER and DROP."""
