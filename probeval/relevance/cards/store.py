"""Model cards on disk: a folder with ``card.json`` and a README, never pickle; and the bundled cards by name."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from probeval.data.files import read_bytes, write_bytes
from probeval.errors import DataError, ModelError, did_you_mean
from probeval.relevance.cards.card import Card

__all__ = ["card_names", "load_card", "read_card", "write_card"]

FILE = "card.json"
SHELVES = (Path(__file__).parents[2] / "models", Path(__file__).parents[3] / "models")  # in a wheel; in a checkout


def write_card(card: Card, folder: Path) -> None:
    """Write ``card.json`` and its README into a folder."""
    text = json.dumps(card.to_dict(), indent=1, ensure_ascii=False)
    write_bytes(folder / FILE, (text + "\n").encode())
    write_bytes(folder / "README.md", card.summary().encode())


def read_card(path: Path) -> Card:
    """Read a card from its folder or file."""
    file = path / FILE if path.is_dir() else path
    try:
        return Card.from_dict(json.loads(read_bytes(file)))
    except DataError as error:
        raise ModelError(str(error)) from None
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{file}: not a model card: {error}.") from None
    except ModelError as error:
        raise ModelError(f"{file}: {error}") from None


def _shelf() -> dict[str, Path]:
    """Return the bundled cards by name."""
    found: dict[str, Path] = {}
    for shelf in SHELVES:
        for file in sorted(shelf.glob(f"*/{FILE}")):
            found.setdefault(file.parent.name, file)
    return found


def card_names() -> list[str]:
    """Return the names of the bundled cards."""
    return sorted(_shelf())


def load_card(name: str, *, others: Iterable[str] = ()) -> Card:
    """Load a bundled card by name, or any card by the path of its folder or file; ``others`` are models without one."""
    shelf = _shelf()
    if name in shelf:
        return read_card(shelf[name])
    path = Path(name)
    if path.exists():
        return read_card(path)
    raise ModelError(
        f"No model {name!r}.{did_you_mean(name, [*shelf, *others])} 'probeval models' lists those that ship; --import "
        "FILE adds your own."
    )
