"""Options, targets and events that ``trinity.apply_changes`` refuses."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import trinity
from tests.support.applied import COLUMNS, Target, arrow, upsert
from tests.support.tables import arrow_rows
from trinity import CommitResult, Session, TrinityError

# -- refusals -------------------------------------------------------------------------------------------------

EVENTS_OF_ONE = arrow([upsert(1, 1, "a")])


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ({"keys": ["nam"]}, "COLUMN_NOT_FOUND", "keys: there is no column 'nam'"),
        ({"keys": ["id", "ID"]}, "DUPLICATE_COLUMN_NAME", "twice"),
        ({"keys": []}, "INVALID_ARGUMENTS", "keys names no column"),
        ({"sequence_by": "id"}, "INVALID_ARGUMENTS", "in keys and in sequence_by"),
        ({"except_columns": ["n"]}, "INVALID_ARGUMENTS", "left out of the target"),
        ({"column_list": ["id", "n"], "except_columns": ["m"]}, "INVALID_ARGUMENTS", "not both"),
        ({"column_list": ["n"]}, "INVALID_ARGUMENTS", "is a key"),
        ({"stored_as_scd_type": 3}, "INVALID_ARGUMENTS", "it is 1 or 2"),
        ({"track_history_column_list": ["name"]}, "INVALID_ARGUMENTS", "belong to stored_as_scd_type=2"),
        ({"apply_as_truncates": "op = 'T'"}, "NOT_SUPPORTED", "apply_as_truncates"),
        ({"ignore_null_updates": True, "stored_as_scd_type": 2}, "NOT_SUPPORTED", "ignore_null_updates"),
        (
            {"stored_as_scd_type": 2, "sequence_by": ["n", "m"], "except_columns": ["m"]},
            "INVALID_ARGUMENTS",
            "none of them",
        ),
        (
            {"stored_as_scd_type": 2, "except_columns": ["n"], "track_history_column_list": ["name"]},
            "INVALID_ARGUMENTS",
            "is not tracked",
        ),
        ({"checkpoint": "at"}, "INVALID_ARGUMENTS", "is no stream"),
        ({"query_name": "q"}, "INVALID_ARGUMENTS", "is no stream"),
        ({"session": None}, "INVALID_ARGUMENTS", "give session="),
    ],
)
def test_words_that_do_not_fit_are_refused(session: Session, words: dict[str, Any], code: str, message: str) -> None:
    given = {"keys": ["id"], "sequence_by": "n", "session": session, **words}
    with pytest.raises(TrinityError) as refused:
        trinity.apply_changes(EVENTS_OF_ONE, "t", **given)
    assert refused.value.code == code
    assert message in refused.value.message
    assert session.find_table(session.table_name(["t"])) is None


@pytest.mark.parametrize(
    ("statement", "words", "message"),
    [
        ("(id INT, n BIGINT)", {}, "has no primary key"),
        ("(id INT, n BIGINT, PRIMARY KEY (id))", {}, "has no watermark"),
        ("(id INT, n BIGINT, m INT, PRIMARY KEY (id, m))", {}, "has the primary key"),
        ("(id INT, n BIGINT, PRIMARY KEY (id)) TBLPROPERTIES ('merge-engine' = 'first-row')", {}, "has merge engine"),
        (
            "(id INT, __START_AT BIGINT, __END_AT BIGINT, PRIMARY KEY (id, __START_AT))",
            {"stored_as_scd_type": 2, "except_columns": ["n", "m", "op", "city"]},
            "lacks 'tombstone.keep-values'",
        ),
    ],
)
def test_a_target_of_another_shape_is_refused(
    session: Session, statement: str, words: dict[str, Any], message: str
) -> None:
    """The message has a statement that makes a suitable table, and that table is accepted."""
    session.sql(f"CREATE TABLE t {statement}")
    given = {"keys": ["id"], "sequence_by": "n", **words}
    with pytest.raises(TrinityError) as refused:
        trinity.apply_changes(EVENTS_OF_ONE, session.table("t"), **given)
    assert refused.value.code == "INVALID_ARGUMENTS"
    assert message in refused.value.message
    session.drop_table("t")
    session.sql(refused.value.message.partition("a target like: ")[2].removesuffix("."))
    made = trinity.apply_changes(EVENTS_OF_ONE, session.table("t"), **given)
    assert isinstance(made, CommitResult)
    assert made.rows == 1


@pytest.mark.parametrize("column", ["id", "n"])
@pytest.mark.parametrize("kind", [1, pytest.param(2, marks=pytest.mark.full)])
def test_events_without_key_or_sequence_are_refused(session: Session, column: str, kind: int) -> None:
    target = Target(session, "t", stored_as_scd_type=kind, except_columns=["op"])
    place = COLUMNS.get_field_index(column)
    bad = EVENTS_OF_ONE.set_column(place, COLUMNS.field(place), pa.nulls(1, COLUMNS.field(place).type))
    with pytest.raises(TrinityError, match=f"'{column}'") as refused:
        trinity.apply_changes(bad, target.table, **target.words)
    assert refused.value.code == "CONSTRAINT_VIOLATION"
    assert arrow_rows(target.table) == []


@pytest.mark.full
def test_columns_that_do_not_fit_are_refused(session: Session) -> None:
    target = Target(session, "t", stored_as_scd_type=2, except_columns=["op", "n", "m"])
    with pytest.raises(TrinityError) as refused:
        trinity.apply_changes(EVENTS_OF_ONE, target.table, **{**target.words, "except_columns": ["n", "op"]})
    assert refused.value.code == "COLUMN_NOT_FOUND"
    assert "'m'" in refused.value.message
    text = EVENTS_OF_ONE.set_column(1, "n", pa.array(["one"]))
    with pytest.raises(TrinityError) as refused:
        trinity.apply_changes(text, target.table, **target.words)
    assert refused.value.code == "TYPE_MISMATCH"
    with pytest.raises(TrinityError) as refused:
        trinity.apply_changes(EVENTS_OF_ONE, target.table, **{**target.words, "apply_as_deletes": "name"})
    assert refused.value.code == "TYPE_MISMATCH"
