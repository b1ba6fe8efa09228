"""``probeval doctor``: check the installation, or examine files."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Annotated, Literal

from probeval import __version__
from probeval.api.examine import ExaminedFiles, FilesToExamine
from probeval.cli.commands import Output, verb
from probeval.display import Table
from probeval.errors import ProbevalError
from probeval.relevance import card_names, load_card
from probeval.results import Result, key
from probeval.satisfaction import published_mappings

__all__ = ["doctor"]

# The purpose of each extra, the most used first; those for developers are not checked.
EXTRAS = {
    "web": "the judging page, team campaigns",
    "parquet": "tables in parquet",
    "tools": "PyTerrier, ir_measures, ir_datasets",
    "fast": "faster sampling of posteriors",
    "postgres": "campaigns in PostgreSQL",
    "distributed": "work on several machines",
}
PARTS_WITH_FILES = ("web", "report")


@dataclass(frozen=True)
class InstallationCheck:
    """A check of the installation."""

    what: str
    found: str
    status: Annotated[Literal["ok", "optional", "missing"], "``optional`` for an extra that is not installed."]
    note: str


@dataclass(frozen=True, eq=False, repr=False)
class Installation(Result):
    """The state of the installation."""

    version: Annotated[str, "The version of probeval."]
    checks: Annotated[tuple[InstallationCheck, ...], "One entry per check."]

    @key
    def ok(self) -> bool:
        """Whether everything required is installed."""
        return not self.missing

    @property
    def missing(self) -> tuple[str, ...]:
        """The names of the checks that failed."""
        return tuple(check.what for check in self.checks if check.status == "missing")

    @property
    def exit_code(self) -> int:
        """1 if something required is missing."""
        return int(not self.ok)

    def _headline(self) -> str:
        return f"probeval {self.version}, {f'{len(self.missing)} missing' if self.missing else 'complete'}"

    def tables(self) -> tuple[Table]:
        """One row per check."""
        return (Table(self.to_frame()),)

    def sentences(self) -> tuple[str]:
        """What is missing."""
        if self.missing:
            return (f"Missing: {', '.join(self.missing)}.",)
        return ("Everything required is installed. Try: probeval demo",)


@verb("Examine files, or check the installation.")
def doctor(given: FilesToExamine, output: Output) -> Installation | ExaminedFiles:
    """Examine files: what each is taken for, what looks wrong, what can be computed, and the next command to type.

    Without files, check the installation: versions, extras, models and templates; show how to install missing parts.

    Example: probeval doctor runs/ labels.tsv qrels.txt
    """
    if given.files:
        return output.messages.warned(given.run)
    return Installation(__version__, (*_python(), *_packages(), *_extras(), *_files()))


def _python() -> Iterator[InstallationCheck]:
    yield InstallationCheck("probeval", __version__, "ok", str(files("probeval")))
    wanted = metadata.metadata("probeval")["Requires-Python"]
    fits = _fits(platform.python_version(), wanted)
    yield InstallationCheck("python", platform.python_version(), "ok" if fits else "missing", f"needs {wanted}")


def _packages() -> Iterator[InstallationCheck]:
    for name, wanted in _requirements(None):
        found = _version(name)
        good = found is not None and _fits(found, wanted)
        advice = f"needs {wanted}" if good else f"pip install '{name}{wanted}'"
        yield InstallationCheck(name, found or "-", "ok" if good else "missing", advice)


def _extras() -> Iterator[InstallationCheck]:
    for extra, purpose in EXTRAS.items():
        lacking = [name for name, wanted in _requirements(extra) if not _fits(_version(name), wanted)]
        found = [f"{name} {_version(name)}" for name, _ in _requirements(extra) if name not in lacking]
        note = f"{purpose}: pip install 'probeval[{extra}]'" if lacking else purpose
        yield InstallationCheck(f"[{extra}]", ", ".join(found) or "-", "optional" if lacking else "ok", note)
    compiler = shutil.which("g++") or shutil.which("clang++")
    note = "faster sampling; without one numba or nutpie is used"
    yield InstallationCheck("C++ compiler", compiler or "-", "ok" if compiler else "optional", note)


def _files() -> Iterator[InstallationCheck]:
    """Data files of the package; a wheel that was built wrongly lacks them."""
    again = "pip install --force-reinstall probeval"
    try:
        cards = [load_card(name).name for name in card_names()]
    except ProbevalError as error:
        cards, again = [], str(error)
    yield InstallationCheck(
        "models", f"{len(cards)} cards", "ok" if cards else "missing", "probeval models" if cards else again
    )
    mappings = len(published_mappings())
    yield InstallationCheck(
        "satisfaction", f"{mappings} mappings", "ok" if mappings else "missing", "published, music similarity"
    )
    for part in PARTS_WITH_FILES:
        folder = files("probeval") / part
        if folder.is_dir():
            n = sum(not item.name.endswith((".py", ".pyc")) for item in _below(folder))
            yield InstallationCheck(f"{part} templates", f"{n} files", "ok" if n else "missing", "" if n else again)


def _below(folder: Traversable) -> Iterator[Traversable]:
    for item in folder.iterdir():
        if item.is_dir():
            yield from _below(item)
        else:
            yield item


def _requirements(extra: str | None) -> list[tuple[str, str]]:
    """Names and versions that this Python needs, for the package itself or for one extra."""
    from packaging.requirements import Requirement

    needed = []
    for text in metadata.requires("probeval") or ():
        requirement = Requirement(text)
        marker = requirement.marker
        if extra is None:
            wanted = marker is None or marker.evaluate({"extra": ""})
        else:
            wanted = marker is not None and not marker.evaluate({"extra": ""}) and marker.evaluate({"extra": extra})
        if wanted:
            needed.append((requirement.name, str(requirement.specifier)))
    return needed


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _fits(version: str | None, wanted: str) -> bool:
    from packaging.specifiers import SpecifierSet

    return version is not None and SpecifierSet(wanted).contains(version, prereleases=True)
