"""GROUP BY in DuckDB's SQL: by keys, and by ROLLUP, CUBE and GROUPING SETS of keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from trinity.engine.expressions import Refused
from trinity.spi import DataType
from trinity.sql.local.refusals import refuse_other_clauses

_SETS: Final[dict[type[exp.Expr], str]] = {
    exp.Rollup: "ROLLUP", exp.Cube: "CUBE", exp.GroupingSets: "GROUPING SETS",
}  # fmt: skip
_AFTER_KEYS: Final = ("rollup", "cube", "grouping_sets")
"""sqlglot's arguments of GROUP BY for the clauses after its keys: WITH ROLLUP, WITH CUBE, GROUPING SETS."""


@dataclass(frozen=True)
class GroupBy:
    """A GROUP BY in DuckDB's SQL.

    Attributes:
        text: the clause; empty for one group of all rows.
        sets: the fields of all keys of grouping sets, in their order; empty for a GROUP BY without sets.
    """

    text: str
    sets: Sequence[str]

    @classmethod
    def of(cls, clause: exp.Group, field: Callable[[exp.Expr], str]) -> GroupBy:
        """Return a GROUP BY for DuckDB; ``field`` returns the field of a key. Raises Refused if only Spark runs it."""
        after = [node for name in _AFTER_KEYS for node in clause.args.get(name) or ()]
        parts = [*clause.expressions, *after]
        sets = [part for part in parts if type(part) in _SETS]
        keys = [field(part) for part in parts if part not in sets]
        if not sets:
            return cls(f" GROUP BY {', '.join(keys)}" if keys else "", ())
        if len(sets) > 1:
            raise Refused("only Spark groups by several sets of groups")
        (given,) = sets
        named = [[field(key) for key in _members(part)] for part in given.expressions]
        listed = [f"({', '.join(fields)})" for fields in named]
        if after and keys and named and not isinstance(given, exp.GroupingSets):
            raise Refused("only Spark groups by keys and sets of groups in an order of its own")
        before = keys if not after else []
        if after and not named:
            listed = keys
        elif not isinstance(given, exp.GroupingSets):
            keys = [*keys, *(key for fields in named for key in fields)]
            _refuse_twice(keys)
        else:
            _refuse_twice([frozenset(fields) for fields in named])
            keys = list(dict.fromkeys([*keys, *(key for fields in named for key in fields)]))
        if not keys:
            raise Refused("only Spark groups by no keys")
        # Spark returns no groups for an empty input, not even the total; DuckDB returns the total, so HAVING removes it
        text = ", ".join([*before, f"{_SETS[type(given)]} ({', '.join(listed)})"])
        return cls(f" GROUP BY {text} HAVING count(*) > 0", keys)

    def grouping(self, node: exp.Expr, fields: Sequence[str | None]) -> tuple[DataType, str]:
        """Return the type of GROUPING or GROUPING_ID, and its text in DuckDB's SQL. Raises Refused.

        ``fields`` are those of the keys that the call names: None for one that GROUP BY does not have.
        """
        one = isinstance(node, exp.Grouping)
        if not self.sets or not {*fields} <= {*self.sets} or (one and len(fields) != 1):
            raise Refused(f"only Spark says what is wrong with '{node.sql(dialect='spark')}'")
        if fields and not one and [*fields] != [*self.sets]:
            raise Refused(f"'{node.sql(dialect='spark')}' names other keys than GROUP BY")
        kind = DataType("tinyint" if one else "bigint")
        return kind, f"CAST(GROUPING({', '.join(map(str, fields or self.sets))}) AS {kind})"


def keys_replaced(clause: exp.Group, meant: Callable[[exp.Expr], exp.Expr]) -> exp.Group:
    """Return a GROUP BY with each key replaced by ``meant`` of it. Raises Refused for further clauses."""
    refuse_other_clauses(clause, "expressions", *_AFTER_KEYS)

    def replaced(part: exp.Expr) -> exp.Expr:
        if type(part) not in _SETS:
            return meant(part)
        members = [exp.Tuple(expressions=[meant(key) for key in _members(member)]) for member in part.expressions]
        return type(part)(expressions=members)

    return exp.Group(**{
        name: [replaced(part) for part in clause.args.get(name) or ()] for name in ("expressions", *_AFTER_KEYS)
    })  # fmt: skip


def _members(part: exp.Expr) -> list[exp.Expr]:
    """Return the keys of one grouping set. Raises Refused for nested sets."""
    found = list(part.expressions) if isinstance(part, exp.Tuple) else [part.unnest()]
    if any(type(key) in _SETS for key in found):
        raise Refused("only Spark groups by sets within sets")
    return found


def _refuse_twice(parts: Sequence[object]) -> None:
    if len({*parts}) < len(parts):
        raise Refused("only Spark groups twice by the same keys")
