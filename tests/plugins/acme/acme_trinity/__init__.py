"""Acme tables: an adapter of Trinity."""

from acme_trinity.format import AcmeFormat

__all__ = ["AcmeFormat"]
