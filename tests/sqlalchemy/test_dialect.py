"""SQLAlchemy's dialect: models, statements, types, definitions, reflection, without Spark."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest
import sqlalchemy as sa
from deltalake import write_deltalake
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.orm import Session as Orm

from trinity import Column, Session
from trinity.sqlalchemy import MAP, STRUCT, TINYINT, upsert

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)


class Base(DeclarativeBase):
    """The base of these tests' models."""


class Order(Base):
    """A keyed table with a column named by a keyword of SQL."""

    __tablename__ = "orders"
    __table_args__ = (sa.CheckConstraint("id > 0", name="positive"), {"trinity_properties": {"watermark-key": "at"}})

    id: Mapped[int] = mapped_column(primary_key=True)
    order: Mapped[str] = mapped_column(sa.String(20))
    at: Mapped[dt.datetime | None] = mapped_column(sa.DateTime(timezone=True))


@pytest.fixture
def filled(engine: sa.Engine) -> sa.Engine:
    Base.metadata.create_all(engine)
    with Orm(engine) as orm:
        orm.add_all([Order(id=1, order="it's \\one", at=NOON), Order(id=2, order="two", at=NOON)])
        orm.commit()
    return engine


def test_a_model_is_stored_found_changed_and_deleted(filled: sa.Engine, second_session: Session) -> None:
    assert second_session.table("orders").history().count() == 2  # a flush is a commit
    with Orm(filled) as orm:
        found = orm.scalars(sa.select(Order).order_by(Order.id.desc()).limit(1).offset(1)).one()
        assert (found.order, found.at) == ("it's \\one", NOON)
        found.order = "uno"
        orm.delete(orm.get_one(Order, 2))
        orm.commit()
        assert orm.execute(sa.select(Order.id, Order.order)).all() == [(1, "uno")]
        assert orm.scalar(sa.select(sa.func.count()).select_from(Order).where(Order.id.in_([1, 2]))) == 1
        assert orm.scalars(sa.select(Order.id).where(Order.id.in_([]))).all() == []


def test_an_upsert_is_by_the_key_and_obeys_the_watermark(filled: sa.Engine, second_session: Session) -> None:
    before = second_session.table("orders").version
    rows = [{"id": 1, "order": "late", "at": NOON - dt.timedelta(1)}, {"id": 3, "order": "three", "at": NOON}]
    with filled.connect() as connection:
        connection.execute(upsert(Order).values(rows))
        connection.execute(
            upsert(Order), [{"id": 2, "order": "zwei", "at": NOON}, {"id": 4, "order": "vier", "at": NOON}]
        )
        found = connection.execute(sa.select(Order.id, Order.order).order_by(Order.id)).all()
    assert found == [(1, "it's \\one"), (2, "zwei"), (3, "three"), (4, "vier")]
    assert second_session.table("orders").version == before + 2


def test_an_upsert_on_columns_keeps_what_it_does_not_give(engine: sa.Engine, second_session: Session) -> None:
    table = sa.Table("plain", sa.MetaData(), *(sa.Column(c, sa.Integer) for c in ("a", "order", "c")))
    table.create(engine)
    with engine.connect() as connection:
        connection.execute(table.insert(), [{"a": 1, "order": 2, "c": 3}, {"a": 2, "order": 2, "c": 3}])
        before = second_session.table("plain").version
        connection.execute(upsert(table).on("a").values([{"a": 2, "order": 9}, {"a": 3, "order": 9}]))
        assert connection.execute(sa.select(table).order_by(table.c.a)).all() == [(1, 2, 3), (2, 9, 3), (3, 9, None)]
        connection.execute(upsert(table).on(table.c.a, table.c.order).values(a=3, order=9))
        assert second_session.table("plain").version <= before + 2
        assert connection.execute(sa.select(sa.func.count()).select_from(table)).scalar() == 3
        for wrong in (
            upsert(table).on("c").values(a=1),
            upsert(table).on("a").from_select(["a"], sa.select(table.c.a)),
        ):
            with pytest.raises(sa.exc.CompileError, match="takes values"):
                connection.execute(wrong)


def test_each_statement_is_a_commit(filled: sa.Engine) -> None:
    with contextlib.suppress(ZeroDivisionError), filled.begin() as connection:
        connection.execute(sa.delete(Order).where(Order.id == 1))
        raise ZeroDivisionError
    with filled.connect() as connection:
        assert connection.get_isolation_level() == "AUTOCOMMIT"
        connection.execute(sa.update(Order).values(order="x"))
        connection.rollback()
        assert connection.execute(sa.select(Order.id, Order.order)).all() == [(2, "x")]
        with pytest.raises(sa.exc.NotSupportedError, match="Each statement is a commit"):
            connection.begin_nested()


TYPES: list[tuple[Any, str, Any, Any]] = [
    (sa.Boolean(), "boolean", True, sa.BOOLEAN),
    (TINYINT(), "tinyint", 1, TINYINT),
    (sa.SmallInteger(), "smallint", -1, sa.SMALLINT),
    (sa.Integer(), "int", 2**31 - 1, sa.INTEGER),
    (sa.BigInteger(), "bigint", -(2**63) + 1, sa.BIGINT),
    (sa.REAL(), "float", 0.5, sa.REAL),
    (sa.Float(), "double", 0.1, sa.DOUBLE),
    (sa.Float(53), "double", 0.1, sa.DOUBLE),
    (sa.Double(), "double", 0.1, sa.DOUBLE),
    (sa.Numeric(9, 2), "decimal(9,2)", Decimal("1.50"), sa.DECIMAL),
    (sa.Numeric(), "decimal(38,18)", Decimal("1.500000000000000000"), sa.DECIMAL),
    (sa.String(5), "varchar(5)", "it's", sa.VARCHAR),
    (sa.CHAR(3), "char(3)", "a\\b", sa.CHAR),
    (sa.String(), "string", "\n%?:a", sa.String),
    (sa.Text(), "string", "ž😀", sa.String),
    (sa.Enum("a", "bc", name="kind"), "varchar(2)", "bc", sa.VARCHAR),
    (sa.Uuid(), "char(32)", uuid.UUID(int=7), sa.CHAR),
    (sa.JSON(), "string", {"a": [1, None]}, sa.String),
    (sa.LargeBinary(), "binary", b"\0'\\", sa.LargeBinary),
    (sa.Date(), "date", dt.date(2020, 2, 29), sa.DATE),
    (sa.Time(), "time", dt.time(23, 59, 59, 5), sa.TIME),
    (sa.DateTime(), "timestamp_ntz", dt.datetime(2020, 1, 1, 12, 0, 0, 7), sa.TIMESTAMP),
    (sa.DateTime(timezone=True), "timestamp", NOON, sa.TIMESTAMP),
]


def test_values_of_all_types_come_back(engine: sa.Engine, second_session: Session) -> None:
    table = sa.Table("types", sa.MetaData(), *(sa.Column(f"c{n}", kind) for n, (kind, *_) in enumerate(TYPES)))
    table.create(engine)
    assert [c.type for c in second_session.table("types").definition.visible] == [text for _, text, *_ in TYPES]
    row = {f"c{n}": value for n, (_, _, value, _) in enumerate(TYPES)}
    with engine.connect() as connection:
        connection.execute(table.insert(), [row, dict.fromkeys(row)])
        found = connection.execute(sa.select(table).order_by(table.c.c1)).all()
        assert found == [(None,) * len(row), tuple(row.values())]
        del row["c5"]  # Spark converts the double of a single row to a float
        connection.execute(table.delete())
        connection.execute(table.insert().values(row))
        assert connection.execute(sa.select(*(table.c[name] for name in row))).all() == [tuple(row.values())]
    reflected = sa.Table("types", sa.MetaData(), autoload_with=engine)
    for column, (_, text, _, read) in zip(reflected.columns, TYPES, strict=True):
        assert type(column.type) is read, text
        assert engine.dialect.type_compiler_instance.process(column.type).lower().replace(", ", ",") == text


NESTED = "struct<`a b`:array<array<int>>,m:map<string,decimal(3,1)>>"


def test_nested_types_are_reflected_and_written(engine: sa.Engine, second_session: Session) -> None:
    second_session.create_table("nested", [Column("s", NESTED)])
    table = sa.Table("nested", sa.MetaData(), autoload_with=engine)
    kind = table.c.s.type
    assert isinstance(kind, STRUCT)
    assert isinstance(kind.fields["m"], MAP)
    assert isinstance(kind.fields["a b"], sa.ARRAY)
    table.to_metadata(sa.MetaData(), name="again").create(engine)
    assert second_session.table("again").definition.column("s").type == NESTED
    wide = sa.Table("wide", sa.MetaData(), sa.Column("a", sa.ARRAY(sa.Integer, dimensions=2)))
    wide.create(engine)
    assert second_session.table("wide").definition.column("a").type == "array<array<int>>"


@pytest.mark.parametrize("fmt", ["parquet", "delta", "iceberg"])
def test_a_definition_is_read_as_it_was_written(engine: sa.Engine, second_session: Session, fmt: str) -> None:
    table = sa.Table(
        "t",
        sa.MetaData(),
        sa.Column("id", sa.Integer, nullable=False, comment="who it's"),
        sa.Column("day", sa.Date, nullable=False),
        sa.Column("n", sa.Integer, sa.CheckConstraint("n > 1", name="above"), server_default=sa.text("7")),
        sa.Column("text", sa.String, server_default="it's", index=True),
        sa.Column("other", sa.ForeignKey(f"{fmt}.default.t.id")),
        schema=f"{fmt}.default",
        comment="a \\ 'table'",
        trinity_format=fmt,
        trinity_key=["id", "day"],
        trinity_partition_by="day",
        trinity_properties={"bucket": 2},
    )
    table.metadata.create_all(engine)
    table.metadata.create_all(engine)  # a second call checks for existing tables
    made = second_session.table(f"{fmt}.default.t").definition
    assert (made.primary_key, made.partition_by) == (("id", "day"), ("day",))
    seen = sa.inspect(engine)
    assert (fmt == "parquet") or (f"{fmt}.default" in seen.get_schema_names())
    assert (seen.get_table_names(f"{fmt}.default"), seen.get_view_names(f"{fmt}.default")) == (["t"], [])
    found = sa.Table("t", sa.MetaData(), schema=f"{fmt}.default", autoload_with=engine)
    assert [c.name for c in found.primary_key] == ["id", "day"]
    assert [(c.nullable, c.comment) for c in found.c] == [(False, "who it's"), (False, None), *[(True, None)] * 3]
    assert [str(c.server_default.arg) if c.server_default is not None else None for c in found.c][2:4] == [  # type: ignore[attr-defined]
        made.column("n").default,
        made.column("text").default,
    ]
    assert found.comment == "a \\ 'table'"
    (check,) = (c for c in found.constraints if isinstance(c, sa.CheckConstraint))
    assert (check.name, str(check.sqltext)) == ("above", "n > 1")
    options = found.dialect_options["trinity"]
    assert options["partition_by"] == ["day"]
    assert options["properties"].get("bucket") == "2"
    assert (found.foreign_keys, found.indexes) == (set(), set())
    table.metadata.drop_all(engine)
    assert not sa.inspect(engine).has_table("t", f"{fmt}.default")


def test_a_secret_among_the_properties_of_a_table_of_others_is_hidden(
    engine: sa.Engine, second_session: Session, tmp_path: Path
) -> None:
    write_deltalake(str(tmp_path / "theirs"), pa.table({"id": [1]}))
    log = tmp_path / "theirs/_delta_log" / f"{0:020d}.json"
    settings = {"delta.remote.password": "open sesame", "delta.appendOnly": "false", "comment": "theirs"}
    log.write_text(log.read_text().replace('"configuration":{}', f'"configuration":{json.dumps(settings)}'))
    second_session.register("theirs", "delta", tmp_path / "theirs")
    found = sa.Table("theirs", sa.MetaData(), autoload_with=engine)
    assert found.comment == "theirs"
    assert found.dialect_options["trinity"]["properties"] == {
        "delta.remote.password": "***", "delta.appendOnly": "false"
    }  # fmt: skip


def test_what_is_not_made(engine: sa.Engine) -> None:
    unique = sa.Table("u", sa.MetaData(), sa.Column("a", sa.Integer, unique=True))
    with pytest.warns(sa.exc.SAWarning, match=r"UNIQUE \(a\) is left out"):
        unique.create(engine)
    computed = sa.Table("c", sa.MetaData(), sa.Column("a", sa.Integer, sa.Computed("1 + 1")))
    with pytest.raises(sa.exc.CompileError, match="computed"):
        computed.create(engine)
    plain = sa.Table("p", sa.MetaData(), sa.Column("a", sa.Integer, primary_key=True), trinity_key=())
    plain.create(engine)
    seen = sa.inspect(engine)
    assert seen.get_pk_constraint("p")["constrained_columns"] == []
    with pytest.raises(sa.exc.NoSuchTableError):
        seen.get_columns("nosuch")
    with engine.connect() as connection, pytest.raises(sa.exc.CompileError, match="locks no rows"):
        connection.execute(sa.select(plain).with_for_update())


def test_what_tools_ask_when_they_connect(filled: sa.Engine, second_session: Session) -> None:
    """The schemas, the tables, the first rows, and a plan, as Superset asks for them."""
    second_session.create_schema("sales")
    seen = sa.inspect(filled)
    assert seen.get_schema_names() == ["default", "sales", "delta.default", "iceberg.default"]
    assert (seen.default_schema_name, seen.get_table_names(), seen.get_table_names("sales")) == (
        "default",
        ["orders"],
        [],
    )
    with filled.connect() as connection:
        assert connection.exec_driver_sql("SELECT 1").scalar() == 1
        text = "SELECT `id`, `order` FROM default.orders ORDER BY id LIMIT 1"
        result = connection.execute(sa.text(text))
        assert (list(result.keys()), result.all()) == (["id", "order"], [(1, "it's \\one")])
        assert "orders at version" in str(connection.execute(sa.text(f"EXPLAIN {text}")).scalar())
        assert connection.execute(sa.text("SELECT id FROM orders WHERE id = :id"), {"id": 2}).scalars().all() == [2]


def test_the_url_says_where(warehouse: Path, second_session: Session) -> None:
    second_session.create_schema("delta.sales")
    url = f"trinity:///{warehouse}?engine=local&catalog=delta&schema=sales&spark.sql.session.timeZone=Asia/Tokyo"
    engine = sa.create_engine(url)
    sa.Table("t", sa.MetaData(), sa.Column("at", sa.DateTime(timezone=True))).create(engine)
    assert second_session.tables(schema="delta.sales") == ["delta.sales.t"]
    with engine.connect() as connection:
        table = sa.Table("t", sa.MetaData(), autoload_with=connection)
        connection.execute(table.insert().values(at=NOON))
        at = connection.execute(sa.select(table)).scalar_one()
        assert (at, at.hour) == (NOON, 21)
    engine.dispose()
    given = engine.dialect.create_connect_args(
        sa.make_url("trinity:///s3://b/p?storage.endpoint=http://h&local_bytes=5")
    )
    assert given == ((), {"warehouse": "s3://b/p", "storage_options": {"endpoint": "http://h"}, "local_bytes": 5})
    for wrong in ("trinity://host/lake", "trinity://", "trinity:///lake?nosuch=1"):
        with pytest.raises(sa.exc.ArgumentError):
            engine.dialect.create_connect_args(sa.make_url(wrong))


def test_both_instants_of_a_repeated_hour(warehouse: Path) -> None:
    """Where the clocks go back, two instants have one local time; Python tells them apart by ``fold``."""
    engine = sa.create_engine(f"trinity:///{warehouse}?engine=local&spark.sql.session.timeZone=Europe/Berlin")
    table = sa.Table("t", sa.MetaData(), sa.Column("at", sa.DateTime(timezone=True)))
    table.create(engine)
    instants = [dt.datetime(2024, 10, 27, hour, 30, tzinfo=dt.UTC) for hour in range(3)]
    with engine.connect() as connection:
        connection.execute(table.insert(), [{"at": at} for at in instants])
        found = connection.execute(sa.select(table).order_by(table.c.at)).scalars().all()
        assert [at.astimezone(dt.UTC) for at in found] == instants
        clocks = connection.exec_driver_sql("SELECT array(at) AS clocks FROM t ORDER BY at").scalars().all()
    assert [(at.hour, at.fold, at.tzinfo) for (at,) in clocks] == [(2, 0, None), (2, 1, None), (3, 0, None)]
    engine.dispose()


@pytest.mark.parametrize(
    ("zone", "clock", "before_utc"),
    [
        ("America/New_York", dt.datetime(9999, 12, 31, 23, 59, 59, 999999), dt.timedelta(hours=5)),
        ("+09:00", dt.datetime(1, 1, 1), dt.timedelta(hours=-9)),
        ("Asia/Kolkata", dt.datetime(1, 1, 1), dt.timedelta(hours=-5, minutes=-53, seconds=-28)),
    ],
)
def test_the_ends_of_the_calendar(
    warehouse: Path, second_session: Session, zone: str, clock: dt.datetime, before_utc: dt.timedelta
) -> None:
    """The instant is in year 0 or 10000 of UTC; the local time of the session's zone is not."""
    micros = (clock - dt.datetime(1970, 1, 1) + before_utc) // dt.timedelta(microseconds=1)
    at = pa.array([micros], pa.int64()).cast(pa.timestamp("us", "UTC"))
    second_session.create_table("parquet.default.t", pa.table({"at": at}))
    engine = sa.create_engine(f"trinity:///{warehouse}?engine=local&spark.sql.session.timeZone={quote(zone)}")
    with engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT at, array(at) AS among FROM parquet.default.t").all()
    assert found == [(clock, [clock])]
    engine.dispose()


def test_a_table_of_another_schema_is_read_and_changed(engine: sa.Engine, second_session: Session) -> None:
    """SQLAlchemy writes the schema before each column."""
    second_session.create_schema("sales")
    metadata = sa.MetaData()
    table, here = (
        sa.Table("t", metadata, *(sa.Column(c, sa.Integer, primary_key=c == "a") for c in "ab"), schema=schema)
        for schema in ("parquet.sales", None)
    )
    metadata.create_all(engine)
    with engine.connect() as connection:
        connection.execute(table.insert(), [{"a": 1, "b": 1}, {"a": 2, "b": 2}, {"a": 3, "b": 3}])
        connection.execute(here.insert(), [{"a": 2, "b": 20}])
        connection.execute(table.update().where(table.c.a == 1).values(b=table.c.b + 9))
        connection.execute(table.delete().where(table.c.a == 3))
        assert connection.execute(sa.select(table).order_by(table.c.a)).all() == [(1, 10), (2, 2)]
        groups = sa.select(table.c.b, sa.func.count().label("n")).group_by(table.c.b).having(table.c.b > 2)
        assert connection.execute(groups).all() == [(10, 1)]
        other = here.alias()
        assert connection.execute(sa.select(table.c.b, other.c.b).join(other, table.c.a == other.c.a)).all() == [
            (2, 20)
        ]


def test_names_with_quotes(engine: sa.Engine, second_session: Session) -> None:
    table = sa.Table('a "b" `c`', sa.MetaData(), sa.Column("d`e", sa.Integer), sa.Column('"', sa.Integer))
    table.create(engine)
    assert second_session.tables() == ['parquet.default.`a "b" ``c```']
    with engine.connect() as connection:
        connection.execute(table.insert().values({"d`e": 1, '"': 2}))
        result = connection.execute(sa.select(table))
        assert (list(result.keys()), result.all()) == (["d`e", '"'], [(1, 2)])


def test_values_of_another_class_are_stored_as_the_type_has_them(engine: sa.Engine) -> None:
    money = sa.Column("m", sa.Numeric(8, 4), server_default="2.5")
    table = sa.Table(
        "t", sa.MetaData(), sa.Column("d", sa.Date), money, sa.Column("n", sa.Integer, server_default="-7")
    )
    table.create(engine)
    with engine.connect() as connection:
        connection.execute(table.insert(), [{"d": NOON, "m": 15.7563}, {"d": NOON, "m": Decimal("15.7563")}])
        connection.execute(table.insert().values(d=NOON, m=15.7563))
        assert connection.execute(sa.select(table)).all() == [(NOON.date(), Decimal("15.7563"), -7)] * 3
        connection.execute(table.insert().values(d=None))
        assert connection.execute(sa.select(table.c.m).where(table.c.d.is_(None))).all() == [(Decimal("2.5"),)]
        assert connection.execute(sa.select(sa.literal(-5)).where(sa.literal(1) == 1)).scalar() == -5


WRONG: list[tuple[Any, type[sa.exc.DBAPIError], str]] = [
    (sa.insert(Order).values(id=-1, order="x"), sa.exc.IntegrityError, "CONSTRAINT_VIOLATION"),
    (sa.insert(Order).values(order="x"), sa.exc.IntegrityError, "CONSTRAINT_VIOLATION"),
    (sa.text("SELECT * FROM nosuch"), sa.exc.ProgrammingError, "TABLE_NOT_FOUND"),
]


def test_an_error_has_a_code(filled: sa.Engine) -> None:
    with filled.connect() as connection:
        for statement, kind, code in WRONG:
            with pytest.raises(kind) as caught:
                connection.execute(statement)
            assert getattr(caught.value.orig, "code", None) == code
