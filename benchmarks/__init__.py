"""Ratios between Trinity and the plain tools, each pair measured in one run."""
