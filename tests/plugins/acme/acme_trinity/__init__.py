"""A Trinity adapter for Acme tables."""

from acme_trinity.format import AcmeFormat

__all__ = ["AcmeFormat"]
