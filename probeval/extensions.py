"""Additions from outside the package: measures, policies, models, stopping rules, kinds of questions of one's own.

Each kind has one :class:`Registry`. An addition enters it by a call of the user's code, from a file
(:func:`import_file`), or from the entry points of an installed package. Work for another process takes all additions
along (:func:`carry`), so a name means the same everywhere.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pickle
import sys
import sysconfig
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from probeval.errors import ProbevalError, ProbevalWarning

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["Addition", "Carried", "Registry", "additions", "carry", "import_file"]

T = TypeVar("T")
INSTALLED = {"site-packages", "dist-packages"}  # folders of installed packages
STDLIB = Path(sysconfig.get_path("stdlib")).resolve()
REMEDY = "Define it without what cannot be pickled, or use one process."

_registries: dict[str, Registry[Any]] = {}


class Registry(dict[str, T]):
    """The things of one kind by name: those of the package, and additions.

    Parameters
    ----------
    kind
        The kind, such as ``policy``.
    home
        The module of the registry, which another process imports to have it.
    group
        The group of entry points, such as ``probeval.policies``.
    error
        The error to raise.
    take
        Adds the object of an entry point, given its name.
    own
        The things of the package, by name.

    Examples
    --------
    >>> from probeval.selection import POLICIES
    >>> POLICIES.find("gain"), POLICIES.find("pink"), POLICIES.added
    (Policy('gain'), None, {})
    >>> POLICIES.add("gain", POLICIES["mtc"])
    Traceback (most recent call last):
    probeval.errors.SelectionError: gain is a policy of probeval. Give yours another name.
    """

    def __init__(
        self,
        kind: str,
        home: str,
        *,
        group: str,
        error: type[ProbevalError] = ProbevalError,
        take: Callable[[str, Any], object] = lambda name, thing: None,
        own: Mapping[str, T] | None = None,
    ) -> None:
        super().__init__(own or {})
        self.kind, self.home, self.group, self.error = kind, home, group, error
        self._take = take
        self._own = set(self)
        self._received: dict[str, bytes] = {}
        self._is_loaded = False
        _registries[group] = self

    def add(self, name: str, thing: T, *, own: bool = False) -> None:
        """Add a thing; an earlier addition of this name is replaced, the name of one of the package is refused."""
        if own:
            self._own.add(name)
        elif name in self._own:
            raise self.error(f"{name} is a {self.kind} of probeval. Give yours another name.")
        self._received.pop(name, None)
        self[name] = thing

    @property
    def added(self) -> dict[str, T]:
        """The additions, by name."""
        return {name: thing for name, thing in self.items() if name not in self._own}

    def find(self, name: str) -> T | None:
        """Return the thing with this name, from an installed package if need be; None if there is none."""
        if name not in self:
            self.load()
        return self.get(name)

    def load(self) -> None:
        """Load the entry points of installed packages, once. A broken one is a warning."""
        if self._is_loaded:
            return
        self._is_loaded = True
        from importlib.metadata import entry_points  # slow to import

        for point in entry_points(group=self.group):
            try:
                self._take(point.name, point.load())
            except Exception as error:  # of any kind: it is the code of others
                warnings.warn(_broken(point, error), ProbevalWarning, 2)

    def carried(self, name: str) -> bytes:
        """Return an addition as bytes, for another process that has not imported it."""
        if name in self._received:
            return self._received[name]
        try:
            return _dumps(self[name])
        except Exception as error:  # of many kinds: what it refers to need not pickle
            raise self.error(f"{name} cannot be sent to another process: {_one_line(error)}. {REMEDY}") from None

    def receive(self, name: str, content: bytes) -> None:
        """Add what another process sent; a later one replaces it, but not what this process added itself."""
        if name in self and self._received.get(name, content) == content:
            return
        try:
            self[name] = pickle.loads(content)
        except Exception as error:  # of many kinds, most often a module that is missing here
            raise self.error(
                f"{name} is defined outside probeval and cannot be restored in this process ({_one_line(error)}). "
                "Make its module importable here."
            ) from None
        self._received[name] = content

    def __reduce__(self) -> tuple[Callable[[str, str], Registry[Any]], tuple[str, str]]:
        return _registry, (self.home, self.group)  # in another process, its own


def _registry(home: str, group: str) -> Registry[Any]:
    """Return the registry of a kind in this process."""
    importlib.import_module(home)
    return _registries[group]


@dataclass(frozen=True)
class Addition:
    """An addition on its way to another process.

    Parameters
    ----------
    home, group, name
        The module and the group of its registry, and its name.
    content
        The addition, pickled.
    """

    home: str
    group: str
    name: str
    content: bytes = field(repr=False)

    def register(self) -> None:
        """Add it in this process."""
        _registry(self.home, self.group).receive(self.name, self.content)


def additions() -> tuple[Addition, ...]:
    """Return all additions of this process, for another one."""
    return tuple(
        Addition(registry.home, registry.group, name, registry.carried(name))
        for registry in _registries.values()
        for name in registry.added
    )


@dataclass(frozen=True)
class Carried(Generic[T]):
    """Work for another process, and the additions that it may name.

    Parameters
    ----------
    added
        The additions, which are registered first.
    work
        The work, pickled.
    """

    added: tuple[Addition, ...]
    work: bytes = field(repr=False)

    def __call__(self) -> T:
        """Do the work."""
        for addition in self.added:
            addition.register()
        try:
            work: Callable[[], T] = pickle.loads(self.work)
        except Exception as error:  # of many kinds, most often a module that is missing here
            raise ProbevalError(
                f"Code of your own cannot be restored in another process ({_one_line(error)}). Make its modules "
                "importable there, or use one process."
            ) from None
        return work()


def carry(work: Callable[[], T], added: tuple[Addition, ...] | None = None) -> Carried[T]:
    """Return work that another process can do, whatever code of the user it needs.

    Functions and classes of modules that are not installed travel by value.

    Parameters
    ----------
    work
        The work.
    added
        The additions that go along; all by default.

    Examples
    --------
    >>> carry(lambda: 6 * 7)()
    42
    """
    try:
        return Carried(additions() if added is None else added, _dumps(work))
    except ProbevalError:
        raise
    except Exception as error:  # of many kinds
        raise ProbevalError(
            f"Code of your own cannot be sent to another process: {_one_line(error)}. {REMEDY}"
        ) from None


def import_file(path: str | PathLike[str]) -> ModuleType:
    """Run a Python file that adds measures, policies, models, stopping rules or kinds of questions.

    Modules beside the file can be imported by it. A file that is imported again replaces its additions.

    Raises
    ------
    ProbevalError
        If there is no such file, or if it fails.
    """
    file = Path(path)
    if file.suffix != ".py" or not os.path.isfile(file):  # noqa: PTH113  Path.is_file fails if the name is too long
        raise ProbevalError(f"{file}: {'no such file' if file.suffix == '.py' else 'expected a Python file, NAME.py'}.")
    name = f"imported_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    folder = str(file.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # of any kind, and its own end: it is the user's code
        sys.modules.pop(name, None)
        raise ProbevalError(f"{file}{_line(error, file)}: {_one_line(error)}.") from error
    return module


def _line(error: BaseException, file: Path) -> str:
    """The line of a file at which an error arose, as ``:12``; nothing if it is unknown."""
    if isinstance(error, SyntaxError):
        return f":{error.lineno}" if error.lineno else ""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if Path(f.filename) == file.resolve()]
    return f":{lines[-1]}" if lines else ""


def _one_line(error: BaseException) -> str:
    """An error in one line, without the full stop."""
    try:
        text = str(error.msg if isinstance(error, SyntaxError) else error).strip().partition("\n")[0].rstrip(".")
    except Exception:  # an error of one's own that has no text
        text = ""
    return text if isinstance(error, ProbevalError) and text else f"{type(error).__name__}: {text}".rstrip(": ")


def _broken(point: EntryPoint, error: Exception) -> str:
    package = "" if point.dist is None else f" of {point.dist.name}"
    return f"{point.group}: {point.name} = {point.value}{package} was left out: {_one_line(error)}."


def _dumps(thing: object) -> bytes:
    """Pickle a thing; functions and classes of modules that are not installed by value."""
    import cloudpickle

    with _local_by_value():
        return bytes(cloudpickle.dumps(thing))


@contextmanager
def _local_by_value() -> Iterator[None]:
    import cloudpickle

    local = [m for name, m in list(sys.modules.items()) if _is_local(name, m)]
    chosen = [m for m in local if m.__name__ not in cloudpickle.list_registry_pickle_by_value()]
    for module in chosen:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in chosen:
            cloudpickle.unregister_pickle_by_value(module)


def _is_local(name: str, module: object) -> bool:
    """Whether other processes may lack a module: it is neither installed, nor of Python, nor of probeval."""
    file = getattr(module, "__file__", None)
    if not isinstance(module, ModuleType) or not isinstance(file, str) or module.__name__ != name:
        return False
    path = Path(file)
    mine = name.partition(".")[0] in ("__main__", __name__.partition(".")[0])
    return not mine and not INSTALLED & set(path.parts) and not path.is_relative_to(STDLIB)
