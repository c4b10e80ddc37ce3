"""How long a change of 1,000 rows takes through two tables: ``python -m benchmarks.lag``.

Rows go into an Iceberg table of a million, and a Delta table of totals by customer follows it: the time from before the
commit to the first until the totals, read, have the change.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Annotated, Final

import pyarrow as pa
import pyarrow.compute as pc
import typer

import trinity
from trinity import Session, Table, cdc

_SETTINGS: Final = {"spark.master": "local[2]", "spark.driver.memory": "4g", "spark.ui.enabled": "false"}
_CUSTOMERS: Final = 10_000
_CHANGED: Final = 1_000


def run(
    rows: Annotated[int, typer.Option(min=1000, help="Rows of the first table.")] = 1_000_000,
    runs: Annotated[int, typer.Option(min=1, help="Changes; the median counts.")] = 7,
    source: Annotated[str, typer.Option(help="Format of the first table.")] = "iceberg",
    target: Annotated[str, typer.Option(help="Format of the second.")] = "delta",
) -> None:
    """Measure the lag from a commit to the totals that follow it."""
    with (
        tempfile.TemporaryDirectory() as folder,
        trinity.connect(Path(folder) / "warehouse", spark_settings=_SETTINGS) as session,
    ):
        orders, totals = _tables(session, source, target)
        orders.upsert(_orders(0, rows, 0))
        orders.compact(full=True)
        started = time.perf_counter()
        _follow(orders, totals)
        print(f"{rows} rows at first: {time.perf_counter() - started:.2f} s", flush=True)
        lags = [_lag(orders, totals, change) for change in range(1, runs + 2)][1:]  # the first one warms up
        print(f"{source} to {target}, {_CHANGED} rows: {median(lags):.2f} s ({min(lags):.2f} to {max(lags):.2f})")
        session.spark.stop()


def _tables(session: Session, source: str, target: str) -> tuple[Table, Table]:
    session.sql(
        f"CREATE TABLE {source}.default.orders (id BIGINT PRIMARY KEY, customer BIGINT, amount BIGINT, ts BIGINT) "
        "TBLPROPERTIES ('watermark-key' = 'ts')"
    )
    session.sql(
        f"CREATE TABLE {target}.default.totals (customer BIGINT, amount BIGINT, orders BIGINT, kind STRING, "
        "PRIMARY KEY (customer)) TBLPROPERTIES ('merge-engine' = 'aggregation', 'rowkind.field' = 'kind', "
        "'fields.default-aggregate-function' = 'sum')"
    )
    return session.table(f"{source}.default.orders"), session.table(f"{target}.default.totals")


def _orders(first: int, count: int, ts: int) -> pa.Table:
    ids = pa.array(range(first, first + count), pa.int64())
    customers = pa.array([i % _CUSTOMERS for i in range(first, first + count)], pa.int64())
    return pa.table({"id": ids, "customer": customers, "amount": pc.add(ids, ts), "ts": pa.repeat(ts, count)})


def _follow(orders: Table, totals: Table) -> None:
    cdc.follow(orders, totals, transform=lambda rows: rows.selectExpr("customer", "amount", "1L AS orders", "kind"))


def _lag(orders: Table, totals: Table, change: int) -> float:
    changed = _orders(change * _CHANGED, _CHANGED, change)
    customer = change * _CHANGED % _CUSTOMERS
    before = _amount(totals, customer)
    started = time.perf_counter()
    orders.upsert(changed)
    _follow(orders, totals)
    after = _amount(totals, customer)
    seconds = time.perf_counter() - started
    assert after == before + change, (before, after)  # the old row was taken back
    return seconds


def _amount(totals: Table, customer: int) -> int:
    found = totals.to_df(where=f"customer = {customer}").first()
    assert found is not None
    return int(found.amount)


def main() -> None:
    """Run the command."""
    typer.run(run)


if __name__ == "__main__":
    main()
