"""What changed since the last release: one file per change in ``docs/news``, ``NAME.KIND.md``, with what users notice.

``python docs/news.py`` prints the section of the changelog that the files make. At a release, ``python docs/news.py
0.3.0`` writes it into ``CHANGELOG.md`` under the version and today's date, and removes the files.
"""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path

__all__ = ["KINDS", "section"]

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("added", "changed", "deprecated", "removed", "fixed", "security")  # of keepachangelog.com, in its order


def files(kind: str) -> list[Path]:
    """The changes of one kind, by name."""
    return sorted((ROOT / "docs" / "news").glob(f"*.{kind}.md"))


def entry(text: str) -> str:
    """One change as an item of a list."""
    return "- " + "\n  ".join(text.strip().splitlines())


def section(heading: str) -> str:
    """The changes by kind, under a heading of the changelog."""
    parts = [f"## {heading}"]
    for kind in KINDS:
        changes = [entry(path.read_text(encoding="utf-8")) for path in files(kind)]
        if changes:
            parts.append(f"### {kind.capitalize()}\n" + "\n".join(changes))
    return "\n\n".join(parts) + "\n"


def release(version: str) -> None:
    """Move the changes from their files into the changelog, as those of a version of today."""
    changelog = ROOT / "CHANGELOG.md"
    introduction, mark, past = changelog.read_text(encoding="utf-8").partition("\n## ")
    today = section(f"{version} - {date.today().isoformat()}")
    changelog.write_text(f"{introduction}\n{today}{mark}{past}", encoding="utf-8")
    for kind in KINDS:
        for path in files(kind):
            path.unlink()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        release(sys.argv[1])
    else:
        print(section("Unreleased"))
