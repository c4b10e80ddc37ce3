"""How the examples of a page are found, run and written."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.examples import Page, differences, read, report, write

PAGE = """# A page
{needs}
```python
kept = [1, 2]
```

```py
this is not run
```

=== "One process"

    ```python
    print(kept)

    print("one")
    ```

    ```text
    [1, ...]
    one
    ```

=== "Spark"

    ```python
    print("Spark")
    ```

    ```text
    Spark
    ```

Behind the tabs:

```python
print("behind", end="")
```
"""


@pytest.fixture
def page(tmp_path: Path) -> Page:
    path = tmp_path / "page.md"
    path.write_text(PAGE.format(needs=""))
    return read(path)


def test_what_is_printed_otherwise_is_found_and_written(page: Page) -> None:
    different = differences(page, {})
    assert [printed for _, printed in different] == ["behind"]
    assert "prints\n  behind\nand the page says" in report(page, different)
    write(page, different)
    assert page.path.read_text() == page.text + "\n```text\nbehind\n```\n"
    assert differences(read(page.path), {}) == []


def test_what_is_not_printed_any_more_is_removed(page: Page) -> None:
    path = page.path
    path.write_text(page.text.replace('print("one")', 'print("two")').replace("print(kept)", ""))
    write(read(path), differences(read(path), {}))
    assert "    ```text\n    two\n    ```\n" in path.read_text()
    path.write_text(path.read_text().replace('print("two")', "pass"))
    write(read(path), differences(read(path), {}))
    assert "two" not in path.read_text()
    assert path.read_text().count("```text") == 2


def test_a_page_of_spark_has_all_its_tabs_run(page: Page) -> None:
    page.path.write_text(PAGE.format(needs="<!-- examples: spark -->"))
    assert [example.code.splitlines()[-1] for example in read(page.path).examples] == [
        "kept = [1, 2]", 'print("one")', 'print("Spark")', 'print("behind", end="")',
    ]  # fmt: skip
    assert len(page.examples) == 3


def test_the_tab_of_spark_is_run_in_place_of_the_first(page: Page) -> None:
    assert [example.code.splitlines()[-1] for example in page.examples_with_spark] == [
        "kept = [1, 2]", 'print("Spark")', 'print("behind", end="")',
    ]  # fmt: skip
    assert [printed for _, printed in differences(page, {}, spark=True)] == ["behind"]
    page.path.write_text(page.text.replace('"Spark"', '"Elsewhere"'))
    assert read(page.path).examples_with_spark == []


def test_an_error_shows_the_line_of_the_page(page: Page) -> None:
    page.path.write_text(page.text.replace("print(kept)", "print(unknown)"))
    with pytest.raises(NameError) as raised:
        differences(read(page.path), {})
    assert (str(raised.traceback[-1].path), raised.traceback[-1].lineno) == (str(page.path), 13)
