"""Delta tables in which other engines add, drop, rename and move fields of nested columns."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

import trinity
from tests.support.delta_lake import commit_by_others, last_action
from trinity import Column, Table, TrinityError

Fields = list[dict[str, Any]]
INNER: Final = {
    "st": "struct<a:int,b:int>",
    "arr": "array<struct<a:int,b:int>>",
    "m": "map<string,struct<a:int,b:int>>",
}
ROW: Final = {"st": {"a": 1, "b": 2}, "arr": [{"a": 1, "b": 2}], "m": {"k": {"a": 1, "b": 2}}}


@pytest.fixture(params=[("id",), ()], ids=["keyed", "plain"])
def table(request: pytest.FixtureRequest, warehouse: Path) -> Iterator[Table]:
    """Make a table with a column of each nested type, and one row."""
    with trinity.connect(warehouse, engine="local") as session:
        columns = [Column("id", "int"), *(Column(name, kind) for name, kind in INNER.items())]
        made = session.create_table("delta.default.t", columns, primary_key=request.param)
        write(made, 1, ROW)
        yield made


def write(table: Table, number: int, row: dict[str, Any]) -> None:
    """Write a row with the present columns of the table."""
    schema = table.schema
    given = {**row, "m": list(row["m"].items())}
    add_rows = table.upsert if table.definition.keyed else table.append
    add_rows(pa.Table.from_pylist([{"id": number, **given}], schema))


def change(table: Table, alter: Callable[[Fields], None], *, mapped: bool = False) -> None:
    """Let another engine alter the fields of nested columns, with or without column mapping."""
    metadata, protocol = last_action(table.handle, "metaData"), last_action(table.handle, "protocol")
    schema = json.loads(metadata["schemaString"])
    numbers = itertools.count(1)

    def name(fields: Fields) -> None:
        for field in fields:
            about = {"delta.columnMapping.id": next(numbers), "delta.columnMapping.physicalName": field["name"]}
            field["metadata"] |= about if mapped else {}
            for within in structs(field["type"]):
                name(within)

    name(schema["fields"])
    for field in schema["fields"]:
        for within in structs(field["type"]):
            alter(within)
    actions: list[dict[str, Any]] = [{"metaData": {**metadata, "schemaString": json.dumps(schema)}}]
    if mapped:
        mode = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": str(next(numbers))}
        actions[0]["metaData"]["configuration"] = {**metadata["configuration"], **mode}
        features = {
            kind: sorted({*protocol.get(kind, ()), "columnMapping"}) for kind in ("readerFeatures", "writerFeatures")
        }
        actions.append({"protocol": {**protocol, "minReaderVersion": 3, "minWriterVersion": 7, **features}})
    commit_by_others(table.handle, *actions)


def structs(kind: Any) -> Iterator[Fields]:
    """Yield the fields of a struct, or of the structs that are the elements or values of a type."""
    if isinstance(kind, dict):
        yield from ([kind["fields"]] if "fields" in kind else structs(kind.get("elementType", kind.get("valueType"))))


def values(table: Table) -> list[tuple[Any, ...]]:
    """Return the values of each row's structs, and check that they are the same in all columns."""
    rows = sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"])
    for row in rows:
        assert row["st"] == row["arr"][0] == dict(row["m"])["k"]
    return [tuple(row["st"].items()) for row in rows]


def add(fields: Fields) -> None:
    """Add a field as the first one."""
    fields.insert(0, {"name": "z", "type": "integer", "nullable": True, "metadata": {}})


def test_a_field_that_others_added_within_a_column_is_the_table_s(table: Table) -> None:
    change(table, add)
    inner = {"z": 3, "a": 4, "b": 5}
    write(table, 2, {"st": inner, "arr": [inner], "m": {"k": inner}})
    wanted = [(("z", None), ("a", 1), ("b", 2)), (("z", 3), ("a", 4), ("b", 5))]
    assert values(table) == wanted
    if table.definition.keyed:
        table.compact(full=True)
    assert values(table) == wanted


def test_a_field_that_others_dropped_within_a_column_is_not_read(table: Table) -> None:
    """Delta drops fields only of tables with column mapping."""
    change(table, lambda fields: fields.remove(fields[0]), mapped=True)
    write(table, 2, {"st": {"b": 3}, "arr": [{"b": 3}], "m": {"k": {"b": 3}}})
    wanted = [(("b", 2),), (("b", 3),)]
    assert values(table) == wanted
    if table.definition.keyed:
        table.compact(full=True)
    assert values(table) == wanted


@pytest.mark.parametrize("way", ["renamed", "added"])
def test_a_field_with_another_name_in_data_files_is_refused(table: Table, way: str) -> None:
    """Each renamed field is refused, and each field that is added under column mapping."""

    def alter(fields: Fields) -> None:
        if way == "added":
            add(fields)
            fields[0]["metadata"] = {"delta.columnMapping.id": 99, "delta.columnMapping.physicalName": "col-99"}
        else:
            fields[0]["name"] = "z"

    change(table, alter, mapped=True)
    version = len(list(Path(table.location, "_delta_log").glob("*.json")))
    acts: list[Callable[[], object]] = [
        table.to_arrow,
        lambda: write(table, 2, ROW),
        lambda: table.compact(full=True),
        lambda: table.delete("id = 1"),
    ]
    for act in acts:
        with pytest.raises(TrinityError) as refused:
            act()
        assert refused.value.code == "NOT_SUPPORTED"
        assert "'st', whose part 'z' has another name" in refused.value.message
    assert len(list(Path(table.location, "_delta_log").glob("*.json"))) == version
    assert table.to_arrow(version=1).num_rows == 1
