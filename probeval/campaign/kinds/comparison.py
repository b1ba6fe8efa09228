"""Two documents of a query side by side: which is better, which are relevant, or a number for each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, cast

import pandas as pd

from probeval.campaign.events import Answered, GoldChanged, Settled, TaskPurpose
from probeval.campaign.parsing import as_choice, as_number, as_relevant, check_values
from probeval.campaign.questions import COMPARISON, KINDS, Kind, Question, Words
from probeval.data.answers import PairAnswers, as_answers
from probeval.data.files import suffix
from probeval.data.tables import column_names, ids, read_table
from probeval.errors import CampaignError, DataError

if TYPE_CHECKING:
    from probeval.campaign.candidates import Material
    from probeval.campaign.setup import Setup
    from probeval.campaign.state import State

__all__ = ["Compared", "ComparisonAdjudicated", "ComparisonKind", "GoldOrdersChanged"]

SIDES = (("left", "upper"), ("right", "lower"))
RELEVANT = {"both": "both relevant", "chosen": "only the better one relevant", "neither": "neither relevant"}
Choice = Literal["left", "right", "equal", ""]
Relevant = Literal["both", "chosen", "neither", ""]
BOTH_BAD = ("equal", "neither")
ORDER_COLUMNS = ("query", "better", "worse")
MAGNITUDE = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,2})?", re.ASCII)


@dataclass(frozen=True, kw_only=True, repr=False)
class Compared(Answered):
    """An assessor answered a question about two documents.

    Parameters
    ----------
    choice
        The better document: ``left``, ``right`` or ``equal``; empty if only numbers were given.
    relevant
        Which documents are relevant: ``both``, ``chosen`` (only the better one) or ``neither``; empty if not asked.
        ``equal`` and ``neither`` together mean that neither is any good.
    left_number, right_number
        The numbers that the assessor gave the documents (magnitudes), from 0; None without.
    """

    kind = "compared"
    asks = COMPARISON
    choice: Choice = ""
    relevant: Relevant = ""
    left_number: float | None = None
    right_number: float | None = None

    @property
    def left(self) -> str:
        """The document on the left."""
        return self.documents[0]

    @property
    def right(self) -> str:
        """The document on the right."""
        return self.documents[1]

    @property
    def better(self) -> str:
        """The better document, by the choice or else by the numbers; empty if they are equal."""
        if self.choice:
            return {"left": self.left, "right": self.right}.get(self.choice, "")
        left, right = self.left_number or 0.0, self.right_number or 0.0
        return self.left if left > right else self.right if right > left else ""


@dataclass(frozen=True, kw_only=True, repr=False)
class ComparisonAdjudicated(Settled):
    """Which of two documents is better was settled."""

    kind = "comparison adjudicated"
    asks = COMPARISON
    choice: Choice
    relevant: Relevant = ""

    @property
    def left(self) -> str:
        """The document on the left."""
        return self.documents[0]

    @property
    def right(self) -> str:
        """The document on the right."""
        return self.documents[1]


@dataclass(frozen=True, kw_only=True, repr=False)
class GoldOrdersChanged(GoldChanged):
    """The gold comparisons are these: by query, the better and the worse document of each."""

    kind = "gold orders"
    asks = COMPARISON
    orders: Mapping[str, tuple[tuple[str, str], ...]]

    @property
    def known(self) -> dict[Question, str]:
        """The better document of each comparison."""
        ask = KINDS[COMPARISON].question
        return {ask(query, order): order[0] for query, orders in self.orders.items() for order in orders}


class ComparisonKind(Kind):
    """Which of two documents is better, or a number for each."""

    name = COMPARISON
    asks = MappingProxyType({"preferences": "preference", "magnitudes": "magnitude", "mixed": "preference"})
    places = ("left", "right")
    fields = MappingProxyType({"choice": 10, "relevant": 10, "bad": 1, "left_number": 20, "right_number": 20})
    answered = Compared
    settled = ComparisonAdjudicated
    gold = GoldOrdersChanged
    keys = MappingProxyType({"l": "left", "r": "right", "=": "equal", "b": " ".join(BOTH_BAD)})

    def question(self, query: str, documents: Sequence[str]) -> Question:
        """The question about two documents, whichever is on the left."""
        one, other = documents
        if one == other:
            raise CampaignError(
                f"Query {query!r}: document {one!r} cannot be compared with itself. Give two documents."
            )
        return Question(query, (one, other) if one < other else (other, one), self.name)

    def shown(self, question: Question, purpose: str, before: Sequence[Answered], draw: float) -> tuple[str, ...]:
        """The sides at random; those of a repeated question are exchanged."""
        first, second = question.documents
        on_left = (
            before[0].documents[1] if purpose == TaskPurpose.repeat and before else first if draw < 0.5 else second
        )
        return (first, second) if on_left == first else (second, first)

    def values(self, given: Mapping[str, Any], setup: Setup) -> dict[str, Any]:
        """A choice and perhaps which documents are relevant, or two numbers."""
        check_values(given, "choice", "relevant", "numbers")
        choice = as_choice(given.get("choice", ""))
        relevant = as_relevant(given.get("relevant", ""), choice)
        left, right = (as_number(number) for number in given.get("numbers") or (None, None))
        if (left is None) != (right is None):
            raise CampaignError("Give both documents a number, or neither.")
        if not choice and left is None:
            raise CampaignError("An answer about two documents needs a choice (left, right or equal), or two numbers.")
        if setup.forced and choice == "equal":
            raise CampaignError("One of the two documents has to be chosen: left or right.")
        found = {"choice": choice, "relevant": relevant}
        return found if left is None else found | {"left_number": left, "right_number": right}

    def settled_values(self, given: Mapping[str, Any], setup: Setup) -> dict[str, Any]:
        """A choice, and perhaps which documents are relevant. Two documents may be settled as equal in any campaign."""
        check_values({name: value for name, value in given.items() if value is not None}, "choice", "relevant")
        choice = as_choice(given.get("choice", ""))
        if not choice:
            raise CampaignError("Settle a comparison by a choice: left, right or equal.")
        return {"choice": choice, "relevant": as_relevant(given.get("relevant", ""), choice)}

    def parse(self, form: Mapping[str, str]) -> dict[str, Any]:
        """The choice and which documents are relevant, or the numbers."""
        choice, relevant = BOTH_BAD if form["bad"] else (form["choice"], form["relevant"])
        return {"choice": choice, "relevant": relevant, "numbers": _numbers(form)}

    def prompt(self, setup: Setup) -> str:
        """The keys, or numbers to follow; and the second question if it is asked."""
        if setup.ask == "magnitudes":
            return "A number for each, such as 30 10"
        choices = "l left, r right" if setup.forced else "l left, r right, = equal, b both bad"
        return f"Which is better? {choices}" + ("; then both, chosen or neither relevant" if setup.follow_up else "")

    def typed(self, words: Sequence[str]) -> dict[str, Any]:
        """The choice and perhaps which documents are relevant; or two numbers."""
        if len(words) > 2:
            raise CampaignError(f"An answer about two documents has at most 2 words, got {len(words)}.")
        if words and MAGNITUDE.fullmatch(words[0]):
            left, right = words[0], "".join(words[1:])
            return self.parse(dict.fromkeys(self.fields, "") | {"left_number": left, "right_number": right})
        return super().typed(words)

    def evidence(self, answers: Sequence[Answered | Settled]) -> PairAnswers | None:
        """The answers as data; None without any."""
        if not answers:
            return None
        rows = [
            {
                "query": event.query,
                "left": event.left,
                "right": event.right,
                "choice": event.choice,
                "relevant": event.relevant,
                "left_number": getattr(event, "left_number", None),
                "right_number": getattr(event, "right_number", None),
                "assessor": event.by,
                "seconds": getattr(event, "seconds", None),
            }
            for event in cast("Sequence[Compared | ComparisonAdjudicated]", answers)
        ]
        return as_answers(pd.DataFrame(rows))

    def words(self, answer: Answered | Settled, first: str | None = None) -> Words:
        """The better side, or the numbers.

        Examples
        --------
        >>> answer = Compared(by="ann", time=0.0, query="q", documents=("d1", "d2"), choice="left", relevant="both")
        >>> ComparisonKind().words(answer), ComparisonKind().words(answer, "d2")[0]
        (('left is better', 'upper is better'), 'right is better')
        """
        given = cast("Compared | ComparisonAdjudicated", answer)
        swapped = first is not None and first != given.left
        if isinstance(given, Compared) and given.left_number is not None and given.right_number is not None:
            numbers = (given.left_number, given.right_number)
            return (" and ".join(f"{number:g}" for number in (reversed(numbers) if swapped else numbers)),) * 2
        if given.choice == "equal":
            return ("both bad" if given.relevant == BOTH_BAD[1] else BOTH_BAD[0],) * 2
        wide, narrow = SIDES[0 if (given.choice == "left") != swapped else 1]
        return f"{wide} is better", f"{narrow} is better"

    def more_words(self, answer: Answered | Settled) -> str:
        """Which of the documents are relevant, if the answer tells more than its choice."""
        given = cast("Compared | ComparisonAdjudicated", answer)
        return "" if (given.choice, given.relevant) == BOTH_BAD else RELEVANT.get(given.relevant, "")

    def pace(self, answer: Answered) -> str:
        """Choices and numbers take different times."""
        return "preference" if cast("Compared", answer).choice else "magnitude"

    def spread(self, answers: Sequence[Answered]) -> float:
        """Whether assessors prefer different documents."""
        return float(len({cast("Compared", answer).better for answer in answers} - {""}) > 1)

    def is_same(self, answer: Answered, before: Answered) -> bool:
        """Whether the same document is better."""
        return cast("Compared", answer).better == cast("Compared", before).better

    def is_right(self, answer: Answered, known: Any, setup: Setup) -> bool:
        """Whether the better document is the known one."""
        return bool(cast("Compared", answer).better == known)

    def as_gold(self, given: Any, setup: Setup) -> dict[str, Any]:
        """The comparisons of a table of query, better and worse, or such documents by query; without contradictions."""
        orders = _read_orders(Path(given)) if isinstance(given, (str, Path)) else given
        found: dict[str, tuple[tuple[str, str], ...]] = {}
        for query, pairs in orders.items():
            known: dict[frozenset[str], str] = {}
            for better, worse in pairs:
                if better == worse:
                    raise CampaignError(f"Gold comparisons: query {query!r} compares document {better!r} with itself.")
                if known.setdefault(frozenset((better, worse)), better) != better:
                    raise CampaignError(
                        f"Gold comparisons: query {query!r} has {better!r} and {worse!r} in both orders."
                    )
            found[query] = tuple(dict.fromkeys((better, worse) for better, worse in pairs))
        return {"orders": found}

    def reads_gold(self, path: Path) -> bool:
        """Whether a file has comparisons with a known answer: a table with the columns better and worse."""
        return bool(suffix(path)) and {"better", "worse"} <= set(column_names(path))

    def page(self, state: State, material: Material) -> dict[str, Any]:
        """Which of the questions about two documents are asked."""
        setup = state.settings
        return {"numbers": setup.ask == "magnitudes", "follow_up": setup.follow_up, "forced": setup.forced}


def _numbers(form: Mapping[str, str]) -> tuple[float, float] | None:
    """The numbers of the documents on the left and on the right; None if the form has none."""
    given = form["left_number"].strip(), form["right_number"].strip()
    if not any(given):
        return None
    for side, text in zip(("left", "right"), given, strict=True):
        if not MAGNITUDE.fullmatch(text) or not float(text) > 0:
            raise CampaignError(f"The number of the {side} document must be above 0, got {text!r}.")
    return float(given[0]), float(given[1])


def _read_orders(path: Path) -> dict[str, tuple[tuple[str, str], ...]]:
    """The comparisons of a table of query, better and worse, by query: the better and the worse document."""
    table = read_table(path)
    names = {str(name).strip().lower(): name for name in table.columns}
    missing = next((name for name in ORDER_COLUMNS if name not in names), None)
    if missing is not None:
        raise DataError(f"no column {missing!r}: expected {', '.join(ORDER_COLUMNS)}.", path=path)
    orders: dict[str, list[tuple[str, str]]] = {}
    for query, better, worse in zip(*(ids(table[names[name]], name, path=path) for name in ORDER_COLUMNS), strict=True):
        orders.setdefault(query, []).append((better, worse))
    return {query: tuple(pairs) for query, pairs in orders.items()}


KINDS.add(COMPARISON, ComparisonKind(), own=True)
