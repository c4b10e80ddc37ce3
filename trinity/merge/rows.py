"""What a fold asks of the rows that it folds: a Spark DataFrame has it, and so has the text of a query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["AnyRows", "Rows"]


class Rows(Protocol):
    """Rows to which Spark SQL text can be applied, under the names that a DataFrame has for that."""

    @property
    def dtypes(self) -> list[tuple[str, str]]:
        """(name, Spark's text of the type) of the columns."""

    def where(self, condition: str, /) -> Self:
        """The rows for which a condition holds."""

    def selectExpr(self, *expr: str) -> Self:  # noqa: N802 - Spark's name
        """The values of some expressions, or ``*``."""

    def drop(self, *cols: str) -> Self:
        """The rows without some columns."""


AnyRows = TypeVar("AnyRows", bound=Rows)
