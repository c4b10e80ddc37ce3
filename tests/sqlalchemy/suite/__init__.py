"""SQLAlchemy's own tests of dialects: what they are told of Trinity, and where they start."""
