"""The page of a package index: the README, with links to the site of the release. Hatchling runs this.

Who publishes says where that site is, as in ``TRINITY_DOCS=https://docs.example.org/0.1.0 python -m build``. Without it
the text has no links: an index has no files beside the README.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Final

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK: Final = re.compile(r"(!?)\[([^\]]+)\]\((?!\w+:)([^)#]+)(#[^)]*)?\)")
_IN_SITE: Final = re.compile(r"docs/|CHANGELOG\.md$")


class IndexPage(MetadataHookInterface):
    """The build hook that adds the package's description."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the description in the metadata."""
        text = index_page(Path(self.root, "README.md").read_text(encoding="utf-8"), os.environ.get("TRINITY_DOCS"))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def index_page(readme: str, site: str | None) -> str:
    """Return the README with links to a site; without links where there is no site, or no such page in it."""

    def led(link: re.Match[str]) -> str:
        picture, text, target, anchor = link.groups(default="")
        if site is None or not _IN_SITE.match(target):
            return text
        page = re.sub(r"\.md$", ".html", re.sub(r"README\.md$", "index.md", target.removeprefix("docs/")))
        return f"{picture}[{text}]({site.rstrip('/')}/{page}{anchor})"

    return _LINK.sub(led, readme)
