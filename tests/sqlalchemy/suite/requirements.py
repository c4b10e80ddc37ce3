"""The requirements of SQLAlchemy's tests that Trinity meets, and the reasons for the others."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

_HAS: Final = """
    boolean_col_expressions check_constraint_reflection comment_reflection comment_reflection_full_unicode
    create_table_as ctes date_historic datetime_historic datetime_literals datetime_timezone
    datetime_timezone_historic except_ expression_server_defaults foreign_key_ddl implicit_default_schema
    infinity_floats inline_check_constraint_reflection intersect nullsordering nvarchar_types
    order_by_label_with_expression percent_schema_names precision_numerics_enotation_small
    precision_numerics_many_significant_digits precision_numerics_retains_significant_digits reflect_table_options
    regexp_match schema_create_delete server_defaults supports_is_distinct_from table_ddl_if_exists
    timestamp_microseconds unicode_ddl update_where_target_in_subquery
""".split()  # noqa: SIM905 - thirty quotes less
"""Requirements that the suite assumes to be rare, and that Trinity meets."""

_KEYS: Final = "Keys are not numbered by themselves, and there are no sequences"
_CONSTRAINTS: Final = "A table has a key and CHECKs; foreign keys, UNIQUE and indexes are left out"
_UPSERT: Final = "INSERT into a keyed table upserts: a key that is there is no error"
_COMMITS: Final = "Each statement is a commit: AUTOCOMMIT is the only isolation level"
_VIEWS: Final = "No views and no temporary tables are stored"
_RETURNING: Final = "A change of rows returns none of them"
_JSON: Final = "JSON is text, without operators for its parts"
_PARAMETERS: Final = "Parameters are scalars"
_COMPUTED: Final = "There are no computed columns"
_OTHERS: Final = "Trinity has no such words, types or traits"
_SPARK: Final = "Only Spark evaluates it; the suite runs without"

ABSENT: Final = {
    "autoincrement_insert": _KEYS,
    "autoincrement_without_sequence": _KEYS,
    "implements_get_lastrowid": _KEYS,
    "foreign_key_constraint_reflection": _CONSTRAINTS,
    "foreign_keys": _CONSTRAINTS,
    "self_referential_foreign_keys": _CONSTRAINTS,
    "on_update_cascade": _CONSTRAINTS,
    "recursive_fk_cascade": _CONSTRAINTS,
    "unique_constraint_reflection": _CONSTRAINTS,
    "index_reflection": _CONSTRAINTS,
    "indexes_with_ascdesc": _CONSTRAINTS,
    "reflect_indexes_with_ascdesc": _CONSTRAINTS,
    "implicitly_named_constraints": _CONSTRAINTS,
    "duplicate_key_raises_integrity_error": _UPSERT,
    "autocommit": _COMMITS,
    "isolation_level": _COMMITS,
    "savepoints": _COMMITS,
    "two_phase_transactions": _COMMITS,
    "temporary_tables": _VIEWS,
    "temp_table_reflection": _VIEWS,
    "views": _VIEWS,
    "materialized_views": _VIEWS,
    "empty_inserts": _RETURNING,
    "json_type": _JSON,
    "array_type": _PARAMETERS,
    "supports_bitwise_and": _SPARK,
    "supports_bitwise_not": _SPARK,
    "supports_bitwise_or": _SPARK,
    "supports_bitwise_shift": _SPARK,
    "supports_bitwise_xor": _SPARK,
    "sql_expression_limit_offset": _SPARK,
    "fetch_expression": _SPARK,
    "tuple_in": _SPARK,
    "dbapi_lastrowid": _KEYS,
    "emulated_lastrowid": _KEYS,
    "emulated_lastrowid_even_with_sequences": _KEYS,
    "identity_columns": _KEYS,
    "identity_columns_standard": _KEYS,
    "constraint_comment_reflection": _CONSTRAINTS,
    "cross_schema_fk_reflection": _CONSTRAINTS,
    "deferrable_fks": _CONSTRAINTS,
    "foreign_key_constraint_name_reflection": _CONSTRAINTS,
    "fk_constraint_option_reflection_ondelete_noaction": _CONSTRAINTS,
    "fk_constraint_option_reflection_ondelete_restrict": _CONSTRAINTS,
    "fk_constraint_option_reflection_onupdate_restrict": _CONSTRAINTS,
    "foreign_key_constraint_option_reflection_ondelete": _CONSTRAINTS,
    "foreign_key_constraint_option_reflection_onupdate": _CONSTRAINTS,
    "foreign_keys_reflect_as_index": _CONSTRAINTS,
    "index_ddl_if_exists": _CONSTRAINTS,
    "index_reflects_included_columns": _CONSTRAINTS,
    "indexes_check_column_order": _CONSTRAINTS,
    "indexes_with_expressions": _CONSTRAINTS,
    "non_updating_cascade": _CONSTRAINTS,
    "reflect_indexes_with_ascdesc_as_expression": _CONSTRAINTS,
    "reflect_indexes_with_expressions": _CONSTRAINTS,
    "reflects_pk_names": _CONSTRAINTS,
    "repeated_column_foreign_keys": _CONSTRAINTS,
    "repeated_remote_col_foreign_keys": _CONSTRAINTS,
    "unique_constraints_reflect_as_index": _CONSTRAINTS,
    "unique_index_reflect_as_unique_constraints": _CONSTRAINTS,
    "skip_autocommit_rollback": _COMMITS,
    "create_or_replace_view": _VIEWS,
    "create_temp_table_as": _VIEWS,
    "has_temp_table": _VIEWS,
    "materialized_views_reflect_pk": _VIEWS,
    "temp_table_comment_reflection": _VIEWS,
    "temp_table_names": _VIEWS,
    "temporary_views": _VIEWS,
    "json_deserializer_binary": _JSON,
    "legacy_unconditional_json_extract": _JSON,
    "computed_columns": _COMPUTED,
    "computed_columns_default_persisted": _COMPUTED,
    "computed_columns_reflect_persisted": _COMPUTED,
    "computed_columns_stored": _COMPUTED,
    "computed_columns_virtual": _COMPUTED,
    "async_dialect": _OTHERS,
    "column_collation_reflection": _OTHERS,
    "ctes_on_dml": _OTHERS,
    "ctes_with_update_delete": _OTHERS,
    "datetime_interval": _OTHERS,
    "default_schema_name_switch": _OTHERS,
    "delete_from": _OTHERS,
    "fetch_first": _OTHERS,
    "fetch_no_order_by": _OTHERS,
    "fetch_offset_with_options": _OTHERS,
    "fetch_percent": _OTHERS,
    "fetch_ties": _OTHERS,
    "mod_operator_as_percent_sign": _OTHERS,
    "reflect_tables_no_columns": _OTHERS,
    "supports_distinct_on": _OTHERS,
    "time_timezone": _OTHERS,
    "update_from": _OTHERS,
    "uuid_data_type": _OTHERS,
    "aggregate_order_by": _SPARK,
    "ctes_with_values": _SPARK,
    "table_value_constructor": _SPARK,
    "float_or_double_precision_behaves_generically": _OTHERS,
    "window_range": _SPARK,
    "window_range_non_numeric": _SPARK,
    "window_range_numeric": _SPARK,
}
"""Requirement of SQLAlchemy -> why Trinity does not meet it."""

WITHOUT: Final = {
    "InsertBehaviorTest.test_insert_from_select_autoinc": _KEYS,
    "InsertBehaviorTest.test_insert_from_select_autoinc_no_rows": _KEYS,
    "InsertBehaviorTest.test_no_results_for_non_returning_insert": _KEYS,
    "ComponentReflectionTest.test_autoincrement_col": _KEYS,
    "ComponentReflectionTest.test_get_multi_columns": _KEYS,
    "ComponentReflectionTest.test_get_view_names": _VIEWS,
    "ComponentReflectionTestExtra.test_server_defaults[DateTime": _SPARK,
    "TableViaSelectTest.test_without_metadata[use_schema1": _VIEWS,
    "TrueDivTest.test_truediv_divisor[numeric_38_digit_divisor-untyped_function": _SPARK,
    "FetchLimitOffsetTest.test_limit_render_multiple_times": _SPARK,
    "RowFetchTest.test_row_w_scalar_select": _SPARK,
    "ExistsTest.test_select_exists": _SPARK,
    "JoinTest.test_inner_join_true": _SPARK,
    "JoinTest.test_inner_join_false": _SPARK,
    "JoinTest.test_outer_join_false": _SPARK,
    "CTETest.test_select_recursive_round_trip": _SPARK,
    "LongNameBlowoutTest.test_long_convention_name[ix": _CONSTRAINTS,
}
"""Beginning of the names of a class and test of the suite -> why it is not run."""


class Requirements(SuiteRequirements):
    """The answers to the suite's questions about requirements."""

    def get_isolation_levels(self, config: Any) -> dict[str, Any]:
        """Return AUTOCOMMIT, the only isolation level."""
        return {"default": "AUTOCOMMIT", "supported": ["AUTOCOMMIT"]}


def _answer(name: str, *, supported: bool) -> None:
    assert hasattr(SuiteRequirements, name), name
    found = exclusions.open() if supported else exclusions.closed()  # type: ignore[no-untyped-call]  # of SQLAlchemy
    setattr(Requirements, name, property(lambda self: found))


for _name in _HAS:
    _answer(_name, supported=True)
for _name in ABSENT:
    _answer(_name, supported=False)


def table() -> str:
    """Return the exclusions as a Markdown table, one row for each reason."""
    reasons: dict[str, list[str]] = {}
    for name, reason in {**ABSENT, **WITHOUT}.items():
        reasons.setdefault(reason, []).append(f"`{name}`")
    rows = [f"| {reason} | {', '.join(names)} |" for reason, names in reasons.items()]
    return "\n".join(["| why | requirements of SQLAlchemy's, or tests |", "|---|---|", *rows])
