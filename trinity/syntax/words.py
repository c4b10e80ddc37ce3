"""First words of statements: a misspelt one is an error of its own, not an unsupported statement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import Token, TokenType

from trinity.errors import TrinityError, nearest
from trinity.messages import shown_value

_QUERIES: Final = ("SELECT", "WITH", "VALUES", "TABLE", "FROM", "MAP", "REDUCE")

_STATEMENTS: Final = (
    *_QUERIES, "INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "REPLACE", "CREATE", "ALTER", "DROP", "COMMENT",
    "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "USE", "SET", "RESET", "DECLARE", "CALL", "DO", "PREPARE", "EXECUTE",
    "DEALLOCATE", "BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE", "LOCK", "UNLOCK",
    "GRANT", "REVOKE", "DENY", "ANALYZE", "REFRESH", "REINDEX", "CLUSTER", "VACUUM", "OPTIMIZE", "RESTORE", "GENERATE",
    "CONVERT", "REORG", "CACHE", "UNCACHE", "CLEAR", "LOAD", "EXPORT", "IMPORT", "COPY", "MSCK", "REPAIR", "ADD",
    "LIST", "DFS", "LISTEN", "UNLISTEN", "NOTIFY", "DISCARD", "CHECKPOINT", "CLOSE", "FETCH", "MOVE", "REASSIGN",
    "SECURITY", "ATTACH", "DETACH", "INSTALL", "FORCE", "PRAGMA", "SUMMARIZE", "PIVOT", "UNPIVOT", "KILL",
)  # fmt: skip
"""First words of statements of Spark with Delta and Iceberg, Trino, PostgreSQL and DuckDB; common ones first."""


def check_first_word(tokens: Sequence[Token]) -> None:
    """Raise SYNTAX_ERROR for a first word that begins no statement; the message suggests the nearest one."""
    first = next((n for n, t in enumerate(tokens) if t.token_type is not TokenType.L_PAREN), len(tokens) - 1)
    known, what = (_QUERIES, "query") if first else (_STATEMENTS, "statement")
    token = tokens[first]
    word = token.text.split()[0] if token.text.split() else token.text  # ADD JAR is one token
    if word.upper() not in known:
        raise TrinityError(
            "SYNTAX_ERROR", f"Line {token.line}: '{shown_value(word)}' begins no {what}.{nearest(word.upper(), known)}"
        )
