"""What several tests need: other engines, servers, edge values."""
