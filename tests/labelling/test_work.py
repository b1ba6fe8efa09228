"""The client and the work: against a server on this machine that is slow, busy, broken, greedy or hostile."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from probeval.errors import DataError, LabellingError
from probeval.labelling import (
    AnswerCache,
    Asked,
    Behaviour,
    Client,
    Given,
    Labeller,
    LoopbackServer,
    TokenPrices,
    Tokens,
    WorkOnPairs,
    load_prompt,
)

KEY = "sk-secret-0123456789"
LABELLER = Labeller("my-llm", load_prompt("graded"))


def pairs(n: int) -> list[Asked]:
    return [Asked(f"q{i % 7}", f"d{i}", f"words {i % 7}", f"text of {i}, grade {i % 4}") for i in range(n)]


def grade(query: str, document: str) -> int:
    return int(document[-1])


def serve(n_grades: int = 4, **behaviour: object) -> LoopbackServer:
    return LoopbackServer(grade, n_grades=n_grades, behaviour=Behaviour(**behaviour))  # type: ignore[arg-type]


def label(
    server: LoopbackServer,
    asked: Sequence[Asked],
    *,
    labeller: Labeller = LABELLER,
    cache: AnswerCache | None = None,
    timeout: float = 20.0,
    key: str = "",
    **options: object,
) -> tuple[list[Given], WorkOnPairs]:
    kept = cache or AnswerCache(":memory:")
    client = Client(server.base_url, key, timeout)
    work = WorkOnPairs(labeller, client, kept, asked, pause=0.01, **options)  # type: ignore[arg-type]
    try:
        return list(work.run()), work
    finally:
        if cache is None:
            kept.close()


def test_a_grade_in_one_token_gives_the_probabilities_of_all_grades():
    with serve() as server:
        given, work = label(server, pairs(8))
    for one in given:
        assert one.grade == int(one.asked.doc_text[-1])
        assert one.probabilities == pytest.approx([0.85 if g == one.grade else 0.05 for g in range(4)])
    assert (work.requests, work.used.answers, work.unreported) == (8, 8, 0)


def test_without_logprobs_a_label_is_one_grade_and_several_samples_are_shares():
    with serve(logprobs=False) as server:
        given, _ = label(server, pairs(4))
        assert [(one.grade, one.probabilities) for one in given] == [(int(g.asked.doc_text[-1]), ()) for g in given]
        many = Labeller("my-llm", LABELLER.prompt, samples=40, temperature=1.0)
        (one,), work = label(server, pairs(1), labeller=many)
    assert work.requests == 40
    assert sum(one.probabilities) == pytest.approx(1)
    # Each sample is grade 0 with probability .85: 34 of 40 are expected, with an sd of 2.3; four of these are allowed.
    assert abs(40 * one.probabilities[0] - 34) < 9.1


def test_logprobs_save_the_other_samples():
    with serve() as server:
        _, work = label(server, pairs(3), labeller=Labeller("my-llm", LABELLER.prompt, samples=5, temperature=1.0))
    assert work.requests == 3


@pytest.mark.slow
def test_a_busy_server_is_asked_again_after_the_time_that_it_says():
    with serve(busy=0.3, retry_after="0.2") as server:
        started = time.monotonic()
        given, work = label(server, pairs(30), retries=20)
        waited = time.monotonic() - started
    assert all(one.grade is not None for one in given)
    assert work.requests > 30
    assert waited >= 0.2
    times = [float(headers["Content-Length"]) for headers in server.headers]
    assert len(times) == work.requests


def test_a_date_in_retry_after_is_a_time_too():
    with (
        serve(busy=1.0, retry_after="Wed, 21 Oct 2099 07:28:00 GMT") as server,
        pytest.raises(LabellingError, match=r"status 429, and it asks to wait [\d,]+ s"),
    ):
        label(server, pairs(1))


def test_a_server_that_breaks_now_and_then_labels_all_in_the_end():
    with serve(fail=0.5) as server:
        given, work = label(server, pairs(20), retries=30, parallel=4)
    assert all(one.grade is not None for one in given)
    assert work.requests > 20


def test_nonsense_is_a_failure_and_never_a_label_and_failures_are_asked_again_alone(tmp_path: Path):
    with AnswerCache(tmp_path / "answers") as cache:
        with serve(nonsense=0.4, seed=1) as server:
            given, _ = label(server, pairs(40), cache=cache)
        lost = [one for one in given if one.grade is None]
        assert 5 < len(lost) < 30
        assert all(one.reason for one in lost)
        assert all(one.grade == int(one.asked.doc_text[-1]) for one in given if one.grade is not None)
        keys = [key for one in pairs(40) for key in LABELLER.keys(one)]
        assert len(cache.failures(keys)) == len(lost)
        with serve() as server:
            label(server, pairs(40), cache=cache)
            assert sum(server.asked.values()) == len(lost)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "not of the chat protocol"),
        (b"<html>", "not of the chat protocol"),
        (b"[]", "not of the chat protocol"),
        (b'{"choices": []}', "not of the chat protocol"),
        (b"[" * 100_000, "not of the chat protocol"),
        (b'{"choices": [{"message": {"content": null}}]}', "no answer"),
        (b'{"choices": [{"message": {"content": ["2"]}}]}', "no answer"),
        (b'{"choices": [{"message": {"content": ""}, "finish_reason": "length"}]}', "--max-tokens"),
        (b'{"choices": [{"message": {"content": "2"}, "logprobs": {"content": [7]}}]}', "not of the chat protocol"),
        (b" " * (1 << 21), "larger than 1 MB"),
    ],
    ids=range(10),
)
def test_a_reply_of_another_kind_is_a_failure(raw: bytes, reason: str):
    with serve(raw=raw) as server:
        (one,), _ = label(server, pairs(1))
    assert one.grade is None
    assert reason in one.reason


def test_strange_logprobs_make_no_strange_probabilities():
    others = '[{"token": "3", "logprob": NaN}, {"token": "x", "logprob": 5}]'
    token = f'{{"token": "2", "logprob": -0.1, "top_logprobs": {others}}}'
    raw = f'{{"choices": [{{"message": {{"content": "2"}}, "logprobs": {{"content": [{token}]}}}}]}}'.encode()
    with serve(raw=raw) as server:
        (one,), work = label(server, pairs(1))
    assert (one.grade, one.probabilities) == (2, ())
    assert work.unreported == 1


@pytest.mark.slow
def test_a_reply_that_drips_ends_with_the_time_limit():
    with serve(drip=0.05) as server:
        started = time.monotonic()
        (one,), work = label(server, pairs(1), timeout=0.4, retries=1)
        assert time.monotonic() - started < 5
    assert one.reason == "no answer within 0.4 s, 2 times"
    assert work.used.questions > 0  # the server may have done the work, so it counts


def test_a_server_that_never_gives_a_grade_ends_the_work():
    with serve(nonsense=1.0) as server, pytest.raises(LabellingError, match="no grade for any of the first 2"):
        label(server, pairs(200))
    assert sum(server.asked.values()) < 40


def test_an_address_without_a_server_is_said_at_once():
    server = serve().start()
    server.stop()
    with pytest.raises(LabellingError, match=r"the connection was refused\. Is this the address"):
        label(server, pairs(50))


def test_what_a_server_refuses_by_name_is_left_out():
    with serve(refuses=("logprobs", "temperature", "max_tokens")) as server:
        given, _ = label(server, pairs(6), parallel=1)
    assert all(one.grade is not None and one.probabilities == () for one in given)
    assert given[-1].without == "logprobs max_tokens temperature"
    assert sum(server.asked.values()) == 9  # three refusals, then none


# The key.


def test_the_key_goes_to_the_server_and_is_shown_nowhere(tmp_path: Path):
    with AnswerCache(tmp_path / "answers") as cache:
        with serve(key=KEY) as server:
            given, work = label(server, pairs(3), key=KEY, cache=cache)
        assert server.headers[-1]["Authorization"] == f"Bearer {KEY}"
        assert KEY not in "".join(map(repr, [*given, work, work.client, vars(work)]))
    assert all(KEY.encode() not in file.read_bytes() for file in tmp_path.iterdir())


def test_a_refused_key_is_an_error_without_the_key():
    with serve(key="another") as server, pytest.raises(LabellingError, match="the key was refused") as error:
        label(server, pairs(3), key=KEY)
    assert KEY not in str(error.value)
    with serve(key="another") as server, pytest.raises(LabellingError, match="it asks for a key"):
        label(server, pairs(3))


def test_a_server_that_repeats_the_key_does_not_put_it_into_a_message(tmp_path: Path):
    answer = f'{{"model": "{KEY}", "choices": [{{"message": {{"content": "Your key is {KEY}."}}}}]}}'.encode()
    with AnswerCache(tmp_path / "answers") as cache, serve(raw=answer) as server:
        (one,), _ = label(server, pairs(1), key=KEY, cache=cache)
    assert "***" in one.reason
    assert KEY not in repr(one)
    assert all(KEY.encode() not in file.read_bytes() for file in tmp_path.iterdir())


def test_a_redirect_is_not_followed():
    with serve() as other, serve(redirect=f"{other.base_url}/chat/completions") as server:
        with pytest.raises(LabellingError, match=r"redirects to http.*not followed"):
            label(server, pairs(1), key=KEY)
        assert not other.asked


@pytest.mark.parametrize("key", ["with space", "line\nbreak", "\u00e9"])
def test_a_key_that_is_no_header_is_refused_without_being_shown(key: str):
    with pytest.raises(LabellingError) as error:
        Client("http://127.0.0.1:1/v1", key)
    assert key not in str(error.value)


@pytest.mark.parametrize(
    "url",
    ["", "localhost:8000", "ftp://x/v1", "http://", "http://name:word@host/v1", "http://host/v1?key=1", "http://h:x"],
)
def test_an_address_that_is_none_is_refused(url: str):
    with pytest.raises(LabellingError, match="--base-url"):
        Client(url)


# The budget.


@pytest.mark.parametrize("budget", [0.0, 0.01, 0.05, 0.0731])
def test_the_work_ends_before_the_budget_is_passed(budget: float):
    prices = TokenPrices(10.0, 100.0)
    with serve(delay=0.002) as server:
        given, work = label(server, pairs(60), prices=prices, budget=budget, parallel=16)
        billed = prices.of(Tokens(sum(len(q) // 4 * n for q, n in server.asked.items()), sum(server.asked.values())))
    assert work.ended == "budget"
    assert work.cost == pytest.approx(billed)
    assert billed <= budget
    most = prices.of(LABELLER.highest(LABELLER.question(pairs(1)[0])))
    assert billed > budget - 1.1 * most  # no more is left than one pair might cost
    assert [one.is_left for one in given].count(True) == 60 - sum(server.asked.values())


def test_lost_requests_count_against_the_budget():
    with serve(fail=0.7, seed=2) as server:
        _, work = label(server, pairs(60), prices=TokenPrices(10.0, 100.0), budget=0.03, retries=50)
        assert work.ended == "budget"
        assert work.cost <= 0.03
        assert work.requests == sum(server.asked.values())


# The cache.


def test_the_cache_keeps_neither_texts_nor_what_was_asked_under_other_settings(tmp_path: Path):
    path = tmp_path / "answers"
    with AnswerCache(path) as cache, serve() as server:
        label(server, pairs(5), cache=cache)
        label(server, pairs(5), cache=cache)
        assert sum(server.asked.values()) == 5
        for other in (
            Labeller("another", LABELLER.prompt),
            Labeller("my-llm", load_prompt("graded").with_guideline("Be strict.")),
            Labeller("my-llm", LABELLER.prompt, temperature=0.5),
            Labeller("my-llm", LABELLER.prompt, extra={"top_p": 0.9}),
        ):
            before = sum(server.asked.values())
            label(server, pairs(5), labeller=other, cache=cache)
            assert sum(server.asked.values()) == before + 5
    content = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"text of 3" not in content
    assert b"words 3" not in content


def test_two_processes_may_share_a_cache(tmp_path: Path):
    with AnswerCache(tmp_path / "answers") as one, AnswerCache(tmp_path / "answers") as two, serve() as server:
        threads = [threading.Thread(target=label, args=(server, pairs(40)), kwargs={"cache": c}) for c in (one, two)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        keys = [key for asked in pairs(40) for key in LABELLER.keys(asked)]
        assert len(one.find(keys)) == len(two.find(keys)) == 40


def test_a_file_that_is_no_cache_is_an_error(tmp_path: Path):
    (tmp_path / "text").write_text("not a database at all, but long enough to look at")
    with pytest.raises(DataError, match="cannot be used"):
        AnswerCache(tmp_path / "text")
    with sqlite3.connect(tmp_path / "other") as other:
        other.execute("create table people (name)")
    other.close()
    with pytest.raises(DataError, match="a database of something else"):
        AnswerCache(tmp_path / "other")


# Kills, speed and memory.

CHILD = """
import sys
from probeval.labelling import *
cache, url, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
pairs = [Asked(f"q{i % 7}", f"d{i}", f"words {i % 7}", f"text of {i}, grade {i % 4}") for i in range(n)]
with AnswerCache(cache) as kept:
    work = WorkOnPairs(Labeller("my-llm", load_prompt("graded")), Client(url), kept, pairs, parallel=16)
    print("begun", flush=True)
    print(sum(given.grade is not None for given in work.run()), flush=True)
"""


@pytest.mark.parametrize(
    "kills",
    [pytest.param(3, marks=pytest.mark.slow), pytest.param(50, marks=pytest.mark.validation)],
)
def test_after_a_kill_nothing_kept_is_asked_again(tmp_path: Path, kills: int):
    n, parallel = 40 * kills, 16
    with serve(delay=0.05) as server:
        command = [sys.executable, "-c", CHILD, str(tmp_path / "answers"), server.base_url, str(n)]
        repeated = []
        for number in range(kills):
            before = server.asked.copy()
            with AnswerCache(tmp_path / "answers") as cache:
                kept = cache.find([key for one in pairs(n) for key in LABELLER.keys(one)])
            child = subprocess.Popen(command, stdout=subprocess.PIPE)
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(0.04 + 0.11 * (number % 10) / 10)
            child.kill()
            child.communicate()
            time.sleep(0.06)  # until the server has counted what was in flight
            asked = server.asked - before
            known = {LABELLER.question(one) for one in pairs(n) if LABELLER.keys(one)[0] in kept}
            assert not known & asked.keys()
            repeated.append(sum(question in before for question in asked))
        assert sum(server.asked.values()) > n / 8  # the kills came while it was at work
        assert max(repeated) <= parallel
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout.split()[-1] == str(n)
        assert len(server.asked) == n
        assert sum(server.asked.values()) <= n + parallel * kills
        print(f"{kills} kills, {n} pairs, {sum(server.asked.values()) - n} requests repeated, most {max(repeated)}")


MEASURED = """
import sys, time
from pathlib import Path
from probeval.labelling import *
def megabytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20
cache, url, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
pairs = [Asked(f"q{i % 43}", f"d{i}", f"words {i % 43}", f"text of {i}, grade {i % 4} " * 20) for i in range(n)]
used, given, started = [], [], time.monotonic()
with AnswerCache(cache) as kept:
    work = WorkOnPairs(Labeller("my-llm", load_prompt("graded")), Client(url), kept, pairs, parallel=16)
    for one in work.run():
        given.append(one)
        if len(given) % (n // 10) == 0:
            used.append(megabytes())
print(sum(one.grade is not None for one in given), time.monotonic() - started, used[0], used[-1])
"""


@pytest.mark.validation
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_sixteen_at_a_time_take_a_sixteenth_of_the_time_and_no_more_memory(tmp_path: Path):
    n, delay = 10_000, 0.1
    how = Behaviour(delay=delay)
    with LoopbackServer(lambda query, document: int(document.split()[-1]), behaviour=how) as server:
        command = [sys.executable, "-c", MEASURED, str(tmp_path / "answers"), server.base_url, str(n)]
        done = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        assert server.most <= 16
    labelled, seconds, first, last = map(float, done)
    ratio = seconds / (n * delay / 16)
    print(f"{n:,} labels in {seconds:.1f} s, {ratio:.3f} of the least; {first:.1f} MB, {last:.1f} at the end")
    assert labelled == n
    assert ratio <= 1.3
    assert last - first < 8  # labels themselves: a few hundred bytes each


def test_requests_are_sent_in_parallel():
    with serve(delay=0.1) as server:
        started = time.monotonic()
        label(server, pairs(64), parallel=16)
        assert (
            time.monotonic() - started < 64 * 0.1 / 4
        )  # a quarter of the time of one by one; a sixteenth is the least
        assert server.most == 16


def test_json_of_the_server_is_that_of_the_protocol():
    with serve() as server:
        body = LABELLER.body(LABELLER.question(pairs(1)[0]))
        status, _, data = server.respond(body, {})
    document = json.loads(data)
    assert (status, document["object"], document["usage"]["completion_tokens"]) == (200, "chat.completion", 1)
    assert len(document["choices"][0]["logprobs"]["content"][0]["top_logprobs"]) == 4


@pytest.mark.slow
def test_a_table_is_served_on_the_command_line(tmp_path: Path):
    (tmp_path / "grades.csv").write_text("query,doc,grade\nq1,d1,2\nq1,d2,0\n")
    (tmp_path / "queries.tsv").write_text("q1\tgoldfish\nq2\tcats\n")
    (tmp_path / "docs.tsv").write_text("d1\tthey grow\nd2\tcats\n")
    command = [
        sys.executable, "-m", "probeval.labelling", tmp_path / "grades.csv", "--queries", tmp_path / "queries.tsv",
        "--docs", tmp_path / "docs.tsv", "--port", "0",
    ]  # fmt: skip
    child = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        said = child.stdout.readline()
        assert "answers for 2 pairs" in said
        client = Client(said.split()[0])
        labeller = Labeller("my-llm", load_prompt("graded"))
        reply = client.ask(labeller.body(labeller.prompt.question("q1", "goldfish", "they grow")))
        client.close()
        assert reply.text == "2"
    finally:
        child.kill()
        child.communicate()
