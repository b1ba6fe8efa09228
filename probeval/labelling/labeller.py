"""The work of labelling: pairs go to a server from several threads, answers to the cache, labels to a table.

The label of a pair is a function of the kept answers, so the same cache gives the same labels. A pair is not begun if
its highest possible cost, with that of the requests in flight, could pass the budget.
"""

from __future__ import annotations

import hashlib
import json
import math
import queue
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from probeval.display import Record
from probeval.errors import LabellingError
from probeval.labelling.cache import AnswerCache, KeptAnswer
from probeval.labelling.client import Again, Client, Refused, Reply
from probeval.labelling.prompt import Prompt

__all__ = ["Asked", "Given", "Labeller", "TokenPrices", "Tokens", "WorkOnPairs", "day", "estimate_tokens"]

BYTES = 4  # of UTF-8 per token, about: English has four letters, Chinese one or two signs
FRAME = 8  # tokens that a server puts around a message, about
FRAME_AT_MOST = 64
ANSWERED = 2  # tokens of an answer that is a grade, about
TOP = 10  # likely tokens that are asked for with logprobs
FIRST_PAUSE = 1.0  # seconds before a request is repeated; twice as long each further time
LONGEST_PAUSE = 60.0
LONGEST_ASKED = 600.0  # seconds that a server may ask to wait
HOPELESS = 20  # failures without any grade, after which the work ends
LOOK = 0.25  # seconds between two looks at the clock
SHOWN = 60  # characters of an answer that is no grade


@dataclass(frozen=True)
class Tokens:
    """A number of tokens: of questions, and of answers."""

    questions: int = 0
    answers: int = 0

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(self.questions + other.questions, self.answers + other.answers)

    def __mul__(self, n: int) -> Tokens:
        return Tokens(self.questions * n, self.answers * n)


@dataclass(frozen=True)
class TokenPrices:
    """The prices of a million tokens of questions and of answers, in any currency.

    >>> TokenPrices(2.5, 10.0).of(Tokens(1_000_000, 10_000))
    2.6
    """

    questions: float = 0.0
    answers: float = 0.0

    def of(self, tokens: Tokens) -> float:
        """What tokens cost."""
        return (self.questions * tokens.questions + self.answers * tokens.answers) / 1e6


def estimate_tokens(text: str) -> int:
    """About how many tokens a question has: one for four bytes of UTF-8, and eight for the frame of a message.

    >>> estimate_tokens("What is a goldfish?")
    13
    """
    return math.ceil(len(text.encode(errors="replace")) / BYTES) + FRAME


@dataclass(frozen=True)
class Asked:
    """A pair to label, with its texts."""

    query: str
    doc: str
    query_text: str
    doc_text: str


@dataclass(frozen=True, repr=False)
class Given(Record):
    """What came of a pair: a grade, perhaps with the probabilities of all grades, or the reason why there is none."""

    asked: Asked
    grade: int | None
    probabilities: tuple[float, ...] = ()
    reason: str = ""
    model: str = ""  # by the server's own name
    without: str = ""  # what the server refused of the request
    time: float = 0.0  # of the answer, in seconds since 1970
    is_left: bool = False  # not asked, or not to the end: the budget or the user ended the work

    @property
    def is_failure(self) -> bool:
        """Whether it was asked in vain."""
        return self.grade is None and not self.is_left


@dataclass(frozen=True, repr=False)
class Labeller(Record):
    """A language model with a prompt: what its answers depend on.

    Parameters
    ----------
    model
        The name of the model.
    prompt
        The prompt.
    samples
        The number of answers per pair where the server gives no probabilities of tokens.
    temperature, max_tokens
        As the protocol has them.
    extra
        What else is sent with every request.
    """

    model: str
    prompt: Prompt
    samples: int = 1
    temperature: float = 0.0
    max_tokens: int = 8
    extra: Mapping[str, Any] = field(default_factory=dict)

    def body(self, question: str, sample: int = 0) -> dict[str, Any]:
        """The request that asks a question."""
        return {
            "model": self.model,
            "messages": [{"role": "user", "content": question}],
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "logprobs": True,
            "top_logprobs": TOP,
            **({"seed": sample} if self.samples > 1 else {}),
            **self.extra,
        }

    def question(self, asked: Asked) -> str:
        """The question about a pair."""
        return self.prompt.question(asked.query, asked.query_text, asked.doc_text)

    def keys(self, asked: Asked) -> tuple[str, ...]:
        """The digests under which the answers about a pair are kept, one per sample."""
        question = self.question(asked)
        bodies = (self.body(question, sample) for sample in range(self.samples))
        return tuple(hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest() for body in bodies)

    @property
    def parameters(self) -> str:
        """The parameters in words."""
        several = f", {self.samples} samples without logprobs" if self.samples > 1 else ""
        extra = f", {json.dumps(self.extra, sort_keys=True)}" if self.extra else ""
        return f"temperature {self.temperature:g}, max_tokens {self.max_tokens}{several}{extra}"

    @property
    def provenance(self) -> str:
        """The model, the prompt with its fingerprint, and the parameters: what two tables must share to be joined."""
        return f"model {self.model}; prompt {self.prompt.name} {self.prompt.fingerprint}; {self.parameters}"

    def estimated(self, question: str) -> Tokens:
        """About what asking a question once takes."""
        return Tokens(estimate_tokens(question), min(ANSWERED, self.max_tokens))

    def highest(self, question: str) -> Tokens:
        """What asking a question once can take at most: a token has at least one byte."""
        return Tokens(len(question.encode(errors="replace")) + FRAME_AT_MOST, self.max_tokens)

    def label(self, asked: Asked, answers: Sequence[KeptAnswer], reason: str = "") -> Given:
        """The label of a pair from the answers about it."""
        graded = [one for one in answers if one.grade is not None]
        if not graded:
            return Given(asked, None, reason=reason or next((one.reason for one in answers), ""))
        grade, shares = graded[0].grade, graded[0].probabilities
        if len(graded) > 1 and not shares:
            counts = Counter(one.grade for one in graded)
            shares = tuple(counts[level] / len(graded) for level in range(self.prompt.n_grades))
            grade = shares.index(max(shares))
        return Given(asked, grade, shares, "", graded[0].model, graded[0].without, graded[0].time)

    def is_complete(self, answers: Sequence[KeptAnswer]) -> bool:
        """Whether these kept answers are all that a pair needs: one with probabilities, or all samples."""
        return len(answers) == self.samples or any(one.shares for one in answers)

    def read(self, asked: Asked, key: str, reply: Reply, sent: Tokens) -> KeptAnswer:
        """An answer as it is kept: a grade, or the reason why it is none."""
        grade, reason = self.prompt.grade(reply.text), ""
        if grade is None:
            cut = f" (cut off after {self.max_tokens} tokens: --max-tokens)" if reply.is_cut else ""
            said = " ".join(reply.text.split())
            reason = f"no grade{cut}: {said[:SHOWN]!r}" if said else f"no answer{cut}"
        return KeptAnswer(
            key=key,
            query=asked.query,
            doc=asked.doc,
            grade=grade,
            shares=" ".join(f"{share:.6g}" for share in self._shares(reply, grade)),
            reason=reason,
            model=reply.model,
            without=" ".join(reply.without),
            tokens_in=sent.questions if reply.tokens_in is None else reply.tokens_in,
            tokens_out=sent.answers if reply.tokens_out is None else reply.tokens_out,
            time=time.time(),
        )

    def _shares(self, reply: Reply, grade: int | None) -> list[float]:
        """The probabilities of the grades at the token that gave the grade; none without logprobs."""
        for token, likely in reply.tokens:
            if token.strip() == str(grade):
                mass = [0.0] * self.prompt.n_grades
                for other, log_probability in likely.items():
                    digits = other.strip()
                    if digits.isascii() and digits.isdigit() and int(digits[:3]) < len(mass):
                        mass[int(digits[:3])] += math.exp(min(log_probability, 0.0))
                return [one / sum(mass) for one in mass] if math.isfinite(sum(mass)) and sum(mass) > 0 else []
            if any(letter.isdigit() for letter in token):
                return []  # the grade is part of a longer token
        return []


class WorkOnPairs:
    """Pairs being labelled, by several threads.

    Parameters
    ----------
    labeller, client, cache
        The model with its prompt, the server, and the answers so far.
    pairs
        The pairs to label, in the order of asking.
    parallel
        The number of requests at a time.
    prices, budget
        What tokens cost, and what the work may cost at most; None for any cost.
    retries
        How often a request is repeated if the server is busy or cannot be reached.
    pause
        The seconds before the first repetition.
    proven
        Whether this labeller has given grades before: if not, failures alone end the work.
    """

    def __init__(
        self,
        labeller: Labeller,
        client: Client,
        cache: AnswerCache,
        pairs: Sequence[Asked],
        *,
        parallel: int = 8,
        prices: TokenPrices | None = None,
        budget: float | None = None,
        retries: int = 6,
        pause: float = FIRST_PAUSE,
        proven: bool = False,
    ) -> None:
        self.labeller, self.client, self.cache, self.parallel = labeller, client, cache, parallel
        self.prices, self.budget, self.retries, self.pause = prices or TokenPrices(), budget, retries, pause
        self.used, self.unreported = Tokens(), 0
        self.ended = "complete"
        self._left = deque(pairs)
        self._done: queue.SimpleQueue[Given | None] = queue.SimpleQueue()
        self._change = threading.Condition()
        self._stopped = threading.Event()
        self._reserved, self._in_flight = 0.0, 0
        self._resume = 0.0  # when a busy server may be asked again
        self._requests = self._replies = self._failed = 0
        self._proven = proven
        self._error: Exception | None = None

    def __repr__(self) -> str:
        return f"<WorkOnPairs: {len(self._left):,} left, {self._requests:,} requests, {self.ended}>"

    @property
    def cost(self) -> float:
        """What the requests so far cost."""
        return self.prices.of(self.used)

    @property
    def requests(self) -> int:
        """The number of requests so far, repeated ones too."""
        return self._requests

    def stop(self, why: str) -> None:
        """Begin no further pair; the requests in flight come to their end."""
        with self._change:
            if not self._stopped.is_set():
                self.ended = why
                self._stopped.set()
            self._change.notify_all()

    def run(self) -> Iterator[Given]:
        """Yield what came of each pair, as it comes; at the end raise what ended the work for all."""
        threads = [
            threading.Thread(target=self._work, name=f"label-{i}", daemon=True)
            for i in range(min(self.parallel, len(self._left)))
        ]
        for thread in threads:
            thread.start()
        running, looked = len(threads), time.monotonic()
        while running:
            if time.monotonic() - looked >= LOOK:
                self.client.expire()
                looked = time.monotonic()
            try:
                given = self._done.get(timeout=LOOK)
            except queue.Empty:
                continue
            running -= given is None
            if given is not None:
                yield given
        if self._error is not None:
            raise self._error
        yield from (Given(asked, None, is_left=True) for asked in self._left)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Within the block, the first Ctrl-C lets the requests in flight come to their end; the second ends at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.getsignal(signal.SIGINT)

        def first(*_: object) -> None:
            signal.signal(signal.SIGINT, before)
            self.stop("interrupted")

        signal.signal(signal.SIGINT, first)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _work(self) -> None:
        """Label one pair after another, until none is left."""
        try:
            while (taken := self._take()) is not None:
                asked, cost = taken
                try:
                    self._done.put(self._label(asked))
                finally:
                    with self._change:
                        self._in_flight -= 1
                        self._reserved = self._reserved - cost if self._in_flight else 0.0
                        self._change.notify_all()
        except Exception as error:  # of any kind: the thread that waits raises it
            self._error = self._error or error
            self.stop("failed")
        finally:
            self.client.close()
            self._done.put(None)

    def _take(self) -> tuple[Asked, float] | None:
        """The next pair, with what it may cost at most; None at the end, or if that could pass the budget."""
        with self._change:
            while self._left and not self._stopped.is_set():
                cost = 0.0 if self.budget is None else self._highest(self._left[0])
                if self.budget is None or self.cost + self._reserved + cost <= self.budget:
                    self._reserved += cost
                    self._in_flight += 1
                    return self._left.popleft(), cost
                if not self._in_flight:
                    self.ended = "budget"
                    return None
                self._change.wait(LOOK)  # what is in flight may cost less than it could
        return None

    def _highest(self, asked: Asked) -> float:
        """What a pair may cost at most."""
        return self.prices.of(self.labeller.highest(self.labeller.question(asked)) * self.labeller.samples)

    def _label(self, asked: Asked) -> Given:
        """Ask all that is not kept yet about a pair."""
        question, keys = self.labeller.question(asked), self.labeller.keys(asked)
        kept, reason = self.cache.find(keys), ""
        answers = [kept[key] for key in keys if key in kept]
        for sample, key in enumerate(keys):
            if self.labeller.is_complete(answers):
                break
            if key in kept:
                continue
            body, sent = self.labeller.body(question, sample), self.labeller.estimated(question)
            try:
                reply = self._reply(body, key, question)
            except Refused as refusal:
                reason = str(refusal)
                answer = KeptAnswer(key, asked.query, asked.doc, None, "", reason, "", "", 0, 0, time.time())
            else:
                if reply is None:
                    return Given(asked, None, is_left=True)
                answer = self.labeller.read(asked, key, reply, sent)
                self._charge(Tokens(answer.tokens_in, answer.tokens_out), reported=reply.tokens_in is not None)
            self.cache.keep(answer)
            self._count(answer)
            answers.append(answer)
        return self.labeller.label(asked, answers, reason)

    def _reply(self, body: Mapping[str, Any], key: str, question: str) -> Reply | None:
        """The reply to a request, repeated with growing pauses while the server is busy; None if the work has ended."""
        attempt = 0
        while self._wait():
            with self._change:
                self._requests += 1
            try:
                reply = self.client.ask(body)
            except Again as busy:
                attempt += 1
                self._check(busy, attempt)
                if busy.billed and not self._charge_lost(question):
                    return None
                self._pause(busy, attempt, key)
            else:
                with self._change:
                    self._replies += 1
                return reply
        return None

    def _check(self, busy: Again, attempt: int) -> None:
        """Raise an error if a request is not repeated."""
        server = self.client.base_url
        if busy.is_away and attempt > 1 and not self._replies:
            raise LabellingError(f"{server}: {busy.reason}. Is this the address, and does the server run?") from None
        if busy.after is not None and busy.after > LONGEST_ASKED:
            raise LabellingError(f"{server}: {busy.reason}, and it asks to wait {busy.after:,.0f} s.") from None
        if attempt > self.retries:
            raise Refused(f"{busy.reason}, {attempt} times") from None

    def _pause(self, busy: Again, attempt: int, key: str) -> None:
        """Wait before a request is repeated: as long as the server says, which holds for all, or longer each time."""
        if busy.after is not None:
            with self._change:
                self._resume = max(self._resume, time.monotonic() + busy.after)
            return
        # Half of the pause is drawn, so that threads do not come back all at once: by the question, so that the same
        # work makes the same pauses.
        drawn = int(hashlib.sha256(f"{key} {attempt}".encode()).hexdigest()[:8], 16) / 16**8
        self._stopped.wait(min(self.pause * 2 ** (attempt - 1), LONGEST_PAUSE) * (0.5 + drawn / 2))

    def _wait(self) -> bool:
        """Wait until the server may be asked; whether to go on."""
        while not self._stopped.is_set():
            left = self._resume - time.monotonic()
            if left <= 0:
                return True
            self._stopped.wait(left)
        return False

    def _charge(self, tokens: Tokens, *, reported: bool) -> None:
        """Count the tokens of a request."""
        with self._change:
            self.used += tokens
            self.unreported += not reported

    def _charge_lost(self, question: str) -> bool:
        """Count a request that may be billed though its answer was lost; whether another one can be paid."""
        self._charge(self.labeller.estimated(question), reported=False)
        if self.budget is None or self.cost + self._reserved <= self.budget:
            return True
        self.stop("budget")
        return False

    def _count(self, answer: KeptAnswer) -> None:
        """Count an answer; failures alone, without any grade, end the work."""
        with self._change:
            self._proven |= answer.grade is not None
            self._failed += answer.grade is None
            hopeless = not self._proven and self._failed >= HOPELESS
        if hopeless:
            raise LabellingError(
                f"{self.client.base_url}: no grade for any of the first {self._failed} pairs, for the last: "
                f"{answer.reason}. See the question with --dry-run."
            )


def day(time: float) -> str:
    """The day of a time in seconds since 1970, in UTC.

    >>> day(86400.0)
    '1970-01-02'
    """
    return datetime.fromtimestamp(time, UTC).date().isoformat()
