"""``python -m docs.site_look [PAGE…]`` takes pictures of the site's pages, by Chromium, into build/site-look.

Each page is seen wide and narrow, light and dark. Without a Chromium it fails.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

from docs.site import ALL, ROOT, SITE

LOOK: Final = ROOT / "build/site-look"
PAGES: Final = (
    "index.html",
    "start/first-table.html",
    "start/status.html",
    "tutorials/cdc.html",
    "how-to/erasure.html",
    "operate/runbook.html",
    "concepts/late-rows.html",
    "sql.html",
    "reference/properties.html",
    "api/trinity.html",
    "conformance.html",
    "performance.html",
    "compare/index.html",
)
_BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
_SIZES: Final = {"wide": "1400,1600", "narrow": "500,1600"}
_DARK: Final = "--blink-settings=preferredColorScheme=0"
_LIGHT: Final = "--blink-settings=preferredColorScheme=1"


class Quiet(SimpleHTTPRequestHandler):
    """A server of files that logs nothing."""

    def log_message(self, *args: object) -> None:
        """Log nothing."""


def look(browser: str, pages: list[str]) -> list[Path]:
    """Take the pictures.

    Args:
        browser: the program.
        pages: paths in the site.

    Returns:
        the pictures.
    """
    LOOK.mkdir(parents=True, exist_ok=True)
    found = []
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(ALL))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for page in pages:
            for width, size in _SIZES.items():
                for colours, setting in (("light", _LIGHT), ("dark", _DARK)):
                    name = page.removesuffix(".html").replace("/", "-")
                    found.append(LOOK / f"{name}-{width}-{colours}.png")
                    _picture(
                        browser, f"http://127.0.0.1:{server.server_port}/{SITE.name}/{page}", found[-1], size, setting
                    )
        server.shutdown()
    return found


def _picture(browser: str, address: str, picture: Path, size: str, colours: str) -> None:
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", colours,
                f"--user-data-dir={profile}", f"--window-size={size}", "--virtual-time-budget=3000",
                f"--screenshot={picture}", address,
            ],
            check=True, capture_output=True, timeout=600,
        )  # fmt: skip


def main(arguments: list[str]) -> int:
    """Take pictures of the pages that are named, or of some of each kind."""
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        print(f"There is none of {', '.join(_BROWSERS)}; on Debian: apt-get install chromium", file=sys.stderr)
        return 1
    print(*look(browser, arguments or list(PAGES)), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
