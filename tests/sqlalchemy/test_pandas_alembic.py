"""pandas and Alembic over the dialect, without Spark."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations

from trinity import Session

MOMENTS: Any = ["2020-01-01 12:00", None]
COLUMNS: dict[str, Any] = {
    "id": [1, 2],
    "name": ["it's", None],
    "price": [1.5, None],
    "at": pd.to_datetime(MOMENTS),
    "moment": pd.to_datetime(MOMENTS, utc=True),
    "ok": [True, False],
}
FRAME = pd.DataFrame(COLUMNS)


def test_a_frame_is_one_commit(engine: sa.Engine, second_session: Session) -> None:
    assert FRAME.to_sql("t", engine) == 2
    table = second_session.table("t")
    assert [(c.name, c.type) for c in table.definition.visible] == [
        ("index", "bigint"), ("id", "bigint"), ("name", "string"), ("price", "double"), ("at", "timestamp_ntz"),
        ("moment", "timestamp"), ("ok", "boolean"),
    ]  # fmt: skip
    assert table.history().count() == 2
    found = pd.read_sql("t", engine, index_col="index").sort_index()
    pd.testing.assert_frame_equal(found, FRAME, check_dtype=False, check_names=False)


def test_what_there_is_decides(engine: sa.Engine, second_session: Session) -> None:
    def stored(**given: Any) -> int:
        FRAME.to_sql("t", engine, index=False, **given)
        return len(pd.read_sql("SELECT id FROM t", engine))

    assert stored() == 2
    with pytest.raises(ValueError, match="already exists"):
        stored()
    before = second_session.table("t").version
    assert stored(if_exists="append") == 4
    assert second_session.table("t").version == before + 1
    assert stored(if_exists="replace") == 2
    assert stored(if_exists="delete_rows") == 2
    assert pd.read_sql(sa.text("SELECT name FROM t WHERE id = :id"), engine, params={"id": 1})["name"].tolist() == [
        "it's"
    ]


METADATA = sa.MetaData()
sa.Table(
    "u",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(20), nullable=False, comment="who"),
    sa.Column("text", sa.Text, server_default="it's"),
    sa.Column("n", sa.Integer, server_default=sa.text("7")),
    sa.Column("price", sa.Numeric(10, 2)),
    sa.Column("at", sa.DateTime(timezone=True)),
    sa.Column("clock", sa.DateTime),
    sa.Column("f", sa.Float),
    sa.Column("r", sa.REAL),
    sa.Column("day", sa.Date, index=True),
    sa.Column("ok", sa.Boolean),
    sa.Column("data", sa.LargeBinary),
    sa.Column("kind", sa.Enum("a", "b", name="kind")),
    sa.Column("uid", sa.Uuid),
    sa.Column("many", sa.ARRAY(sa.Integer)),
    sa.Column("parent", sa.ForeignKey("u.id")),
    sa.CheckConstraint("price > 0", name="paid"),
    comment="hello",
)


def differences(connection: sa.Connection, metadata: sa.MetaData) -> list[Any]:
    options = {"compare_type": True, "compare_server_default": True}
    return list(compare_metadata(MigrationContext.configure(connection, opts=options), metadata))


def test_alembic_finds_no_difference_to_what_it_made(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        assert [kind for kind, *_ in differences(connection, METADATA)] == ["add_table"]
        METADATA.create_all(connection)
        assert differences(connection, METADATA) == []
        other = sa.MetaData()
        table = METADATA.tables["u"].to_metadata(other)
        table.append_column(sa.Column("more", sa.Integer))
        table.c.n.server_default = sa.DefaultClause("8")
        table.c.price.type = sa.Numeric(12, 2)
        table.comment = "bye"
        found = [d[0] if isinstance(d, tuple) else d[0][0] for d in differences(connection, other)]
        assert sorted(found) == ["add_column", "add_table_comment", "modify_default", "modify_type"]


def test_alembic_alters_a_table(engine: sa.Engine, second_session: Session) -> None:
    with engine.connect() as connection:
        METADATA.create_all(connection)
        do = Operations(MigrationContext.configure(connection))
        do.add_column("u", sa.Column("more", sa.Integer, comment="new"))
        do.alter_column("u", "more", new_column_name="most")
        do.alter_column("u", "most", type_=sa.BigInteger, existing_type=sa.Integer)
        do.alter_column("u", "name", nullable=True)
        do.drop_column("u", "text")
        do.create_table_comment("u", "bye")
        do.create_check_constraint("later", "u", "day > DATE '2000-01-01'")
        do.drop_constraint("paid", "u")
        do.bulk_insert(METADATA.tables["u"].to_metadata(sa.MetaData()), [{"id": 1, "day": dt.date(2020, 1, 1)}])
    made = second_session.table("u").definition
    assert (made.column("most").type, made.column("name").nullable, made.properties["comment"]) == (
        "bigint",
        True,
        "bye",
    )
    assert ([c.name for c in made.checks], second_session.table("u").columns[-1]) == (["later"], "most")
    assert second_session.table("u").count() == 1
