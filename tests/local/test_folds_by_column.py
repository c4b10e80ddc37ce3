"""The fold by column, in Arrow and in SQL: generated row versions fold to the rows of the model, in every backend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import count

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import trinity
from tests.support.fold_backends import (
    BACKENDS,
    CARE,
    KEYS_IN_ARROW,
    PROFILES,
    WRITES,
    cannot_say,
    definition_of,
    play,
    stored,
    written,
)
from trinity import Column, Session, Table, TrinityError
from trinity.engine.reading.plan import plan_read
from trinity.spi import Tier
from trinity_conformance.generate.engine_histories import engine_histories
from trinity_conformance.playing.differences import compare
from trinity_conformance.playing.traces import History

pytestmark = pytest.mark.inner


@pytest.fixture(scope="module")
def definitions() -> Iterator[Session]:
    """Yield a session for definitions of tables that hold no rows."""
    with trinity.connect(catalogs={"memory": {"connector": "memory"}}, catalog="memory", engine="local") as opened:
        yield opened


NAMES = (f"memory.default.t{number}" for number in count())


def check_backends(session: Session, history: History) -> Counter[str]:
    """Fold the writes of a history in every backend that supports its functions, and count the backends that did."""
    model = written(history)
    definition = definition_of(history.shape, session, next(NAMES))
    versions = stored(definition, model.arrivals())
    folded = Counter[str]()
    for name, fold in BACKENDS.items():
        if cannot_say(name, definition):
            continue
        folded[name] += 1
        if model.overflows():
            with pytest.raises(TrinityError) as caught:
                fold(definition, versions)
            assert caught.value.code == "NUMERIC_VALUE_OUT_OF_RANGE"
        else:
            assert compare(model, model.merged(), fold(definition, versions).to_pylist()) is None, name
    return folded


@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(history=st.sampled_from(PROFILES).flatmap(lambda profile: engine_histories(profile, emphasis=WRITES)))
def test_generated_row_versions_fold_as_the_model_does(definitions: Session, history: History) -> None:
    assert check_backends(definitions, history)["arrow"] == 1


@pytest.mark.full
@settings(max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))
@given(history=st.sampled_from(PROFILES).flatmap(lambda profile: engine_histories(profile, emphasis=WRITES)))
def test_many_generated_row_versions_fold_as_the_model_does(definitions: Session, history: History) -> None:
    assert check_backends(definitions, history)["arrow"] == 1


@pytest.fixture(scope="module")
def warehouses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with trinity.connect(tmp_path_factory.mktemp("folds"), engine="local") as opened:
        yield opened


@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(history=st.sampled_from(KEYS_IN_ARROW).flatmap(lambda profile: engine_histories(profile, emphasis=CARE)))
def test_compactions_between_commits_change_no_fold(warehouses: Session, history: History) -> None:
    play(warehouses, next(NAMES).replace("memory", "parquet"), history)


@pytest.mark.full
@pytest.mark.parametrize("fmt", ["parquet", "delta", "iceberg"])
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(history=st.sampled_from(KEYS_IN_ARROW).flatmap(lambda profile: engine_histories(profile, emphasis=CARE)))
def test_compactions_of_every_format_change_no_fold(warehouses: Session, fmt: str, history: History) -> None:
    play(warehouses, next(NAMES).replace("memory", fmt), history)


# -- tables ---------------------------------------------------------------------------------------------------


def flights(session: Session, fmt: str) -> Table:
    return session.create_table(
        f"{fmt}.default.flights",
        [Column(name, kind) for name, kind in FLIGHT.items()],
        primary_key=["id"],
        properties={
            "merge-engine": "partial-update",
            "fields.v1.sequence-group": "gate,miles",
            "fields.miles.aggregate-function": "sum",
        },
    )


FLIGHT = {"id": "int", "gate": "string", "miles": "bigint", "v1": "int", "note": "string"}


def put_some(table: Table, *rows: dict[str, object], only: tuple[str, ...] | None = None) -> None:
    schema = pa.schema([c.to_arrow() for c in table.definition.visible if only is None or c.name in only])
    table.upsert(pa.Table.from_pylist(list(rows), schema))


def test_tables_of_every_format_are_folded_without_spark(local: Session, local_fmt: str) -> None:
    table = flights(local, local_fmt)
    put_some(table, {"id": 1, "gate": "B4", "miles": 5, "v1": 2, "note": "n"}, {"id": 2, "miles": 1, "v1": 1})
    put_some(table, {"id": 1, "gate": "A1", "miles": 7, "v1": 1}, {"id": 3, "note": "alone"})
    put_some(table, {"id": 2, "v1": 3}, only=("id", "v1"))
    rows = {row["id"]: row for row in table.to_arrow().to_pylist()}
    assert rows == {
        1: {"id": 1, "gate": "B4", "miles": 12, "v1": 2, "note": "n"},
        2: {"id": 2, "gate": None, "miles": 1, "v1": 3, "note": None},
        3: {"id": 3, "gate": None, "miles": None, "v1": None, "note": "alone"},
    }
    assert sorted(table.to_arrow(["miles"]).column("miles").to_pylist(), key=str) == [1, 12, None]


def test_a_resolve_folds_what_the_log_meets_and_leaves_base_files(local: Session, local_fmt: str) -> None:
    table = flights(local, local_fmt)
    put_some(table, *({"id": n, "gate": f"G{n}", "miles": n, "v1": 1} for n in range(20)))
    table.compact("full")
    before = {f.path for f in table.splits().files}
    for round_ in (2, 3):  # the second one folds the run of the first
        put_some(table, {"id": 3, "miles": 100, "v1": round_}, {"id": 30, "gate": "new", "v1": round_})
        table.delete([4])
        wanted = sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"])
        assert not table.compact("resolve").skipped
        files = {f.path: f for f in table.splits().files}
        assert before < files.keys()
        assert {f.tier for f in files.values()} == {Tier.BASE}
        assert sum(f.deletes.rows for f in files.values() if f.deletes) == 2
        assert sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"]) == wanted
        assert [row["miles"] for row in wanted if row["id"] == 3] == [3 + 100 * (round_ - 1)]
        assert table.changes(table.splits().version - 1).to_arrow().num_rows == 0
    table.compact("full")  # there is no log that it could fold
    assert not any(f.deletes for f in table.splits().files)
    assert sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"]) == wanted


def test_a_total_out_of_range_names_column_and_key_when_it_is_read(local: Session, local_fmt: str) -> None:
    table = local.create_table(
        f"{local_fmt}.default.totals",
        [Column("k", "string"), Column("n", "tinyint"), Column("m", "tinyint")],
        primary_key=["k"],
        properties={"merge-engine": "aggregation", "fields.default-aggregate-function": "sum"},
    )
    put_some(table, {"k": "a", "n": 100, "m": 1}, {"k": "a", "n": 100, "m": 2})
    with pytest.raises(TrinityError) as caught:
        table.to_arrow()
    assert caught.value.code == "NUMERIC_VALUE_OUT_OF_RANGE"
    assert "column 'n' of the row with key (k = 'a'): the aggregated value 200" in caught.value.message
    assert table.to_arrow(["k", "m"]).to_pylist() == [{"k": "a", "m": 3}]
    with pytest.raises(TrinityError, match=r"column 'n' of the row with key \(k = 'a'\): the aggregated value 200"):
        table.changes(table.splits().version - 1).to_arrow()
    put_some(table, {"k": "a", "n": -100})
    assert table.to_arrow().to_pylist() == [{"k": "a", "n": 100, "m": 3}]


def test_a_total_out_of_range_names_a_key_as_sql_writes_it(local: Session) -> None:
    table = local.create_table(
        "memory.default.totals",
        [Column("k", "double"), Column("n", "tinyint")],
        primary_key=["k"],
        properties={"merge-engine": "aggregation", "fields.default-aggregate-function": "sum"},
    )
    put_some(table, {"k": float("nan"), "n": 100}, {"k": float("nan"), "n": 100})
    with pytest.raises(TrinityError, match=r"with key \(k = NaN\): the aggregated value 200"):
        table.to_arrow()


def test_a_function_that_only_spark_has_is_named(local: Session, local_fmt: str) -> None:
    table = local.create_table(
        f"{local_fmt}.default.sketches",
        [Column("k", "int"), Column("seen", "binary")],
        primary_key=["k"],
        properties={"merge-engine": "aggregation", "fields.seen.aggregate-function": "theta_sketch"},
    )
    put_some(table, {"k": 1})
    why = plan_read(table.splits()).not_local
    assert why is not None
    assert "column 'seen' folds by theta_sketch" in why.reason
    with pytest.raises(TrinityError) as caught:
        table.to_arrow()
    assert caught.value.code == "NOT_SUPPORTED"
