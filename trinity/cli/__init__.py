"""The command ``trinity``."""
