"""The journal's model: every form that its JSON may have, and every error with its place (docs/journal.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trinity.errors import TrinityError
from trinity.journal import load_model

FACTORY = "org.apache.calcite.adapter.jdbc.JournalledJdbcSchema$Factory"
URL = "jdbc:postgresql://db.example:5433/sales"


def model(**operand: Any) -> dict[str, Any]:
    given = {"jdbcUrl": URL, "journalTables": {"depts": ["deptno"]}, **operand}
    schema = {"name": "hr", "type": "custom", "factory": FACTORY, "operand": given}
    return {"version": "1.0", "defaultSchema": "hr", "schemas": [schema]}


def test_defaults() -> None:
    loaded = load_model(model())
    [table] = loaded.journal.tables
    assert (str(table), table.journal, table.key) == ("hr.depts", "depts_journal", ("deptno",))
    assert (table.version, table.subsequent) == ("version_number", "subsequent_version_number")
    assert table.version_type == "TIMESTAMP"
    assert loaded.options == {"host": "db.example", "port": "5433", "dbname": "sales"}


@pytest.mark.parametrize(
    ("tables", "default", "keys"),
    [
        (["a", "b"], ["id"], {"a": ("id",), "b": ("id",)}),
        (["a"], "id", {"a": ("id",)}),
        ({"a": "k", "b": ["x", "y"], "c": None}, ["id"], {"a": ("k",), "b": ("x", "y"), "c": ("id",)}),
    ],
)
def test_forms_of_journal_tables(tables: Any, default: Any, keys: dict[str, tuple[str, ...]]) -> None:
    loaded = load_model(model(journalTables=tables, journalDefaultKey=default))
    assert {t.name: t.key for t in loaded.journal.tables} == keys


def test_every_property() -> None:
    loaded = load_model(
        model(
            jdbcSchema="human",
            jdbcCatalog="sales",
            jdbcDriver="org.postgresql.Driver",
            jdbcUser="me",
            jdbcPassword="s",
            journalSuffix="_log",
            journalVersionField="v",
            journalSubsequentVersionField="s",
            journalVersionType="bigint",
            journalUniqueKeys={"depts": ["name", ["a", "b"]]},
        )
    )
    [table] = loaded.journal.tables
    assert (table.backend_schema, table.journal, table.version, table.subsequent) == ("human", "depts_log", "v", "s")
    assert table.version_type == "BIGINT"
    assert table.unique_keys == (("name",), ("a", "b"))
    assert loaded.journal.catalogs == {"sales"}
    assert loaded.options is not None
    assert (loaded.options["user"], loaded.options["password"]) == ("me", "s")


def test_several_schemas_and_inline() -> None:
    given = model()
    given["schemas"].append({**given["schemas"][0], "name": "ops"})
    loaded = load_model("inline:" + json.dumps(given))
    assert [str(t) for t in loaded.journal.tables] == ["hr.depts", "ops.depts"]


def test_a_connection_file_wins_over_what_stands_beside_it(tmp_path: Path) -> None:
    (tmp_path / "backend.json").write_text(json.dumps({"jdbcUrl": "jdbc:postgresql:other", "jdbcUser": "you"}))
    (tmp_path / "model.json").write_text(json.dumps(model(connection="backend.json")))
    assert load_model(tmp_path / "model.json").options == {"dbname": "other", "user": "you"}
    (tmp_path / "backend.json").write_text(json.dumps({"dataSource": "org.postgresql.ds.PGSimpleDataSource"}))
    assert load_model(str(tmp_path / "model.json")).options == {}


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("jdbc:postgresql://localhost:5432/postgres", {"host": "localhost", "port": "5432", "dbname": "postgres"}),
        ("jdbc:postgresql:postgres", {"dbname": "postgres"}),
        ("jdbc:postgresql://a,b:6000/x", {"host": "a,b", "port": "5432,6000", "dbname": "x"}),
        ("jdbc:postgresql://[::1]:5432/x%20y", {"host": "::1", "port": "5432", "dbname": "x y"}),
        ("jdbc:postgresql://h/", {"host": "h", "port": "5432"}),
        (
            "jdbc:postgresql://h/x?user=me&password=a%26b&currentSchema=hr&ApplicationName=app",
            {
                "host": "h", "port": "5432", "dbname": "x", "user": "me", "password": "a&b",
                "options": "-c search_path=hr", "application_name": "app",
            },
        ),
    ],
)  # fmt: skip
def test_jdbc_urls(url: str, options: dict[str, str]) -> None:
    assert load_model(model(jdbcUrl=url)).options == options


@pytest.mark.parametrize(
    ("operand", "named"),
    [
        ({"journalVersionType": "DATE"}, ["schema 'hr'", "journalVersionType", "DATE", "TIMESTAMP or BIGINT"]),
        ({"journalTables": ["depts"]}, ["schema 'hr'", "table 'depts'", "no key", "journalDefaultKey"]),
        ({"journalTables": {"depts": []}}, ["table 'depts'", "key", "at least one"]),
        ({"journalTables": {"depts": ["a", "a"]}}, ["table 'depts'", "twice"]),
        ({"journalTables": {"depts": ["version_number"]}}, ["table 'depts'", "version column"]),
        ({"journalTables": ["a", "a"], "journalDefaultKey": "k"}, ["journalTables", "twice"]),
        ({"journalTables": 5}, ["schema 'hr'", "journalTables"]),
        ({"journalSubsequentVersionField": "version_number"}, ["journalVersionField", "both"]),
        ({"journalTabels": {}}, ["schema 'hr'", "journalTabels", "unknown property", "journalTables"]),
        ({"journalSuffix": ""}, ["schema 'hr'", "journalSuffix"]),
        ({"journalUniqueKeys": {"dept": [["a"]]}}, ["journalUniqueKeys", "dept", "depts"]),
        ({"jdbcUrl": "jdbc:mysql://h/x"}, ["jdbcUrl", "jdbc:mysql", "jdbc:postgresql"]),
        ({"jdbcUrl": "jdbc:postgresql://h/x?ssll=true"}, ["ssll"]),
        (
            {"jdbcDriver": "com.mysql.Driver"},
            ["schema 'hr'", "jdbcDriver", "com.mysql.Driver", "org.postgresql.Driver"],
        ),
        ({"dataSource": "a.B"}, ["schema 'hr'", "dataSource", "a.B", "PGSimpleDataSource"]),
    ],
)
def test_errors_name_their_place(operand: dict[str, Any], named: list[str]) -> None:
    with pytest.raises(TrinityError) as caught:
        load_model(model(**operand))
    assert caught.value.code == "CONFIGURATION_INVALID"
    for name in named:
        assert name in caught.value.message


def test_models_that_are_none(tmp_path: Path) -> None:
    for text, named in [
        ("{", "JSON"),
        ("{}", "schemas"),
        ('{"schemas": [{"name": "x", "type": "jdbc"}]}', "schema 'x'"),
    ]:
        with pytest.raises(TrinityError) as caught:
            load_model("inline:" + text)
        assert caught.value.code == "CONFIGURATION_INVALID"
        assert named in caught.value.message
    with pytest.raises(TrinityError) as caught:
        load_model(tmp_path / "nowhere.json")
    assert caught.value.code == "FILESYSTEM_ERROR"
    with pytest.raises(TrinityError, match="warehouse="):
        load_model(tmp_path)
    two = model()
    two["schemas"].append(
        {**two["schemas"][0], "name": "x", "operand": {**two["schemas"][0]["operand"], "jdbcUser": "u"}}
    )
    with pytest.raises(TrinityError, match="different backends"):
        load_model(two)
