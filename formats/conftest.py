"""Fixtures of the adapters' tests."""

from __future__ import annotations

from tests.support.spark import spark

__all__ = ["spark"]
