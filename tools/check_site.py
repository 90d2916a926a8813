"""Check a built site: every local link leads somewhere, and no page loads anything from another host.

``python tools/check_site.py build/site`` prints what is wrong and ends with 1.
"""

from __future__ import annotations

import functools
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

LOADS = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("video", "src")}
"""What a browser fetches by itself; of ``<link>`` the kinds below."""
LOADED_KINDS = {"stylesheet", "icon", "preload", "prefetch", "manifest"}


class Page(HTMLParser):
    """The links and anchors of one page, and what it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag links to, loads and is called."""
        held = dict(attrs)
        self.anchors |= {held[name] or "" for name in ("id", "name") if name in held}
        for name in ("href", "src"):
            target = held.get(name)
            if target is None:
                continue
            is_loaded = (tag, name) in LOADS or bool(
                tag == "link" and LOADED_KINDS & set((held.get("rel") or "").split())
            )
            (self.loads if is_loaded else self.links).append(target)


@functools.cache
def read(path: Path) -> Page:
    """The page at ``path``."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def is_elsewhere(target: str) -> bool:
    """Whether a target is on another host."""
    return target.startswith(("http:", "https:", "//"))


def faults(site: Path) -> list[str]:
    """What is wrong, one line each."""
    found = []
    for path in sorted(site.rglob("*.html")):
        page, name = read(path), path.relative_to(site)
        found += [f"{name}: loads {target}" for target in page.loads if is_elsewhere(target)]
        for target in {*page.links, *page.loads}:
            if is_elsewhere(target) or target.startswith(("data:", "mailto:", "javascript:")):
                continue
            place, anchor = urldefrag(target)
            place = place.partition("?")[0]
            file = path if not place else (path.parent / unquote(place)).resolve()
            file = file / "index.html" if file.is_dir() else file
            if not file.is_file():
                found.append(f"{name}: no file {target}")
            elif anchor and file.suffix == ".html" and unquote(anchor) not in read(file).anchors:
                found.append(f"{name}: no anchor {target}")
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        found += (
            [f"{style.relative_to(site)}: loads from another host"] if "url(http" in text or "url(//" in text else []
        )
    return found


def main() -> None:
    site = Path(sys.argv[1])
    wrong = faults(site)
    print("\n".join(wrong) or f"{site}: {len(list(site.rglob('*.html')))} pages, every link leads somewhere")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
