"""Texts of types: what they say is read back, also in a table's metadata (N1)."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.refusals import refused
from trinity import Session
from trinity.spi import DataType, parse_type, type_text

_SCALARS = st.sampled_from(["boolean", "bigint", "double", "string", "date", "time", "timestamp_ntz"]).map(DataType)
_DECIMALS = st.integers(1, 38).flatmap(
    lambda precision: st.integers(0, precision).map(lambda scale: DataType("decimal", (precision, scale)))
)
_LENGTHS = st.builds(DataType, st.sampled_from(["char", "varchar"]), st.integers(1, 999).map(lambda length: (length,)))
_NAMES = st.text(st.sampled_from("`:,<>()' aAé_1") | st.characters(codec="utf-8"), min_size=1, max_size=6)


def _nested(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    fields = st.lists(st.tuples(_NAMES, inner), min_size=1, max_size=3)
    return (
        inner.map(lambda kind: DataType("array", children=(kind,)))
        | st.tuples(inner, inner).map(lambda kinds: DataType("map", children=kinds))
        | fields.map(
            lambda found: DataType("struct", children=tuple(k for _, k in found), fields=tuple(n for n, _ in found))
        )
    )


@given(st.recursive(_SCALARS | _DECIMALS | _LENGTHS, _nested, max_leaves=4))
def test_a_type_is_read_from_its_text(kind: DataType) -> None:
    assert parse_type(str(kind)) == kind
    assert parse_type(type_text(kind.to_arrow())).to_arrow() == kind.to_arrow()


@pytest.mark.parametrize(
    "text",
    ["decimal(10,2,99)", "decimal(10,0,0)", "decimal(2,10)", "struct<:int>", "struct<``:int>", "struct<`a``:int>"],
)
def test_a_text_that_says_no_type_is_refused(text: str) -> None:
    with refused("TYPE_MISMATCH", text):
        parse_type(text)


def test_a_field_has_any_name(local: Session, local_fmt: str) -> None:
    kind = pa.struct([pa.field("a`:int`b", pa.int32()), pa.field("c`d", pa.string())])
    assert parse_type("struct<`a``:int``b`:int>").fields == ("a`:int`b",)
    rows = [{"id": 1, "s": {"a`:int`b": 2, "c`d": "x"}}, {"id": 2, "s": None}]
    table = local.create_table(
        f"{local_fmt}.default.t", pa.Table.from_pylist(rows, pa.schema({"id": pa.int64(), "s": kind}))
    )
    local.table(f"{local_fmt}.default.t").compact(full=True)
    found = local.table(table.name).to_arrow()
    assert sorted(found.to_pylist(), key=lambda row: row["id"]) == rows
    assert [field.name for field in found.schema.field("s").type] == ["a`:int`b", "c`d"]
