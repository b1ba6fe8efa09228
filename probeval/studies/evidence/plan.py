"""The plan of a study of held-out campaigns: which cells it has, the most telling ones first."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any

from probeval.display import Record
from probeval.errors import DataError, did_you_mean

__all__ = ["Cell", "EvidencePlan", "PlanPart", "read_plan"]

DEPTH = 10


@dataclass(frozen=True)
class Cell:
    """One piece of work: a held-out collection judged again once.

    Parameters
    ----------
    study
        A name of :data:`~probeval.studies.evidence.STUDIES`.
    collection, measure
        The campaign that is held out, and the measure, with its cutoff.
    policy
        The policy and its model, as in ``gain:hierarchical``.
    labels
        The column of labels that is given, as in :class:`PlanPart`; empty for none.
    seed
        The seed.
    settings
        All other settings, as JSON.
    """

    study: str
    collection: str
    measure: str
    policy: str
    labels: str
    seed: int
    settings: str = "{}"

    @property
    def place(self) -> tuple[str, str, str, str, str, int]:
        """What tells it from the other cells of a plan."""
        return self.study, self.collection, self.measure, self.policy, self.labels, self.seed


@dataclass(frozen=True, repr=False)
class PlanPart(Record):
    """Cells of one study: all combinations of campaigns, measures, policies, labels and seeds.

    Parameters
    ----------
    study
        A name of :data:`~probeval.studies.evidence.STUDIES`.
    measures
        Measures; one without a cutoff is cut at the depth of the campaign.
    policies
        Policies and their models, as in ``mtc:independent``; a study in random order takes models alone.
    campaigns
        Some of the campaigns of the plan; all without any.
    labels
        Columns of labels, ``TABLE:COLUMN``; the empty text is no labels. ``{campaign}`` in the name of the table is
        replaced. With ``shuffled`` in front (``shuffled:TABLE:COLUMN``) the labels are dealt to the pairs at random.
    seeds
        The number of seeds, from 0 on.
    settings
        Settings of the study, as JSON.
    """

    study: str
    measures: tuple[str, ...]
    policies: tuple[str, ...]
    campaigns: tuple[str, ...] = ()
    labels: tuple[str, ...] = ("",)
    seeds: int = 1
    settings: str = "{}"


@dataclass(frozen=True, repr=False)
class EvidencePlan(Record):
    """The cells of several studies on the same campaigns.

    Parameters
    ----------
    folder
        The folder that names of campaigns and tables refer to.
    campaigns
        The campaigns and the depths of their pools, those that are quickest to judge again first.
    learned
        Campaigns that are only learned from.
    together
        Campaigns that are left out together, such as rounds on the same topics.
    labelled
        Tables of labels beside grades to learn from, and the campaign that each is about, empty for none.
    parts
        The cells.
    """

    folder: str
    campaigns: tuple[tuple[str, int], ...]
    parts: tuple[PlanPart, ...]
    learned: tuple[str, ...] = ()
    together: tuple[tuple[str, ...], ...] = ()
    labelled: tuple[tuple[str, str], ...] = ()

    @property
    def depths(self) -> dict[str, int]:
        """The depth of the pool of each campaign."""
        return dict(self.campaigns)

    def left_out(self, name: str) -> tuple[str, ...]:
        """The campaigns that are left out with this one, itself among them."""
        return next((group for group in self.together if name in group), (name,))

    def past(self, name: str) -> tuple[str, ...]:
        """The campaigns that are learned from where this one is held out."""
        out = self.left_out(name)
        return tuple(n for n in (*self.depths, *self.learned) if n not in out)

    def graded(self, name: str) -> tuple[str, ...]:
        """The tables of labels beside grades that are learned from where this campaign is held out."""
        out = self.left_out(name)
        return tuple(table for table, about in self.labelled if about not in out)

    def cells(self) -> tuple[Cell, ...]:
        """All cells, the most telling ones first.

        One seed of everything comes before the second seed, one measure before the second, and one policy on all
        campaigns before the second.
        """
        found = [made for i, part in enumerate(self.parts) for made in self._cells_of(part, i)]
        found.sort(key=lambda made: made[0])
        return tuple(dict.fromkeys(cell for _, cell in found))

    def _cells_of(self, part: PlanPart, number: int) -> Iterator[tuple[tuple[int, ...], Cell]]:
        names = part.campaigns or tuple(self.depths)
        tables = list(product(*map(enumerate, (part.measures, part.policies, part.labels, names))))
        for seed in range(part.seeds):
            for (m, measure), (p, policy), (v, labels), (c, name) in tables:
                cut = measure if "@" in measure else f"{measure}@{self.depths[name]}"
                table = labels.replace("{campaign}", name)
                yield (seed, m, p, v, number, c), Cell(part.study, name, cut, policy, table, seed, part.settings)


def read_plan(path: str | PathLike[str], *, data: str | PathLike[str] | None = None) -> EvidencePlan:
    """Read a plan from a TOML file.

    ``[campaigns]`` has the depth of each campaign; ``learned`` and ``together`` are lists of names; ``[labelled]`` has
    tables of labels beside grades and the campaign each is about; each ``[[part]]`` has the fields of
    :class:`PlanPart`, with ``[part.settings]`` as a table.

    Parameters
    ----------
    path
        The file.
    data
        The folder of the campaigns; by default that of the file.
    """
    file = Path(path)
    try:
        given = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}.", path=file) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"is no TOML: {error}.", path=file) from None
    _check_keys(given, ("campaigns", "learned", "together", "labelled", "part"), file)
    campaigns = given.get("campaigns")
    if not isinstance(campaigns, dict) or not campaigns or not all(_is_depth(d) for d in campaigns.values()):
        raise DataError("[campaigns] must have a line NAME = DEPTH for each campaign, such as mine = 10.", path=file)
    parts = tuple(_part(one, tuple(campaigns), file) for one in given.get("part", ()))
    if not parts:
        raise DataError('there is nothing to do: add a [[part]] with study = "judging".', path=file)
    return EvidencePlan(
        str(file.parent if data is None else Path(data)),
        tuple(campaigns.items()),
        parts,
        tuple(given.get("learned", ())),
        tuple(map(tuple, given.get("together", ()))),
        tuple(given.get("labelled", {}).items()),
    )


def _part(given: Mapping[str, Any], campaigns: Sequence[str], file: Path) -> PlanPart:
    _check_keys(given, [one.name for one in fields(PlanPart)], file)
    lists = ("measures", "policies", "campaigns", "labels")
    for name in ("study", "measures", "policies"):
        if not given.get(name):
            raise DataError(f"a [[part]] needs {name}.", path=file)
    for name in lists:
        values = given.get(name, [])
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise DataError(f'{name} must be a list of names, such as ["a", "b"], got {values!r}.', path=file)
    for name in given.get("campaigns", ()):
        if name not in campaigns:
            raise DataError(f"no campaign {name!r} in [campaigns].{did_you_mean(name, campaigns)}", path=file)
    seeds = given.get("seeds", 1)
    if not isinstance(seeds, int) or seeds < 1:
        raise DataError(f"seeds must be a number from 1, got {seeds!r}.", path=file)
    read = {name: tuple(given[name]) for name in lists if name in given}
    settings = json.dumps(given.get("settings", {}), sort_keys=True)
    return PlanPart(str(given["study"]), seeds=seeds, settings=settings, **read)


def _check_keys(given: Mapping[str, Any], known: Sequence[str], file: Path) -> None:
    for name in given:
        if name not in known:
            raise DataError(f"unknown key {name!r}.{did_you_mean(name, known)} Known: {', '.join(known)}.", path=file)


def _is_depth(value: Any) -> bool:
    return isinstance(value, int) and value >= 1
