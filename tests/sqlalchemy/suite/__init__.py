"""The configuration of SQLAlchemy's own tests of dialects for Trinity."""
