"""The checks, their budgets, and how they are run on an adapter."""
