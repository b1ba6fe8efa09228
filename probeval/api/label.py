"""Labels by a language model on a server of one's choice, for the pairs that need them."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd

from probeval.api.evidence import as_collection
from probeval.api.report import alone, is_store
from probeval.api.settings import QueryTexts, Work
from probeval.arrays import Bools
from probeval.data import LabelTable, ObserverSpec, as_labels, read_labels
from probeval.data.files import read_bytes, suffix, write_bytes
from probeval.data.runs import Runs
from probeval.data.tables import as_frame, column, ids, read_table
from probeval.data.texts import as_text_mapping
from probeval.display import Table, fact_table
from probeval.errors import DataError, LabellingError
from probeval.labelling import (
    AnswerCache,
    Asked,
    Client,
    Given,
    Labeller,
    TokenPrices,
    Tokens,
    WorkOnPairs,
    day,
    load_prompt,
)
from probeval.records import About, is_given, task
from probeval.results import Result

__all__ = ["LabelFailure", "LabelInputs", "LabelsMade", "label"]

KEY = "PROBEVAL_API_KEY"
CACHE = "probeval-answers.sqlite"
RESERVED = ("messages", "model", "stream", "n", "temperature", "max_tokens", "logprobs", "top_logprobs", "seed")
SHOWN = 10  # failures in a table
SUMMED = (
    "pairs", "kept", "labelled", "requests", "expected_tokens_in", "expected_tokens_out", "tokens_in", "tokens_out",
    "seconds",
)  # fmt: skip
AS_MUCH = 10  # judgments that the labels of one request may cost as much as
NOT_IN_COLUMNS = re.compile(r"[^\w.+-]+")


def _parse_extra(option: str, text: str) -> dict[str, Any]:
    """The JSON in an option."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise DataError(f'{option} takes a JSON object, such as {{"reasoning_effort": "low"}}, got {text!r:.60}.')
    return found


@dataclass(frozen=True)
class LabelFailure:
    """A pair that has no label, and why."""

    query: str
    doc: str
    reason: str


@dataclass(frozen=True, eq=False, repr=False)
class LabelsMade(Result):
    """Labels by a language model: what was asked, what came of it, and what it cost."""

    column: Annotated[str, "The name of the labeller: its column in the table."]
    llm: Annotated[str, "The name of the model."]
    server: Annotated[str, "The address that the texts were sent to."]
    provenance: Annotated[
        str, "Model, prompt with its fingerprint, parameters and date, as they are kept with the labels."
    ]
    pairs: Annotated[int, "The number of pairs to label."]
    kept: Annotated[int, "The number of these that were answered before: they are not asked again."]
    labelled: Annotated[int, "The number that have a label now."]
    left: Annotated[int, "The number that were not asked, because the work ended before."]
    ended: Annotated[str, "``complete``, ``budget``, ``interrupted``, or ``dry run``."]
    requests: Annotated[int, "The number of requests, repeated ones too."]
    expected_tokens_in: Annotated[int, "The tokens of all questions to ask, estimated before by their length."]
    expected_tokens_out: Annotated[int, "The tokens of all answers, estimated before."]
    expected_cost: Annotated[float | None, "What they cost; null without prices."]
    tokens_in: Annotated[int, "The tokens of the questions asked, as the server counts them."]
    tokens_out: Annotated[int, "The tokens of its answers."]
    cost: Annotated[float | None, "What they cost; null without prices."]
    seconds: Annotated[float, "The time that the work took."]
    out: Annotated[str | None, "The file of the labels; null if none was written."]
    failures: Annotated[tuple[LabelFailure, ...], "The pairs that were asked in vain, or have no text."]
    example: Annotated[str, "With a dry run, the first question as it would be sent; else empty."] = ""
    table: LabelTable | None = None  # the labels; None if there are none
    notes: tuple[str, ...] = field(default=())

    @classmethod
    def joined(cls, made: Sequence[LabelsMade], why: str) -> LabelsMade:
        """Return several pieces of work as one, and why it ended."""

        def total(name: str) -> Any:
            return sum(getattr(one, name) for one in made)

        counts: dict[str, Any] = {name: total(name) for name in SUMMED}
        if made[0].cost is not None:
            counts |= {name: total(name) for name in ("cost", "expected_cost")}
        failures = tuple(failure for one in made for failure in one.failures)
        notes = tuple(dict.fromkeys([note for one in made for note in one.notes]))
        return replace(made[-1], **counts, failures=failures, notes=(*notes, *((why,) if why else ())))

    @property
    def exit_code(self) -> int:
        """130 if the user ended the work, as after Ctrl-C in a shell."""
        return 130 if self.ended == "interrupted" else 0

    def _headline(self) -> str:
        return f"{self.labelled:,} of {self.pairs:,} pairs labelled by {self.column}"

    def tables(self) -> tuple[Table, ...]:
        """What was done and what it cost; the failures."""
        dry = self.ended == "dry run"
        facts = {"pairs": f"{self.pairs:,}", "answered before": f"{self.kept:,}"}
        if not dry:
            facts |= {"labelled": f"{self.labelled:,}", "failed": f"{len(self.failures):,}", "left": f"{self.left:,}"}
        facts["expected tokens"] = f"{self.expected_tokens_in:,} + {self.expected_tokens_out:,}"
        if self.expected_cost is not None:
            facts["expected cost"] = f"{self.expected_cost:,.4f}"
        if not dry:
            facts |= {"requests": f"{self.requests:,}", "tokens": f"{self.tokens_in:,} + {self.tokens_out:,}"}
            facts |= {} if self.cost is None else {"cost": f"{self.cost:,.4f}"}
        shown = [Table(fact_table(facts), self._headline() if not dry else f"{self.column}, a dry run")]
        if self.failures:
            more = f", the first {SHOWN} of {len(self.failures):,}" if len(self.failures) > SHOWN else ""
            shown.append(Table(self.to_frame().head(SHOWN), f"Failures{more}"))
        return tuple(shown)

    def sentences(self) -> tuple[str, ...]:
        """How it ended, what is left to do, and where the labels are."""
        lines = list(self.notes)
        if self.ended == "dry run":
            lines.append(
                f"Nothing was sent. The first question would be:\n\n{self.example}\n"
                if self.example
                else "Nothing was sent, and nothing is to be asked."
            )
            return tuple(lines)
        if self.ended in ("budget", "interrupted"):
            why = "The budget ended" if self.ended == "budget" else "You ended"
            lines.append(f"{why} the work with {self.left:,} pairs left. The same command goes on from here.")
        if self.failures:
            lines.append(
                f"{len(self.failures):,} pairs have no label. --failed asks for these alone; --format csv lists them."
            )
        if self.out is not None:
            lines.append(f"Labels: {self.out}, column {self.column}.")
        return tuple(lines)


@dataclass(frozen=True, eq=False, repr=False)
class LabelInputs(Work):
    """Label pairs of query and document by a language model, on any server of the OpenAI chat protocol.

    The pairs are those that runs retrieved, or the pool of a campaign; ``only`` and ``missing`` choose among them. The
    texts of queries and documents are sent to the server, and nothing else is. Answers are kept in ``cache``, under the
    model, the prompt, the texts and the parameters, and never asked for again. The key comes from the environment.

    Examples
    --------
    >>> import probeval
    >>> from probeval.labelling import LoopbackServer
    >>> runs = {"bm25": {"q1": {"d1": 2.0, "d2": 1.0}}}
    >>> texts = {"d1": "Goldfish grow to ten centimetres.", "d2": "Cats sleep."}
    >>> with LoopbackServer({("do goldfish grow", texts["d1"]): 3}) as server:
    ...     made = probeval.label(
    ...         runs, base_url=server.base_url, llm="my-llm", queries={"q1": "do goldfish grow"}, docs=texts,
    ...         cache=":memory:",
    ...     )
    >>> made.table.to_frame().round(2)  # doctest: +NORMALIZE_WHITESPACE
      query doc  my-llm_graded:0  my-llm_graded:1  my-llm_graded:2  my-llm_graded:3
    0    q1  d1             0.05             0.05             0.05             0.85
    1    q1  d2             0.85             0.05             0.05             0.05
    """

    runs: Annotated[
        Any,
        About(
            "TREC run files (plain or gz), globs, or a directory; or the store of a campaign.",
            metavar="RUNS...|STORE", argument=True, kind=str, many=True,
        ),
    ]  # fmt: skip
    _: KW_ONLY
    base_url: Annotated[str, About("The address of the server, such as http://127.0.0.1:8000/v1.", metavar="URL")]
    llm: Annotated[str, About("The name of the language model.", metavar="NAME", option="--model")]
    docs: Annotated[Any, About("Document texts: a table of doc and text, or irds:ID.", metavar="FILE", kind=Path)]
    queries: QueryTexts = None
    prompt: Annotated[
        str | PathLike[str],
        About("The prompt: graded (0 to 3), binary, or a file of your own.", metavar="NAME|FILE", kind=str),
    ] = "graded"
    guideline: Annotated[
        Any,
        About("The guideline of the assessors: a text file; default: that of the campaign.", metavar="FILE", kind=Path),
    ] = None
    depth: Annotated[int, About("Label the first ranks of every run.", least=1)] = 10
    only: Annotated[
        Any, About("Label only these pairs, in this order: a table of query and doc.", metavar="FILE", kind=Path)
    ] = None
    missing: Annotated[
        bool, About("Label only pairs without a label: in --labels, in the campaign, or in this column of the output.")
    ] = False
    failed: Annotated[bool, About("Ask only for pairs whose last answer was no grade.")] = False
    labels: Annotated[
        Any, About("A table of labels that are there already, for --missing.", metavar="FILE", kind=Path, many=True)
    ] = None
    name: Annotated[str | None, About("The campaign, if the store has several.", metavar="NAME")] = None
    column: Annotated[
        str | None, About("The name of the labeller in the table; default: model and prompt.", metavar="NAME")
    ] = None
    out: Annotated[
        Any,
        About(
            "The table of labels (csv or tsv); one that is there is added to.",
            metavar="FILE", option="-o, --out", kind=Path, default=Path("labels.csv"),
        ),
    ] = None  # fmt: skip
    cache: Annotated[str | PathLike[str], About("The file that keeps answers.", metavar="FILE", kind=Path)] = CACHE
    samples: Annotated[
        int, About("The number of answers per pair, where the server gives no probabilities.", least=1, most=100)
    ] = 1
    temperature: Annotated[
        float | None, About("The temperature; default: 0, or 1 with several samples.", least=0, most=2)
    ] = None
    max_tokens: Annotated[int, About("The most tokens of an answer.", least=1)] = 8
    longest: Annotated[int, About("The most characters of a document that are sent; the rest is cut off.", least=1)] = (
        12_000
    )
    extra: Annotated[
        Mapping[str, Any] | None,
        About("What else to send, as JSON.", metavar="JSON", kind=str, parse=_parse_extra),
    ] = None
    parallel: Annotated[int, About("The number of requests at a time.", least=1, most=256)] = 8
    timeout: Annotated[float, About("The seconds that an answer may take.", least=0.1)] = 60.0
    retries: Annotated[int, About("How often a request is repeated if the server is busy.", least=0)] = 6
    key_env: Annotated[
        str | None, About(f"The environment variable with the key; default: {KEY}, if set.", metavar="NAME")
    ] = None
    price_in: Annotated[float | None, About("The price of a million tokens of questions.", least=0)] = None
    price_out: Annotated[float | None, About("The price of a million tokens of answers.", least=0)] = None
    budget: Annotated[float | None, About("End before the work costs more than this.", least=0)] = None
    prices: Annotated[
        Any,
        About(
            "In a campaign, what a judgment costs and a label of this model: label as long as that is expected to tell "
            "more for the price than judgments, and add the labels to the campaign.",
            metavar="person=1,NAME=.01",
            kind=str,
        ),
    ] = None
    dry_run: Annotated[bool, About("Send nothing: show the number of pairs, the cost and the first question.")] = False

    def run(self) -> LabelsMade:
        """The labels."""
        return self._label() if self.prices is None else self._label_by_worth()

    def _label_by_worth(self) -> LabelsMade:
        """Label what a campaign needs most, request by request, until people are worth more for their price."""
        from probeval.campaign import Campaign
        from probeval.selection import AnswerPrices

        prompt, place, costs = load_prompt(self.prompt), alone(self.runs), AnswerPrices.parse(self.prices)
        name = _column(self.llm, prompt.name) if self.column is None else self.column
        if not (isinstance(place, (str, PathLike)) and is_store(str(place))) or set(costs.machines or ()) != {name}:
            raise DataError(
                f"--prices is for the store of a campaign, with the price of a judgment and that of {name}: "
                f"person=1,{name}=.01."
            )
        if self.only is not None or self.missing or self.failed or self.dry_run:
            raise DataError("--prices chooses the pairs: leave out --only, --missing, --failed and --dry-run.")
        made: list[LabelsMade] = []
        in_vain: set[tuple[str, str]] = set()
        with Campaign.open(str(place), name=self.name) as campaign:
            while True:
                pairs, why = campaign.request_labels(costs, name, n=AS_MUCH, without=in_vain)
                left = None if self.budget is None else self.budget - sum(one.cost or 0.0 for one in made)
                if not pairs or (left is not None and left <= 0):
                    break
                self.reporter.say(why)
                only = pd.DataFrame(pairs, columns=["query", "doc"])
                one = replace(self, prices=None, only=only, budget=left)._label()
                made.append(one)
                in_vain |= {(failure.query, failure.doc) for failure in one.failures}
                new = None if one.table is None else _of_pairs(one.table.take([name]), pairs)
                if new is not None:
                    campaign.add_labels(name, new, source=f"probeval label {len(made)}")
                if one.ended != "complete" or new is None:
                    break
        if not made:
            none = replace(self, prices=None, only=pd.DataFrame({"query": [], "doc": []}, dtype=str))._label()
            return replace(none, notes=(*none.notes, why))
        return LabelsMade.joined(made, why if made[-1].ended == "complete" else "")

    def _label(self) -> LabelsMade:
        """Label the pairs that are asked for, once."""
        started, prices = time.monotonic(), self._prices
        client, source = Client(self.base_url, self._key, self.timeout), self._source()
        labeller = self._labeller(source)
        name = _column(self.llm, labeller.prompt.name) if self.column is None else self.column
        before = self._before(name, labeller)
        asked, textless = self._asked(source, before, name)
        unused = self.dry_run and not Path(self.cache).exists()
        with AnswerCache(":memory:" if unused else self.cache) as cache:
            todo, kept = _divided(asked, labeller, cache, failed=self.failed)
            expected = _expected(todo, labeller)
            if prices is not None and self.budget is not None and prices.of(expected) > self.budget and not self.only:
                todo.sort(
                    key=lambda one: source.best_rank[one.query, one.doc]
                )  # what the budget reaches, of all queries
            self._announce(client, labeller, todo, expected, prices)
            work = WorkOnPairs(
                labeller, client, cache, todo,
                parallel=self.parallel, prices=prices, budget=self.budget, retries=self.retries, proven=bool(kept),
            )  # fmt: skip
            given = [Given(one, None, is_left=True) for one in todo] if self.dry_run else self._labels(work, len(todo))
        labelled = [one for one in (*kept, *given) if one.grade is not None]
        table = _table(name, labeller, labelled, before)
        written = self.out is not None and table is not None and bool(labelled) and not self.dry_run
        if written and table is not None:
            path = Path(self.out)
            write_bytes(path, table.to_csv(separator=_separator(path)).encode())
        failures = [LabelFailure(g.asked.query, g.asked.doc, g.reason) for g in given if g.is_failure]
        return LabelsMade(
            column=name,
            llm=self.llm,
            server=self.base_url,
            provenance=table.provenance[name] if table is not None and labelled else labeller.provenance,
            pairs=len(asked) + len(textless),
            kept=len(kept),
            labelled=len(labelled),
            left=sum(one.is_left for one in given),
            ended="dry run" if self.dry_run else work.ended,
            requests=work.requests,
            expected_tokens_in=expected.questions,
            expected_tokens_out=expected.answers,
            expected_cost=None if prices is None else prices.of(expected),
            tokens_in=work.used.questions,
            tokens_out=work.used.answers,
            cost=None if prices is None else work.cost,
            seconds=time.monotonic() - started,
            out=str(self.out) if written else None,
            failures=(*textless, *failures),
            example=labeller.question(todo[0]) if self.dry_run and todo else "",
            table=table,
            notes=_remarks(work, given),
        )

    @property
    def _prices(self) -> TokenPrices | None:
        given = (self.price_in, self.price_out)
        if given == (None, None):
            if self.budget is not None:
                raise DataError("--budget needs prices: --price-in and --price-out, per million tokens.")
            return None
        return TokenPrices(*(price or 0.0 for price in given))

    @property
    def _key(self) -> str:
        """The key, which is passed to the client and nowhere else."""
        if self.key_env is None:
            return os.environ.get(KEY, "").strip()
        if not os.environ.get(self.key_env, "").strip():
            raise LabellingError(f"the environment has no variable {self.key_env}, which --key-env names. Set it.")
        return os.environ[self.key_env].strip()

    def _source(self) -> Source:
        """What is labelled: runs, or a campaign."""
        place = alone(self.runs)
        if isinstance(place, (str, PathLike)) and is_store(str(place)):
            if is_given(self, "depth"):
                raise DataError("--depth is for runs; a campaign has a pool of its own. Leave it out.")
            source = _of_campaign(str(place), self.name)
            own = as_text_mapping(self.queries, "query")
            return source if own is None else replace(source, queries={**source.queries, **own})
        if self.name is not None:
            raise DataError("--name is for the store of a campaign, and these are runs. Leave it out.")
        runs = as_collection(self.runs, reporter=self.reporter).runs.top(self.depth)
        return Source(runs, as_text_mapping(self.queries, "query") or {})

    def _labeller(self, source: Source) -> Labeller:
        """The model with its prompt and parameters."""
        prompt = load_prompt(self.prompt)
        if self.guideline is not None:
            path = isinstance(self.guideline, Path)
            text = read_bytes(self.guideline).decode("utf-8-sig", "replace") if path else str(self.guideline)
            prompt = prompt.with_guideline(text)
        else:
            prompt = prompt.with_guideline(source.guideline, source.query_guidelines)
        wrong = next((name for name in self.extra or () if name in RESERVED), None)
        if wrong is not None:
            raise DataError(f"--extra cannot have {wrong!r}, which the request has already. Leave it out.")
        cold = 0.0 if self.samples == 1 else 1.0
        return Labeller(
            self.llm,
            replace(prompt, longest=self.longest),
            samples=self.samples,
            temperature=cold if self.temperature is None else self.temperature,
            max_tokens=self.max_tokens,
            extra=self.extra or {},
        )

    def _before(self, name: str, labeller: Labeller) -> LabelTable | None:
        """The table that is added to; its column must be by the same labeller."""
        if self.out is None:
            return None
        path = Path(self.out)
        _separator(path)
        if not path.exists():
            return None
        table = read_labels(path)
        was = table.provenance.get(name, "")
        if name in table.sources and not was.startswith(f"{labeller.provenance};"):
            raise DataError(
                f"it has a column {name!r}, {f'made by {was}' if was else 'made elsewhere'}, and this would be by "
                f"{labeller.provenance}. Name another with --column, or another file.",
                path=path,
            )
        return table

    def _asked(self, source: Source, before: LabelTable | None, name: str) -> tuple[list[Asked], list[LabelFailure]]:
        """The pairs to label, with their texts; and those that lack a text."""
        pairs = list(source.best_rank) if self.only is None else _pairs_in(self.only)
        if self.missing:
            tables = [] if self.labels is None else [as_labels(self.labels)]
            tables += [] if source.labels is None else [source.labels]
            tables += [before.take([name])] if before is not None and name in before.sources else []
            there = {pair for table in tables for pair in _labelled(table)}
            pairs = [pair for pair in pairs if pair not in there]
        docs = as_text_mapping(self.docs, "doc", only={doc for _, doc in pairs}) or {}
        asked, without = list[Asked](), list[LabelFailure]()
        for query, doc in pairs:
            texts = source.queries.get(query, ""), docs.get(doc, "")
            if all(texts):
                asked.append(Asked(query, doc, *texts))
            else:
                without.append(LabelFailure(query, doc, f"no text of the {'document' if texts[0] else 'query'}"))
        if without and not asked:
            first = without[0]
            raise DataError(
                f"none of the {len(without):,} pairs has both texts; the first, query {first.query!r} and document "
                f"{first.doc!r}, has {first.reason}. Give texts with --queries and --docs, under the ids of the runs."
            )
        return asked, without

    def _announce(
        self,
        client: Client,
        labeller: Labeller,
        todo: Sequence[Asked],
        expected: Tokens,
        prices: TokenPrices | None,
    ) -> None:
        """Say which texts leave the machine and where they go, and what that costs."""
        say = self.reporter.say
        what = f"The texts of {len({a.query for a in todo}):,} queries and {len({a.doc for a in todo}):,} documents"
        if todo:
            leave = "go to" if client.is_local else "leave this machine, for"
            say(f"{what} {leave} {client.base_url} (model {self.llm}).")
        if client.is_open:
            say("The address begins with http://, so others on the way can read the texts and the key.")
        long = {one.doc for one in todo if len(one.doc_text) > self.longest}
        if long:
            say(f"{len(long):,} documents have more than {self.longest:,} characters, and the rest is not sent.")
        if (labeller.prompt.guideline or labeller.prompt.query_guidelines) and not labeller.prompt.shows_guideline:
            say(f"The prompt {labeller.prompt.name} has no {{guideline}}, so the guideline is not sent.")
        tokens = f"{len(todo):,} pairs to ask, about {expected.questions:,} tokens (one for four bytes of text)"
        say(f"{tokens}." if prices is None else f"{tokens}, which cost about {prices.of(expected):,.4f}.")

    def _labels(self, work: WorkOnPairs, n: int) -> list[Given]:
        """What comes of the pairs, with progress."""
        found, started = list[Given](), time.monotonic()
        with work.interruptible(), _kept(work, self.cache):
            for _, given in zip(self.reporter.track(range(n), "Labelling"), work.run(), strict=False):
                found.append(given)
                rate = len(found) / max(time.monotonic() - started, 1e-3)
                cost = f", cost {work.cost:,.4f}" if work.cost else ""
                self.reporter.beside(f"{rate:,.1f} labels/s{cost}")
        return found


@dataclass(frozen=True)
class Source:
    """What is labelled: lists of documents, the texts of queries, and in a campaign its guideline and its labels."""

    runs: Runs
    queries: Mapping[str, str]
    guideline: str = ""
    query_guidelines: Mapping[str, str] = field(default_factory=dict)
    labels: LabelTable | None = None

    @cached_property
    def best_rank(self) -> dict[tuple[str, str], int]:
        """The best rank of each pair, from 0, query by query: questions on one query share what a server can keep."""
        best = np.full(len(self.runs.pool), self.runs.depth)
        _, _, rank = np.nonzero(self.runs.retrieved)
        np.minimum.at(best, self.runs.pairs[self.runs.retrieved], rank)
        labels = (self.runs.pool.label(pair) for pair in range(len(best)))
        return {(str(query), str(doc)): int(rank) for (query, doc), rank in zip(labels, best, strict=True)}


@contextmanager
def _kept(work: WorkOnPairs, cache: str | PathLike[str]) -> Iterator[None]:
    """Add to an error that ends the work what is kept."""
    try:
        yield
    except LabellingError as error:
        if not work.used.answers:
            raise
        raise LabellingError(
            f"{error} What was answered is kept in {cache}: the same command goes on from here."
        ) from None


def _of_campaign(store: str, name: str | None) -> Source:
    """The pool of a campaign, with its texts, its guideline and its labels."""
    from probeval.campaign import Campaign

    with Campaign.open(store, name=name, read_only=True) as campaign:
        state, collection = campaign.state, campaign.collection
        return Source(
            collection.runs.top(campaign.setup.depth),
            campaign.queries,
            "" if state.guideline is None else state.guideline.text,
            {query: state.query_guideline(query) for query in state.query_guidelines},
            collection.labels,
        )


def _pairs_in(given: Any) -> list[tuple[str, str]]:
    """The pairs in a table, in its order, each once."""
    path = Path(given) if isinstance(given, (str, PathLike)) else None
    table = as_frame(given) if path is None else read_table(path)
    if table is None:
        raise DataError(f"--only takes a table of query and doc, got {type(given).__name__}.")
    found = []
    for what in ("query", "doc"):
        given_ids = column(table, what, path=path)
        assert given_ids is not None
        found.append(ids(given_ids, what, path=path))
    return list(dict.fromkeys(zip(*found, strict=True)))


def _of_pairs(table: LabelTable, pairs: Sequence[tuple[str, str]]) -> LabelTable | None:
    """The labels of some pairs; None without any."""
    asked, rows = set(pairs), range(len(table.pool))
    wanted = np.fromiter((table.pool.label(at) in asked for at in rows), dtype=np.bool_, count=len(rows))
    kept: Bools = wanted & ~np.isnan(table.values).all(axis=1)
    return table.rearranged(table.pool.take(kept), np.flatnonzero(kept)) if kept.any() else None


def _labelled(table: LabelTable) -> set[tuple[str, str]]:
    """The pairs with a label by someone."""
    return {table.pool.label(int(pair)) for pair in np.flatnonzero(~np.isnan(table.values).all(axis=1))}


def _divided(
    asked: Sequence[Asked], labeller: Labeller, cache: AnswerCache, *, failed: bool
) -> tuple[list[Asked], list[Given]]:
    """The pairs to ask for, and the labels of the others by the kept answers."""
    keys = {one: labeller.keys(one) for one in asked}
    every = [key for own in keys.values() for key in own]
    known, lost = cache.find(every), cache.failures(every) if failed else {}
    todo, kept = list[Asked](), list[Given]()
    for one, own in keys.items():
        answers = [known[key] for key in own if key in known]
        if labeller.is_complete(answers):
            kept.append(labeller.label(one, answers))
        elif not failed or any(key in lost for key in own):
            todo.append(one)
    return todo, kept


def _expected(todo: Sequence[Asked], labeller: Labeller) -> Tokens:
    """About how many tokens it takes to ask for pairs."""
    total = Tokens()
    for one in todo:
        total += labeller.estimated(labeller.question(one)) * labeller.samples
    return total


def _column(model: str, prompt: str) -> str:
    """The name of a labeller, without signs that a column of labels gives a meaning."""
    plain = NOT_IN_COLUMNS.sub("-", model.rstrip("/").rpartition("/")[2]).strip("-")
    return f"{plain or 'llm'}_{prompt}"


@dataclass(frozen=True)
class History:
    """What only the answers tell of the labels of a column: who gave them, under what names, and when."""

    models: frozenset[str]
    refused: frozenset[str]
    days: frozenset[str]

    @classmethod
    def of(cls, given: Sequence[Given], model: str) -> History:
        """That of labels by a model."""
        return cls(
            frozenset(one.model for one in given) - {"", model},
            frozenset(word for one in given for word in one.without.split()),
            frozenset(day(one.time) for one in given),
        )

    @classmethod
    def read(cls, provenance: str, labeller: Labeller) -> History:
        """That in the provenance of an earlier table."""
        text = provenance.removeprefix(labeller.provenance)
        models, refused = re.search(r"; answered as (.*?)(?=; )", text), re.search(r"; without (.*?)(?=; )", text)
        return cls(
            frozenset(models[1].split(" and ") if models else ()),
            frozenset(refused[1].split(", ") if refused else ()),
            frozenset(re.findall(r"\d{4}-\d\d-\d\d", text.rpartition("; ")[2])),
        )

    def __or__(self, other: History) -> History:
        return History(self.models | other.models, self.refused | other.refused, self.days | other.days)

    def provenance(self, labeller: Labeller) -> str:
        """The provenance of labels by a labeller with this history."""
        days = sorted(self.days)
        parts = [
            labeller.provenance,
            *([f"answered as {' and '.join(sorted(self.models))}"] if self.models else ()),
            *([f"without {', '.join(sorted(self.refused))}"] if self.refused else ()),
            " to ".join(dict.fromkeys([days[0], days[-1]])),
        ]
        return "; ".join(parts)


def _table(name: str, labeller: Labeller, given: Sequence[Given], before: LabelTable | None) -> LabelTable | None:
    """The labels beside those of an earlier table, with their provenance; of two labels, the new one counts."""
    if not given:
        return before
    history, levels = History.of(given, labeller.model), range(labeller.prompt.n_grades)
    frame = pd.DataFrame({"query": [one.asked.query for one in given], "doc": [one.asked.doc for one in given]})
    old = None if before is None else before.to_frame()
    was_graded = old is not None and name in old.columns
    was_shares = old is not None and f"{name}:0" in old.columns
    if was_shares or any(one.probabilities for one in given):
        rows = [one.probabilities or np.eye(len(levels))[one.grade or 0] for one in given]
        frame[[f"{name}:{level}" for level in levels]] = rows / np.sum(rows, axis=1, keepdims=True)
        if old is not None and was_graded:  # grades of an earlier answer without probabilities
            missing = old[name].isna()
            old = old.assign(**{f"{name}:{k}": (old[name] == k).astype(float).mask(missing) for k in levels})
            old = old.drop(columns=name)
    else:
        frame[name] = [float(one.grade or 0) for one in given]
    described = {} if before is None else dict(before.descriptions)
    if old is not None:
        columns = list(dict.fromkeys([*old.columns, *frame.columns]))
        frame = frame.set_index(["query", "doc"]).combine_first(old.set_index(["query", "doc"])).reset_index()[columns]
    if before is not None and (was_graded or was_shares):
        history |= History.read(before.provenance[name], labeller)
    scale = "probabilities" if f"{name}:0" in frame.columns else labeller.prompt.scale
    described[name] = ObserverSpec(name, scale=scale, provenance=history.provenance(labeller))
    return as_labels(frame).described(described)


def _separator(path: Path) -> str:
    """The separator of a table by the name of its file."""
    kind = suffix(path)
    if kind not in (".csv", ".tsv"):
        raise DataError("the table of labels is written as .csv or .tsv. Rename it.", path=path)
    return "\t" if kind == ".tsv" else ","


def _remarks(work: WorkOnPairs, given: Sequence[Given]) -> tuple[str, ...]:
    """What the server did not do."""
    lines = []
    refused = sorted({word for one in given for word in one.without.split()})
    if refused:
        lines.append(f"The server refuses {', '.join(refused)}: asked without.")
    labelled = [one for one in given if one.grade is not None]
    if labelled and not any(one.probabilities for one in labelled):
        lines.append(
            "The server gives no probabilities of tokens, so a label is one grade. --samples asks several times."
        )
    if work.unreported:
        lines.append(f"The server did not report the tokens of {work.unreported:,} requests: these are estimates.")
    return tuple(lines)


label = task(LabelInputs, "label")
