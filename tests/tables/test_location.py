"""Locations: one normal form, and its conversion to and from other programs' forms."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trinity.errors import TrinityError
from trinity.storage import Location

NAMES: Final = [
    "a b",
    "100%",
    "%41",
    "#1",
    "what?",
    "a:b",
    "file:",
    "~",
    "\u00e9",
    "e\u0301",
    "日本",
    "a\nb",
    "[x]*",
    "a\\b",
    "+",
]
ODD: Final = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=20)
PATHS: Final = st.lists(st.sampled_from(NAMES) | ODD, max_size=5).map(lambda parts: "/" + "/".join(parts))


@given(PATHS)
def test_every_spelling_leads_back(path: str) -> None:
    location = Location.of(path)
    assert Location.of(str(location)) == location
    assert Location.of(location.format_uri) == location
    assert Location.of_uri(location.uri) == location
    assert Location.of_uri(str(location)) == location


@given(PATHS)
def test_a_uri_is_what_other_programs_make_of_the_path(path: str) -> None:
    """Any decoder of URIs returns the path, whichever characters Spark leaves unescaped."""
    location = Location.of(path)
    assert not set(location.uri) & set(' "#<>?[\\]^`{|}\n')
    assert unquote(location.uri.removeprefix("file:")) == str(location)


@given(PATHS, PATHS)
def test_join_and_relative_are_inverse(above: str, below: str) -> None:
    base = Location.of(above)
    found = base.join(below.removeprefix("/"))
    names = base.relative(found)
    if names is None:  # it went up by ".."
        assert ".." in below.split("/")
    else:
        assert base.join(names) == found


@given(PATHS)
def test_parent_and_name_are_the_parts(path: str) -> None:
    location = Location.of(path)
    assert location.parent.join(location.name) == location
    assert (location.name == "") == (location == Location.of("/"))


@pytest.mark.parametrize(
    "same",
    ["/a/b", "/a/b/", "//a//b", "/a/./b", "/a/c/../b", "file:/a/b", "file:///a/b/", "file:/a/c/../b", "/../a/b"],
)
def test_equal_by_normal_form(same: str) -> None:
    assert Location.of(same) == Location.of("/a/b")
    assert hash(Location.of(same)) == hash(Location.of("/a/b"))
    assert str(Location.of(same)) == "/a/b"


def test_case_and_composition_of_letters_are_kept() -> None:
    assert len({Location.of(f"/{name}") for name in ("\u00e9", "e\u0301", "\u00c9")}) == 3


@pytest.mark.parametrize("name", NAMES)
def test_spellings_of_odd_names(name: str) -> None:
    location = Location.of("/w").join(name)
    assert location.name == name
    assert location.parent == Location.of("/w")
    assert location.format_uri == f"file:///w/{name}"
    assert location.for_arrow == location.for_spark == f"/w/{name}"


def test_spark_escapes_what_its_metadata_column_escapes() -> None:
    assert Location.of("/a b/100%/#?:/é").uri == "file:/a%20b/100%25/%23%3F:/é"
    assert Location.of("/a[1]{x}*?\\").for_sql == "/a\\[1\\]\\{x\\}\\*\\?\\\\"


def test_what_is_escaped_twice_is_not_unescaped_twice() -> None:
    assert Location.of_uri("file:/a%2541") == Location.of("/a%41")
    assert Location.of("file:/a%41") == Location.of("/a%41") != Location.of("/aA")


def test_relative_goes_by_whole_parts() -> None:
    base = Location.of("/a/b")
    assert base.relative(Location.of("/a/b/c/d")) == "c/d"
    assert base.relative(base) == ""
    assert base.relative(Location.of("/a/bc")) is None
    assert base.relative(Location.of("/a")) is None
    assert Location.of("/").relative(base) == "a/b"


def test_the_root_is_its_own_parent() -> None:
    root = Location.of("/")
    assert root.parent == root
    assert root.join("a") == Location.of("/a")
    assert root.join("..") == root


def test_relative_paths_begin_at_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", os.fspath(tmp_path / "home"))
    assert str(Location.of("a/b")) == f"{tmp_path}/a/b"
    assert str(Location.of("~/b")) == f"{tmp_path}/home/b"
    assert str(Location.of("/~/b")) == "/~/b"


@pytest.mark.parametrize(
    "elsewhere", ["hdfs://host/a", "az://container/a", "https://account.blob.core.windows.net/c/a"]
)
def test_other_stores_are_refused(elsewhere: str) -> None:
    with pytest.raises(TrinityError, match="only local paths") as caught:
        Location.of(elsewhere)
    assert caught.value.code == "NOT_SUPPORTED"
    assert elsewhere in caught.value.message


@given(PATHS)
def test_every_spelling_of_a_place_in_a_bucket_leads_back(path: str) -> None:
    location = Location.of("s3://bucket").join(path.removeprefix("/"))
    assert Location.of(str(location)) == location
    assert Location.of(location.format_uri) == location
    assert Location.of(location.for_spark) == location
    assert Location.of_uri(location.uri) == location
    assert location.bucket == "bucket"
    assert location.for_arrow == f"bucket{location.path}"


@pytest.mark.parametrize("same", ["s3://b-1/a/c", "s3a://b-1/a/c/", "s3n://b-1//a/./c", "s3:/b-1/a/c"])
def test_buckets_have_one_normal_form(same: str) -> None:
    location = Location.of(same)
    assert location == Location.of("s3://b-1/a/c") != Location.of("s3://b-2/a/c")
    assert (str(location), location.for_spark, location.key) == ("s3://b-1/a/c", "s3a://b-1/a/c", "a/c")
    assert location.parent.parent.relative(location) == "a/c"
    assert Location.of("s3://b-2").relative(location) is None
    with pytest.raises(TrinityError, match="no file of this machine"):
        os.fspath(location)


@pytest.mark.parametrize("text", ["s3://", "s3:///a", "s3://key:secret-word@bucket/a", "s3://a b/c"])
def test_what_cannot_be_a_bucket_is_refused(text: str) -> None:
    with pytest.raises(TrinityError) as caught:
        Location.of(text)
    assert caught.value.code == "CONFIGURATION_INVALID"
    assert "secret-word" not in caught.value.message
