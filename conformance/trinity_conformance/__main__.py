"""``python -m trinity_conformance``."""

from trinity_conformance.command.cli import app

app()
