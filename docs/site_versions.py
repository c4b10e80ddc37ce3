"""The versions of the site: a folder for each release, the list that the theme's selector reads, and the way in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from packaging.version import InvalidVersion, Version

NEWEST: Final = "latest"
"""The alias of the newest release, by which the theme recognizes older ones."""
_ENTRY: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Trinity</title>
<meta http-equiv="refresh" content="0; url={newest}/index.html">
<p><a href="{newest}/index.html">Trinity {newest}</a></p>
</html>
"""


def versions(site: Path) -> list[str]:
    """Return the releases that have a folder in a site, the newest first, and those before a release last."""
    return sorted((folder.name for folder in site.iterdir() if _is_release(folder)), key=_age, reverse=True)


def list_versions(site: Path) -> None:
    """Write ``versions.json``, and an ``index.html`` that leads to the newest release."""
    newest, *older = versions(site)
    entries = [{"version": newest, "title": newest, "aliases": [NEWEST]}]
    entries += [{"version": version, "title": version, "aliases": []} for version in older]
    (site / "versions.json").write_text(json.dumps(entries, indent=2) + "\n")
    (site / "index.html").write_text(_ENTRY.format(newest=newest))


def _age(version: str) -> tuple[bool, Version]:
    return not Version(version).is_prerelease, Version(version)


def _is_release(folder: Path) -> bool:
    try:
        Version(folder.name)
    except InvalidVersion:
        return False
    return folder.is_dir()
