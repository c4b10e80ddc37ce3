"""The options that commands of benchmarks share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Rows = Annotated[int, typer.Option(min=1000, help="Rows of the base.")]
Runs = Annotated[int, typer.Option(min=1, help="Rounds per case; the median counts.")]
Formats = Annotated[str, typer.Option(help="Which formats, with commas.")]
ResultsFolder = Annotated[Path, typer.Option(help="Folder of the result file.")]
Scratch = Annotated[Path | None, typer.Option(help="Folder for scratch files; needs some 10 GB.")]
Quick = Annotated[bool, typer.Option("--quick", help="20,000 rows and one round: figures that say nothing.")]
