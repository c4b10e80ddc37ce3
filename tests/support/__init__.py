"""Helpers of several tests: other engines, servers, edge values."""
