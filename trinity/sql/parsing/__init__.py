"""From text to statements as they are written; no table has been looked at."""
