"""The known differences in what Paimon 0.9.0 and Trinity read, each with the rule of semantics behind it.

It is one table. :mod:`tests.paimon.prediction` implements each difference in the model's folds under its name, so that
a difference explains exactly one value: the one that Paimon must have returned. Differences with ``by_hand`` occur in
no generated history, mostly because Paimon cannot read such tables; :mod:`tests.paimon.cases` has an example of each.
The table is printed in docs/paimon.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Difference:
    """A difference between Paimon and Trinity.

    Attributes:
        name: its name in code.
        rules: the ids of the rules that Trinity follows instead, separated by spaces.
        paimon: the behaviour of Paimon 0.9.0.
        by_hand: True when generated histories do not show it.
    """

    name: str
    rules: str
    paimon: str
    by_hand: bool = False


DIFFERENCES: Final[tuple[Difference, ...]] = (
    Difference("lone-row", "G2 A3", "a row that is alone in its key, or in its commit, is returned as it was written"),
    Difference("commits-fold", "L2 D4", "each commit is folded by itself; what comes of it is an add to the next fold"),
    Difference("compaction-folds", "L3 E3", "compaction replaces rows by their fold, an add to whatever comes later"),
    Difference("compacted-deletes", "U4 E3", "full compaction forgets retracts that were folded into no add"),
    Difference("by-arrival", "A2", "functions see rows by arrival; a late one is put before all others"),
    Difference("retracts-show", "D6", "in aggregation tables several retracts without an add are a row"),
    Difference("omitted-null", "P1", "a column that a row omits is NULL in it, also in a group"),
    Difference("sequence-column", "E1", "in aggregation tables a sequence.field column has the default function"),
    Difference("kind-column", "E1", "in aggregation tables the rowkind.field column has the default function"),
    Difference("blank-texts", "A3", "listagg joins empty and blank texts, too"),
    Difference("product-of-nothing", "A3", "what a product of nothing yet takes back is its value then"),
    Difference("element-order", "A3", "merge_map, collect with distinct, nested_update with a key: in hash order"),
    Difference("wraps", "A4", "integer sums and products wrap around in the column's type", by_hand=True),
    Difference(
        "first-array", "A3", "the first array of nested_update stays as it is, equal keys and all", by_hand=True
    ),
    Difference("default-on-sequence", "G7", "the default function also folds sequence columns of groups", by_hand=True),
    Difference("decimal-null", "A4", "a sum of DECIMAL that does not fit reads NULL", by_hand=True),
    Difference("no-way-to-delete", "D2 L8", "a retract without a way to delete fails when it is merged", by_hand=True),
    Difference("no-add-after-delete", "D3", "an add after remove-record-on-delete fails the merge", by_hand=True),
    Difference("null-key", "D6 L8", "retracts alone in a commit make a file that cannot be read", by_hand=True),
    Difference("no-retract", "D4 L8", "a retract of a function that has none fails when it is merged", by_hand=True),
    Difference("null-retract", "A3 L8", "collect and merge_map that take back NULL fail the merge", by_hand=True),
    Difference("endless-quotient", "A3 L8", "a quotient of DECIMAL without an end fails the merge", by_hand=True),
    Difference("null-elements", "A3", "a NULL row in an array of nested_update becomes a row of NULLs", by_hand=True),
    Difference("bitmap-form", "A3", "rbm64 has the bytes of a Java class, not the portable form", by_hand=True),
)
"""All differences."""
