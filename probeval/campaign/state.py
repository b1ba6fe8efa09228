"""The state of a campaign at one moment, and the fold over its log that makes it, pure.

.. math:: S_n = f(S_{n-1}, e_n)

Nothing here reads a clock or a store: the time is an argument.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, MutableMapping, ValuesView
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import pandas as pd

from probeval.campaign.access import Access
from probeval.campaign.events import (
    Answered,
    Changed,
    Commented,
    Created,
    Event,
    Flagged,
    GoldChanged,
    GuidelineChanged,
    Imported,
    Invited,
    Labelled,
    Leased,
    Phase,
    PhaseChanged,
    QueriesChanged,
    QueryGuidelinesChanged,
    Released,
    Restored,
    Revoked,
    RunsAdded,
    SetAside,
    Settled,
    SignedIn,
    SignedOut,
    Skipped,
    TaskPurpose,
    TopicsAssigned,
    Withdrawn,
)
from probeval.campaign.kinds.comparison import Compared, ComparisonAdjudicated
from probeval.campaign.kinds.grade import Adjudicated, Judged
from probeval.campaign.questions import COMPARISON, GRADE, Pair, Question, kind_of
from probeval.campaign.setup import ABOUT_RULE, COMPARED, Setup
from probeval.data.answers import PairAnswers
from probeval.data.judgments import Judgments
from probeval.display import Record
from probeval.errors import CampaignError

__all__ = ["MADE", "Layers", "Own", "State", "concerns_models", "fold"]

MADE = (TaskPurpose.judgment, TaskPurpose.aside)  # purposes of answers that were asked for their own sake
PACES = 50  # latest answers of a kind whose times are kept
K = TypeVar("K")
V = TypeVar("V")
MAX_CHANGES = 256  # changes of a mapping above its base, before they are merged into a new one


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


@dataclass(frozen=True, eq=False, repr=False)
class Own:
    """The answers that an assessor gave here and did not withdraw: their number, the last one, and those before it."""

    count: int
    last: Answered
    before: Own | None

    def __repr__(self) -> str:
        return f"<Own: {self.count:,} answers>"

    def answers(self) -> Iterator[Answered]:
        """The answers, the latest first."""
        own: Own | None = self
        while own is not None:
            yield own.last
            own = own.before


@dataclass(frozen=True, eq=False, repr=False)
class State(Record):
    """A campaign at one moment.

    Parameters
    ----------
    number
        The number of the last event.
    changed
        The number of the last event that changed a model's input: answers, labels or settings.
    setup
        The current settings; None before the first event.
    answers
        The answers to each question that were not withdrawn, in order; an assessor's latest counts. Those to gold and
        repeated questions too, which their purpose tells apart.
    settled
        The settled answers, by question.
    gold
        The known answers, by question.
    asked
        The number of questions with an answer that counts, by kind.
    own
        The answers that each assessor gave here, those to gold and repeated questions too.
    answered
        The number of questions of each query that each assessor has answered, by assessor and query. A question that
        checks their work counts like any other, and one that comes again counts again.
    paces
        The seconds of the latest answers with a measured time, by kind: ``grade``, ``preference`` or ``magnitude``.
    withdrawn
        The number of the last withdrawal.
    waiting
        The questions that have an answer and need another, as keys.
    leases
        Leases by question and assessor. Some may have run out: compare ``until`` with the time.
    picks
        The latest lease, before any judgment, of each pair that the model proposed: with the prediction of the pair.
    skipped
        Skips, by question.
    flags, comments
        These events, by pair.
    standing
        The latest event that set the answers of a person aside, or restored them, by person.
    owners
        The owners of topics, by query; topics without an owner are missing.
    topics
        The latest lease of each assessor to a question without an answer: its query is their topic.
    finished
        The last question that each assessor answered or skipped here.
    guideline
        The current guideline, or None.
    query_guidelines
        The latest change of the guideline of each query that has had one.
    texts
        Query texts by id, where known.
    labels, imports
        The imports of labels and of judgments, in order.
    runs
        The additions of late runs, in order.
    pooled
        The number of the last event that changed the depth or the measure: predictions made before it are of another
        pool or measure. Late runs leave the predictions of the others as they are.
    aimed
        The number of the last event that changed what the confidence is of: the goal, the measure, the rope, the depth
        or the runs. Forecasts from before it are of something else.
    ruled
        The number of the last event that changed this or the stopping rule: progress from before it is of another
        target.
    phase_change
        The latest pause, closing or the like; None if there was none.
    access
        The people who may sign in, and their sessions.
    tokens
        The events that have a token, by token.
    """

    number: int = 0
    changed: int = 0
    setup: Setup | None = None
    answers: Mapping[Question, tuple[Answered, ...]] = field(default_factory=dict)
    settled: Mapping[Question, Settled] = field(default_factory=dict)
    gold: Mapping[Question, Any] = field(default_factory=dict)
    asked: Mapping[str, int] = field(default_factory=dict)
    own: Mapping[str, Own] = field(default_factory=dict)
    answered: Mapping[tuple[str, str], int] = field(default_factory=dict)
    paces: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    withdrawn: int = 0
    waiting: Mapping[Question, None] = field(default_factory=dict)
    leases: Mapping[Question, Mapping[str, Leased]] = field(default_factory=dict)
    picks: Mapping[Question, Leased] = field(default_factory=dict)
    skipped: Mapping[Question, tuple[Skipped, ...]] = field(default_factory=dict)
    flags: Mapping[Pair, tuple[Flagged, ...]] = field(default_factory=dict)
    comments: Mapping[Pair, tuple[Commented, ...]] = field(default_factory=dict)
    standing: Mapping[str, SetAside | Restored] = field(default_factory=dict)
    owners: Mapping[str, str] = field(default_factory=dict)
    topics: Mapping[str, Leased] = field(default_factory=dict)
    finished: Mapping[str, Question] = field(default_factory=dict)
    guideline: GuidelineChanged | None = None
    query_guidelines: Mapping[str, QueryGuidelinesChanged] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    labels: tuple[Labelled, ...] = ()
    imports: tuple[Imported, ...] = ()
    runs: tuple[RunsAdded, ...] = ()
    pooled: int = 0
    aimed: int = 0
    ruled: int = 0
    phase_change: PhaseChanged | None = None
    access: Access = field(default_factory=Access)
    tokens: Mapping[str, Event] = field(default_factory=dict)

    @property
    def settings(self) -> Setup:
        """The current settings."""
        if self.setup is None:
            raise CampaignError("The log does not begin with the creation of a campaign.")
        return self.setup

    @property
    def phase(self) -> Phase:
        """Whether the campaign is open, paused or closed."""
        return Phase.open if self.phase_change is None else self.phase_change.phase

    @property
    def guideline_version(self) -> int:
        """The version of the guidelines, of all queries and of single ones; 0 if there are none."""
        general = 0 if self.guideline is None else self.guideline.version
        return max(general, *(each.version for each in self.query_guidelines.values()), 0)

    def query_guideline(self, query: str) -> str:
        """The guideline for this query alone; empty if there is none."""
        change = self.query_guidelines.get(query)
        return "" if change is None else change.texts[query].strip()

    def given(self, question: Question) -> tuple[Answered, ...]:
        """The answers to a question that count, in order."""
        answers = self.answers.get(question)
        return tuple(answer for answer in answers if answer.counts) if answers else ()

    def latest(self, question: Question) -> dict[str, Answered]:
        """Each assessor's latest answer that counts, by assessor."""
        return {answer.by: answer for answer in self.answers.get(question, ()) if answer.counts}

    def made(self, question: Question) -> dict[str, Answered]:
        """Each assessor's latest answer that counts or is set aside, by assessor."""
        return {answer.by: answer for answer in self.answers.get(question, ()) if answer.purpose in MADE}

    def checks(self, question: Question) -> dict[str, Answered]:
        """Each assessor's latest answer to a gold or repeated question, by assessor."""
        return {answer.by: answer for answer in self.answers.get(question, ()) if answer.purpose not in MADE}

    def is_set_aside(self, assessor: str) -> bool:
        """Whether the answers of this person are set aside."""
        return isinstance(self.standing.get(assessor), SetAside)

    @property
    def set_aside(self) -> tuple[str, ...]:
        """Those whose answers are set aside, by name."""
        return tuple(sorted(filter(self.is_set_aside, self.standing)))

    def gold_answers(self, question: Question) -> list[Answered]:
        """Each assessor's latest answer to a question that was gold for them."""
        answers = self.answers.get(question, ())
        return [*{answer.by: answer for answer in answers if answer.purpose is TaskPurpose.gold}.values()]

    def is_known(self, question: Question) -> bool:
        """Whether the question has an answer that counts, or is settled."""
        return question in self.settled or any(answer.counts for answer in self.answers.get(question, ()))

    def own_count(self, assessor: str) -> int:
        """The number of answers that an assessor gave here, those to gold and repeated questions too."""
        own = self.own.get(assessor)
        return 0 if own is None else own.count

    def holders(self, question: Question, now: float) -> set[str]:
        """The assessors who hold the question at this time."""
        return {who for who, lease in self.leases.get(question, {}).items() if lease.until > now}

    def held_by(self, assessor: str, now: float) -> list[Leased]:
        """The leases of an assessor at this time, oldest first."""
        mine = (held[assessor] for held in self.leases.values() if assessor in held)
        return sorted((lease for lease in mine if lease.until > now), key=lambda lease: lease.number)

    def is_open(self, question: Question, assessor: str, now: float) -> bool:
        """Whether the question may be leased to this assessor.

        It may if they have not answered or skipped it and do not hold it, it is not settled, and it needs more
        assessors than have answered it or hold it.
        """
        everyone = kind_of(question.kind).by_everyone
        given = self.given(question)
        if question in self.settled or (given and not everyone and question not in self.waiting):
            return False  # settled, or answered by as many assessors as it needs
        if any(skip.by == assessor for skip in self.skipped.get(question, ())):
            return False
        busy = self.holders(question, now).union(answer.by for answer in given)
        return assessor not in busy and (not busy or everyone or len(busy) < self.settings.wanted(question))

    def of_kind(self, kind: str) -> Iterator[tuple[Question, tuple[Answered, ...]]]:
        """The questions of a kind that have an answer that counts, with these answers."""
        for question, answers in self.answers.items():
            if question.kind == kind and any(answer.counts for answer in answers):
                yield question, tuple(answer for answer in answers if answer.counts)

    @cached_property
    def judged(self) -> Mapping[Pair, tuple[Judged, ...]]:
        """The judgments of each pair that has any, in order."""
        return {question.pairs[0]: cast("Any", given) for question, given in self.of_kind(GRADE)}

    @cached_property
    def adjudicated(self) -> Mapping[Pair, Adjudicated]:
        """The settled grades, by pair."""
        return {q.pairs[0]: cast("Adjudicated", event) for q, event in self.settled.items() if q.kind == GRADE}

    @cached_property
    def graded(self) -> frozenset[Pair]:
        """The pairs that are judged or adjudicated."""
        return frozenset(self.judged.keys() | self.adjudicated.keys())

    def known(self, kind: str) -> dict[Question, Any]:
        """The known answers to gold questions of a kind."""
        return {question: known for question, known in self.gold.items() if question.kind == kind}

    @cached_property
    def disagreements(self) -> list[Question]:
        """Questions whose assessors disagree, not yet settled: by kind, the widest spread first, then by id."""
        spread: dict[Question, float] = {}
        for question, answers in self.answers.items():
            if len(answers) > 1 and question not in self.settled and (given := [*self.latest(question).values()]):
                kind = kind_of(question.kind)
                if kind.settled is not None and (apart := kind.spread(given)):
                    spread[question] = apart
        return sorted(spread, key=lambda question: (question.kind != GRADE, question.kind, -spread[question], question))

    def contested(self, kind: str) -> list[Question]:
        """Those disagreements about questions of a kind."""
        return [question for question in self.disagreements if question.kind == kind]

    @cached_property
    def counted_answers(self) -> list[Answered | Settled]:
        """The answers of all kinds but grades that count: each assessor's latest, or the settled one; in order."""
        events: list[Answered | Settled] = [event for q, event in self.settled.items() if q.kind != GRADE]
        for question in self.answers:
            if question.kind != GRADE and question not in self.settled:
                events += self.latest(question).values()
        return sorted(events, key=lambda event: event.number)

    @cached_property
    def compared(self) -> list[Compared | ComparisonAdjudicated]:
        """The answers about two documents that count, in order."""
        return [cast("Compared", event) for event in self.counted_answers if event.asks == COMPARISON]

    @cached_property
    def pair_answers(self) -> PairAnswers | None:
        """What answers of all kinds tell about two documents, as data; None without any."""
        found: PairAnswers | None = None
        for name in dict.fromkeys(event.asks for event in self.counted_answers):
            more = kind_of(name).evidence([event for event in self.counted_answers if event.asks == name])
            if isinstance(more, PairAnswers):
                found = more if found is None else found.with_more(more)
        return found

    @cached_property
    def judgments(self) -> Judgments:
        """One grade per pair: the adjudicated one, otherwise the latest grades combined by the rule.

        By the rule ``unanimous`` a pair whose assessors differ has their median here, for exports; for the model it is
        uncertain until it is adjudicated (:attr:`evidence`).
        """
        rule = "median" if self.settings.rule == "unanimous" else self.settings.rule
        return _one_per_pair(self._given(), rule, _as_judgments([*self.adjudicated.values()]))

    @cached_property
    def evidence(self) -> Judgments:
        """The judgments for the model: one grade per pair; by the rule ``unanimous`` all grades that differ."""
        differing = [question.pairs[0] for question in self.contested(GRADE)]
        if self.settings.rule != "unanimous" or not differing:
            return self.judgments
        queries, docs = zip(*differing, strict=True)
        one, given = self.judgments, self._given()
        settled = one.take(~np.isin(one.pair, one.pool.locate(queries, docs))).to_frame()
        several = given.take(np.isin(given.pair, given.pool.locate(queries, docs))).to_frame()
        rows = pd.concat([settled, several.drop_duplicates(["query", "doc", "assessor"], keep="last")])
        return Judgments.rows(
            rows["query"].tolist(), rows["doc"].tolist(), rows["grade"].to_numpy(), assessors=rows["assessor"].tolist()
        )

    def _given(self) -> Judgments:
        """All grades of pairs that are not adjudicated, in chronological order."""
        given = [j for pair, events in self.judged.items() if pair not in self.adjudicated for j in events]
        given.sort(key=lambda judgment: judgment.number)
        return _as_judgments(given)

    def grade_matrix(self) -> tuple[list[str], list[Pair], np.ndarray[Any, np.dtype[np.float64]]]:
        """Assessors, pairs, and the latest grades, shape (assessor, pair), NaN for none."""
        pairs = sorted(self.judged)
        who = sorted({j.by for events in self.judged.values() for j in events})
        row = {name: i for i, name in enumerate(who)}
        grades = np.full((len(who), len(pairs)), np.nan)
        for at, pair in enumerate(pairs):
            for judgment in self.judged[pair]:
                grades[row[judgment.by], at] = max(judgment.grade, self.settings.scale.grades[0])
        return who, pairs, grades


def _as_judgments(events: list[Judged] | list[Adjudicated]) -> Judgments:
    return cast("Judgments", kind_of(GRADE).evidence(events))


def _one_per_pair(given: Judgments, rule: str, last: Judgments) -> Judgments:
    grades = given.grades(rule)
    labels = [*map(given.pool.label, range(len(given.pool))), *map(last.pool.label, range(len(last.pool)))]
    return Judgments.rows(
        [query for query, _ in labels], [doc for _, doc in labels], np.concatenate([grades, last.grades("latest")])
    )


def concerns_models(event: Event) -> bool:
    """Whether an event changes a model's input; answers to gold and repeated questions do not."""
    if isinstance(event, (Answered, Withdrawn)):
        return event.purpose is TaskPurpose.judgment
    return isinstance(event, (Created, Changed, Settled, Labelled, RunsAdded, SetAside, Restored))


def fold(state: State, events: Iterable[Event]) -> State:
    """The state after these events; the given state is not modified.

    >>> from probeval.campaign import Setup
    >>> from probeval.data import Scale
    >>> setup = Setup(name="mine", metric="P@5", scale=Scale.binary(), model="uniform", depth=5)
    >>> log = [
    ...     Created(by="eve", time=0.0, number=1, setup=setup),
    ...     Judged(by="ann", time=1.0, number=2, query="q", documents=("d",), grade=1.0),
    ...     Withdrawn(by="ann", time=2.0, number=3, query="q", documents=("d",), judgment=2),
    ... ]
    >>> before, after = fold(State(), log[:2]), fold(State(), log)
    >>> len(before.judged), len(after.judged)
    (1, 0)
    """
    draft = _Draft(state)
    for event in events:
        draft.add(event)
    return draft.state()


class _Draft:
    """A state under construction: each mapping is copied once per batch of events, on its first change.

    A copy shares what did not change (:class:`Layers`), so a step takes as long late in a campaign as at its start.
    """

    def __init__(self, before: State) -> None:
        self.before, self.now = before, before
        self.copies: dict[str, MutableMapping[Any, Any]] = {}

    def state(self) -> State:
        changed: dict[str, Any] = self.copies
        return replace(self.now, **changed)

    def seen(self, name: str) -> Mapping[Any, Any]:
        """The current value of a mapping, to read."""
        before: Mapping[Any, Any] = getattr(self.before, name)
        return self.copies.get(name, before)

    def of(self, name: str) -> MutableMapping[Any, Any]:
        """The current value of a mapping, to write."""
        if name not in self.copies:
            known = getattr(self.before, name)
            self.copies[name] = known.copy() if isinstance(known, Layers) else Layers(known)
        return self.copies[name]

    def add(self, event: Event) -> None:
        if event.number != self.now.number + 1:
            raise CampaignError(f"Event {event.number} of the log follows event {self.now.number}: events are missing.")
        changed = event.number if concerns_models(event) else self.now.changed
        self.now = replace(self.now, number=event.number, changed=changed)
        if event.token is not None:
            self.of("tokens")[event.token] = event
        match event:
            case Answered():
                self.answer(event)
            case Leased():
                leases = self.of("leases")
                leases[event.question] = {**leases.get(event.question, {}), event.by: event}
                if event.purpose is TaskPurpose.judgment and not self.opinions(event.question):
                    self.of("topics")[event.by] = event
                if event.pick is not None and not self.opinions(event.question):
                    self.of("picks")[event.question] = event
            case Released():
                self.release(event.question, event.by)
            case Withdrawn():
                self.withdraw(event)
            case Skipped():
                self.append("skipped", event.question, event)
                self.of("finished")[event.by] = event.question
                self.release(event.question, event.by)
            case Settled():
                self.of("settled")[event.question] = event
                self.update_waiting(event.question)
            case GoldChanged():
                others = {q: known for q, known in self.seen("gold").items() if q.kind != event.asks}
                self.copies["gold"] = others | event.known
            case Flagged():
                self.append("flags", event.pair, event)
            case Commented():
                self.append("comments", event.pair, event)
            case Created() | Changed():
                before, after = self.now.setup, event.setup
                if before is not None and (before.metric, before.depth) != (after.metric, after.depth):
                    self.repool()
                differ = {n for n in ABOUT_RULE if before is None or getattr(before, n) != getattr(after, n)}
                if differ:
                    aimed = self.now.aimed if differ.isdisjoint(COMPARED) else self.now.number
                    self.now = replace(self.now, aimed=aimed, ruled=self.now.number)
                self.now = replace(self.now, setup=event.setup)
                for question in self.seen("answers"):
                    self.update_waiting(question)
            case GuidelineChanged():
                self.now = replace(self.now, guideline=event)
            case QueryGuidelinesChanged():
                self.of("query_guidelines").update(dict.fromkeys(event.texts, event))
            case QueriesChanged():
                self.of("texts").update(event.texts)
            case TopicsAssigned():
                owners = {**self.seen("owners"), **event.owners}
                self.copies["owners"] = {query: name for query, name in owners.items() if name}
            case Labelled():
                self.now = replace(self.now, labels=(*self.now.labels, event))
            case Imported():
                self.now = replace(self.now, imports=(*self.now.imports, event))
            case RunsAdded():
                self.now = replace(self.now, runs=(*self.now.runs, event), aimed=event.number, ruled=event.number)
            case PhaseChanged():
                self.now = replace(self.now, phase_change=event)
            case SetAside() | Restored():
                self.of("standing")[event.assessor] = event
                self.stand(event.assessor)
            case Invited() | Revoked() | SignedIn() | SignedOut():
                self.now = replace(self.now, access=self.now.access.after(event))

    def answer(self, event: Answered) -> None:
        """Add an answer, and end the lease that it was made under."""
        question, own = event.question, self.seen("own").get(event.by)
        kept = replace(event, purpose=self.standing_purpose(event))
        if event.seconds is not None:
            pace, paces = event.asked.pace(event), self.of("paces")
            paces[pace] = (*paces.get(pace, ()), event.seconds)[-PACES:]
        before = self.answers_to(question, event.by)
        self.append("answers", question, kept)
        self.count(question, event.by, before)
        if not event.source:
            self.of("own")[event.by] = Own(1 if own is None else own.count + 1, event, own)
            self.of("finished")[event.by] = question
        self.release(question, event.by)
        self.update_waiting(question)
        if event.source and question not in self.seen("waiting"):
            self.of("leases").pop(question, None)  # answered in another tool, perhaps under another name

    def standing_purpose(self, answer: Answered) -> TaskPurpose:
        """The purpose of an answer by the standing of its author."""
        if answer.purpose not in MADE:
            return answer.purpose
        is_aside = isinstance(self.seen("standing").get(answer.by), SetAside)
        return TaskPurpose.aside if is_aside else TaskPurpose.judgment

    def stand(self, assessor: str) -> None:
        """Make all answers of a person count or not, by their standing now; those set aside hold no question."""
        answers = list(self.seen("answers").items())
        for question, given in answers:
            if all(answer.by != assessor for answer in given):
                continue
            before = self.answers_to(question, assessor)
            self.of("answers")[question] = tuple(
                replace(answer, purpose=self.standing_purpose(answer)) if answer.by == assessor else answer
                for answer in given
            )
            self.count(question, assessor, before)
            self.update_waiting(question)
        for question in [q for q, held in self.seen("leases").items() if assessor in held]:
            self.release(question, assessor)
        self.of("topics").pop(assessor, None)

    def withdraw(self, event: Withdrawn) -> None:
        """Take an answer back."""
        question, answers = event.question, self.of("answers")
        before = self.answers_to(question, event.by)
        left = tuple(answer for answer in answers.get(question, ()) if answer.number != event.judgment)
        if left:
            answers[question] = left
        else:
            answers.pop(question, None)
        self.count(question, event.by, before)
        own = self.of("own").pop(event.by, None)
        kept = None if own is None else _without(own, event.judgment)
        if kept is not None:
            self.of("own")[event.by] = kept
        self.update_waiting(question)
        self.now = replace(self.now, withdrawn=event.number)

    def opinions(self, question: Question) -> set[str]:
        """The assessors who have given the question an answer that counts."""
        return {answer.by for answer in self.seen("answers").get(question, ()) if answer.counts}

    def answers_to(self, question: Question, assessor: str) -> tuple[int, int]:
        """How often the assessor was asked the question and answered, and whether it has an answer that counts."""
        given = self.seen("answers").get(question, ())
        asked = {answer.purpose for answer in given if answer.by == assessor}  # a person's own are all aside, or none
        return len(asked), any(answer.counts for answer in given)

    def count(self, question: Question, assessor: str, before: tuple[int, int]) -> None:
        """Count the question for its assessor and its kind, by what it was ``before``."""
        keys = ("answered", (assessor, question.query)), ("asked", question.kind)
        for (name, key), was, now in zip(keys, before, self.answers_to(question, assessor), strict=True):
            if now != was:
                counts = self.of(name)
                counts[key] = counts.get(key, 0) + now - was

    def append(self, name: str, key: Any, event: Event) -> None:
        lists = self.of(name)
        lists[key] = (*lists.get(key, ()), event)

    def repool(self) -> None:
        """Forget the predictions so far: they are of another pool or measure."""
        self.of("picks").clear()
        self.now = replace(self.now, pooled=self.now.number)

    def release(self, question: Question, assessor: str) -> None:
        held = self.seen("leases").get(question, {})
        if assessor not in held:
            return
        left = {who: lease for who, lease in held.items() if who != assessor}
        if left:
            self.of("leases")[question] = left
        else:
            del self.of("leases")[question]

    def update_waiting(self, question: Question) -> None:
        """Add the question to the waiting ones, or remove it."""
        opinions, by_everyone = len(self.opinions(question)), kind_of(question.kind).by_everyone
        is_done = question in self.seen("settled") or by_everyone or not opinions
        if not is_done and opinions < self.now.settings.wanted(question):
            self.of("waiting").setdefault(question)
        elif question in self.seen("waiting"):
            del self.of("waiting")[question]


def _without(own: Own, number: int) -> Own | None:
    """The answers of an assessor without the one with this number."""
    if own.last.number == number:
        return own.before
    kept: Own | None = None
    for answer in reversed([each for each in own.answers() if each.number != number]):
        kept = Own(1 if kept is None else kept.count + 1, answer, kept)
    return kept
