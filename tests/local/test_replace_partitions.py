"""Names of Iceberg's partition fields through CREATE OR REPLACE, ALTER and RESTORE: Iceberg's Java library loads all.

It keeps the partition specs of all versions of a table, and refuses to load one in which a partition field has the
name of a column that is not its source, while its source is a column, too.
"""

from __future__ import annotations

import contextlib
import tempfile
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import trinity
from tests.support.iceberg import pyiceberg
from tests.support.tables import arrow_rows
from trinity import Session, Table, TrinityError

NAMES = ("a", "b", "a_bucket", "b_bucket")
TYPES = ("INT", "STRING")


def replacement(random: Random) -> str:
    names = random.sample(NAMES, random.randint(2, 3))
    source = random.choice(names)
    partition = random.choice(("", f"PARTITIONED BY ({source})", f"PARTITIONED BY (bucket(2, {source}))"))
    return f"CREATE OR REPLACE TABLE t ({', '.join(f'{n} {random.choice(TYPES)}' for n in names)}) {partition}"


def alteration(random: Random) -> str:
    name, other = random.sample(NAMES, 2)
    return random.choice(
        (
            f"ALTER TABLE t ADD COLUMN {name} {random.choice(TYPES)}",
            f"ALTER TABLE t RENAME COLUMN {name} TO {other}",
            f"ALTER TABLE t DROP COLUMN {name}",
        )
    )


def history(seed: int) -> list[str]:
    """Return statements: the first makes a table; "RESTORE n" goes back to the version after statement n."""
    random = Random(seed)
    drawn = [replacement(random)]
    for number in range(random.randint(2, 8)):
        draw = random.choice((replacement, alteration, lambda r, n=number: f"RESTORE {r.randint(0, n)}"))
        drawn.append(draw(random))
    return drawn


HISTORIES = st.integers(0, 2**32).map(history)


def misnamed(table: Table) -> list[str]:
    """Return the partition fields of any spec for which Iceberg's Java library refuses to load the table."""
    metadata = pyiceberg(table).metadata
    columns = {f.field_id: f.name for f in metadata.schema().fields}
    ids = {name: number for number, name in columns.items()}
    fields = (f for spec in metadata.partition_specs for f in spec.fields if f.source_id in columns)
    return [str(f) for f in fields if ids.get(f.name, f.source_id) != f.source_id]


@example(
    ["CREATE TABLE t (a INT, b INT) PARTITIONED BY (bucket(2, a))", "CREATE OR REPLACE TABLE t (a INT, a_bucket INT)"]
)
@example(
    [
        "CREATE TABLE t (a INT, a_bucket INT)",
        "CREATE OR REPLACE TABLE t (a INT) PARTITIONED BY (bucket(2, a))",
        "RESTORE 0",
    ]
)
@settings(max_examples=10)
@given(HISTORIES)
def test_every_version_can_be_loaded(statements: list[str]) -> None:
    check(statements)


@pytest.mark.full
@settings(max_examples=100)
@given(HISTORIES)
def test_every_version_of_many_histories_can_be_loaded(statements: list[str]) -> None:
    check(statements)


def check(statements: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder, trinity.connect(folder, engine="local") as session:
        session.use("iceberg", "default")
        versions: list[tuple[int, list[tuple[Any, ...]]]] = []
        for number, statement in enumerate(statements):
            play(session, statement, versions)
            table = session.table("t")
            values = ", ".join("'1'" if c.type == "string" else str(number) for c in table.definition.visible)
            session.sql(f"INSERT INTO t VALUES ({values})")
            versions.append((table.version, arrow_rows(table)))
            assert misnamed(table) == [], statement


def play(session: Session, statement: str, versions: list[tuple[int, list[tuple[Any, ...]]]]) -> None:
    """Run a statement, which may be refused; a restore brings back the rows of then."""
    if not statement.startswith("RESTORE"):
        with contextlib.suppress(TrinityError):
            session.sql(statement)
        return
    version, then = versions[int(statement.split()[1])]
    with contextlib.suppress(TrinityError):
        session.table("t").restore(version)
        assert arrow_rows(session.table("t")) == then
