"""Mappings that are cheap to copy and change: a state of a campaign has several with an entry for every judgment."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping, MutableMapping, ValuesView
from typing import Any, NamedTuple, TypeVar

__all__ = ["Layers"]

K = TypeVar("K")
V = TypeVar("V")
MAX_CHANGES = 256  # changes above the base, before they are merged into a new one


class _Parts(NamedTuple):
    """The layers: a base that is never changed, the entries above it, and the keys of the base that were removed."""

    base: dict  # type: ignore[type-arg]
    top: dict  # type: ignore[type-arg]
    gone: set  # type: ignore[type-arg]


class Layers(MutableMapping[K, V]):
    """A mapping as a large base that copies share, and the few changes since: a copy takes the changes alone.

    Its entries have the order of a dict. Copies are independent of each other.

    Parameters
    ----------
    base
        The first entries. They are used as they are, so the mapping must not change afterwards.

    Examples
    --------
    >>> before = Layers({"a": 1, "b": 2})
    >>> after = before.copy()
    >>> after["c"] = 3
    >>> del after["a"]
    >>> dict(before), dict(after)
    ({'a': 1, 'b': 2}, {'b': 2, 'c': 3})
    """

    __slots__ = ("_parts", "_size")

    def __init__(self, base: Mapping[K, V] | None = None) -> None:
        whole = base if isinstance(base, dict) else dict(base or {})
        self._parts, self._size = _Parts(whole, {}, set()), len(whole)

    def copy(self) -> Layers[K, V]:
        """A copy; changes of either do not affect the other."""
        base, top, gone = self._parts
        if len(top) + len(gone) > MAX_CHANGES:
            return Layers(self._whole())
        made = Layers(base)
        made._parts, made._size = _Parts(base, top.copy(), gone.copy()), self._size
        return made

    def __repr__(self) -> str:
        return repr(self._whole())

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, key: K) -> V:
        base, top, gone = self._parts
        if key in gone and key not in top:
            raise KeyError(key)
        value: V = top[key] if key in top else base[key]
        return value

    def get(self, key: K, default: Any = None) -> Any:
        """The value of a key, or the default."""
        base, top, gone = self._parts
        if key in top:
            return top[key]
        return default if key in gone else base.get(key, default)

    def __contains__(self, key: object) -> bool:
        base, top, gone = self._parts
        return key in top or (key in base and key not in gone)

    def __setitem__(self, key: K, value: V) -> None:
        self._size += key not in self
        self._parts.top[key] = value

    def __delitem__(self, key: K) -> None:
        if key not in self:
            raise KeyError(key)
        base, top, gone = self._parts
        top.pop(key, None)
        if key in base:
            gone.add(key)
        self._size -= 1

    def __iter__(self) -> Iterator[K]:
        return iter(self._whole())

    def keys(self) -> KeysView[K]:
        """The keys."""
        return self._whole().keys()

    def values(self) -> ValuesView[V]:
        """The values."""
        return self._whole().values()

    def items(self) -> ItemsView[K, V]:
        """The entries."""
        return self._whole().items()

    def _whole(self) -> dict[K, V]:
        """All entries as one dict, which becomes the base; threads that do this at once do the same."""
        base, top, gone = self._parts
        if top or gone:
            merged = base.copy()
            for key in gone:
                del merged[key]
            merged.update(top)
            self._parts = _Parts(merged, {}, set())
        return self._parts.base
