"""The fold by column in Spark: generated row versions of many tables, in one job."""

from __future__ import annotations

from pathlib import Path

import pytest

import trinity
from tests.support.fold_backends import (
    CARE,
    KEYS_IN_ARROW,
    PROFILES,
    WRITES,
    definition_of,
    in_spark,
    play,
    stored,
    written,
)
from trinity import Session
from trinity_conformance.generate.engine_histories import engine_histories
from trinity_conformance.generate.histories import sample
from trinity_conformance.playing.differences import compare


@pytest.mark.full
def test_generated_row_versions_fold_as_the_model_does(session: Session) -> None:
    histories = [sample(engine_histories(p, emphasis=WRITES), number) for number, p in enumerate(PROFILES[:39])]
    models = [model for model in map(written, histories) if not model.overflows()]
    assert len(models) > 20
    definitions = [definition_of(m.shape, session, f"parquet.default.t{n}") for n, m in enumerate(models)]
    versions = [stored(d, m.arrivals()) for d, m in zip(definitions, models, strict=True)]
    folded = in_spark(session, list(zip(definitions, versions, strict=True)))
    for model, rows in zip(models, folded, strict=True):
        assert compare(model, model.merged(), rows) is None


@pytest.mark.full
def test_what_this_process_has_compacted_is_what_spark_reads(session: Session, warehouse: Path, fmt: str) -> None:
    with trinity.connect(warehouse, engine="local") as local:
        for number, profile in enumerate(KEYS_IN_ARROW[:26]):
            name = f"{fmt}.default.t{number}"
            model = play(local, name, sample(engine_histories(profile, emphasis=CARE), number))
            if not model.overflows():
                rows = session.table(name).to_df().select(*model.shape.names).toArrow().to_pylist()
                assert compare(model, model.merged(), rows) is None
