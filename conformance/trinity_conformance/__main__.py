"""``python -m trinity_conformance``."""

from trinity_conformance.cli import app

app()
