"""README.md as package indexes show it: relative links and pictures point to the files of this version."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE = r"(?!\w+:|#)"


def absolute(text: str, source: str, version: str) -> str:
    """Markdown whose links work away from the checkout.

    >>> absolute("![a](docs/a.png) [b](docs/b.md) [c](#c)", "https://host/p", "1.0.0")
    '![a](https://host/p/raw/v1.0.0/docs/a.png) [b](https://host/p/blob/v1.0.0/docs/b.md) [c](#c)'
    """
    text = re.sub(rf"(!\[[^\]]*\]\(){RELATIVE}", rf"\1{source}/raw/v{version}/", text)
    return re.sub(rf"(\]\(){RELATIVE}", rf"\1{source}/blob/v{version}/", text)


class Readme(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        text = absolute(text, metadata["urls"]["Source"], metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
