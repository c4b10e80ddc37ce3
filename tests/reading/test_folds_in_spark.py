"""The fold by column in Spark: generated row versions of many tables, in one job."""

from __future__ import annotations

import pytest

from tests.support.fold_backends import PROFILES, WRITES, definition_of, in_spark, stored, written
from trinity import Session
from trinity_conformance.generate.engine_histories import engine_histories
from trinity_conformance.generate.histories import sample
from trinity_conformance.play.differences import compare


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
