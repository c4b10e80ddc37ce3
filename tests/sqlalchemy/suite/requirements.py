"""What of SQLAlchemy's compliance suite concerns Trinity: each exclusion with its reason."""

from __future__ import annotations

from typing import Final

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

__all__ = ["EXCLUDED", "Requirements"]

_NO_RELATIONS: Final = "no foreign keys"
_NO_INDEXES: Final = "no indexes: reads skip files by statistics, and a key by its buckets"
_NO_TEMPORARY: Final = "no temporary tables"
_NO_NUMBERING: Final = "no generated numbers: writers know their keys"
_NO_ARRAYS: Final = "parameters are scalars"

_CLOSED: Final = {
    "foreign_keys": _NO_RELATIONS,
    "foreign_key_constraint_reflection": _NO_RELATIONS,
    "self_referential_foreign_keys": _NO_RELATIONS,
    "on_update_cascade": _NO_RELATIONS,
    "recursive_fk_cascade": _NO_RELATIONS,
    "index_reflection": _NO_INDEXES,
    "indexes_with_ascdesc": _NO_INDEXES,
    "reflect_indexes_with_ascdesc": _NO_INDEXES,
    "unique_constraint_reflection": "no UNIQUE beside the key",
    "temporary_tables": _NO_TEMPORARY,
    "temp_table_reflection": _NO_TEMPORARY,
    "autoincrement_insert": _NO_NUMBERING,
    "autoincrement_without_sequence": _NO_NUMBERING,
    "implements_get_lastrowid": _NO_NUMBERING,
    "duplicate_key_raises_integrity_error": "a row whose key is there takes that row's place",
    "array_type": _NO_ARRAYS,
    "json_type": "JSON is text; no paths into it",
    "autocommit": "each statement is a commit: there is no mode but AUTOCOMMIT",
    "savepoints": "each statement is a commit",
    "two_phase_transactions": "each statement is a commit",
    "views": "no views are stored",
}
"""Requirement that is not met -> why not."""

_OPEN: Final = [
    "schemas", "create_table_as", "table_ddl_if_exists", "boolean_col_expressions", "nullsordering", "intersect",
    "except_", "window_functions", "ctes", "tuple_in", "comment_reflection", "comment_reflection_full_unicode",
    "schema_create_delete", "check_constraint_reflection", "inline_check_constraint_reflection", "unicode_ddl",
    "datetime_literals", "datetime_timezone", "datetime_historic", "date_historic", "timestamp_microseconds",
    "server_defaults", "infinity_floats", "update_from", "delete_from", "mod_operator_as_percent_sign",
    "order_by_label_with_expression", "regexp_match", "regexp_replace", "supports_bitwise_or",
    "supports_bitwise_and", "supports_bitwise_not", "supports_bitwise_xor", "table_value_constructor",
    "implicit_default_schema", "percent_schema_names", "nvarchar_types", "precision_numerics_enotation_small",
    "precision_numerics_many_significant_digits", "precision_numerics_retains_significant_digits",
    "implicitly_named_constraints",
]  # fmt: skip
"""Requirements that are met, and that the suite does not expect of every database."""


class Requirements(SuiteRequirements):
    """The requirements that Trinity meets."""


def _not_met(reason: str) -> property:
    return property(lambda self: exclusions.closed(reason))  # type: ignore[no-untyped-call]


for _name, _reason in _CLOSED.items():
    setattr(Requirements, _name, _not_met(_reason))
for _name in _OPEN:
    setattr(Requirements, _name, property(lambda self: exclusions.open()))  # type: ignore[no-untyped-call]


EXCLUDED: Final[dict[str, str]] = {
    "ComponentReflectionTestExtra::test_check_constraint_mixed": "its table has a UNIQUE beside the key",
}
"""``Class::test`` or ``Class`` -> why it is left out, where no requirement says it."""
