"""Other systems' upserts and statements under the laws of docs/semantics.md; ``python -m tests.world`` plays them."""
