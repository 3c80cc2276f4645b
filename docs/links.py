"""Check a built site without the network: every link and image to a place within it exists."""

import re
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

LINK = re.compile(r"<(?:a|img|link|script)\b[^>]*?\b(?:href|src)=\"([^\"]*)\"", re.S)
NAMED = re.compile(r"\b(?:id|name)=\"([^\"]+)\"")


def broken(root):
    """Return ``(page, link)`` of every link into the site that leads nowhere."""
    pages = {
        p: p.read_text(encoding="utf-8") for p in root.rglob("*.html") if "_static" not in p.parts
    }
    anchors = {p: set(NAMED.findall(text)) for p, text in pages.items()}
    found = []
    for page, text in pages.items():
        for link in LINK.findall(text):
            to = urlsplit(link.replace("&amp;", "&"))
            if to.scheme or to.netloc or not (to.path or to.fragment):
                continue
            target = (page.parent / unquote(to.path)).resolve() if to.path else page
            known = anchors.get(target)
            if not target.is_file() or (to.fragment and known is not None
                                        and unquote(to.fragment) not in known):  # fmt: skip
                found.append((page.relative_to(root), link))
    return found


if __name__ == "__main__":
    bad = broken(Path(sys.argv[1]).resolve())
    for page, link in bad:
        print(f"{page}: {link} leads nowhere")
    sys.exit(bool(bad))
