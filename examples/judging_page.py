"""The pictures of the pages: a synthetic campaign and a study with users in a browser, on a desk and on a phone.

Run as ``python examples/judging_page.py [FOLDER]``: it writes the pictures of judging, comparing, adjudication, the
overview and two lists there. It needs the extra ``web``, Playwright and Debian's chromium. No query, document or
judgment in it is
real.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

import probeval
from probeval.campaign import Campaign
from probeval.relevance import SyntheticCampaign
from probeval.satisfaction import choose_lists

try:
    from playwright.sync_api import sync_playwright
except ImportError:
    sys.exit(print("Playwright is not installed: nothing to draw with."))

DESK = {"viewport": {"width": 900, "height": 860}, "color_scheme": "light"}
PHONE = {"viewport": {"width": 390, "height": 800}, "color_scheme": "dark", "is_mobile": True}
WIDE = {"viewport": {"width": 1000, "height": 640}, "color_scheme": "light"}
VIEWS = {
    "judging-desktop.png": ("", DESK),
    "judging-phone.png": ("", PHONE),
    "adjudication-desktop.png": ("adjudicate", DESK),
    "overview-desktop.png": ("overview", DESK),
}
COMPARISONS = {
    "comparison-desktop.png": (WIDE, "preferences"),
    "comparison-phone.png": (PHONE, "magnitudes"),
}

LISTS = {
    "lists-desktop.png": {"viewport": {"width": 900, "height": 620}, "color_scheme": "light"},
    "lists-phone.png": PHONE,
}

QUERIES = ("how do migrating birds find their way", "why does bread rise", "what makes the tide turn")
GUIDELINE = """2: it answers the query, all of it or in part.
1: it is about the query's topic, and does not answer it.
0: neither. Judge by the text alone."""
GRADE_WORDS = ("not relevant", "on the topic", "answers it")
OF_QUERIES = {
    QUERIES[0]: "Birds of any kind count, insects do not. A page about maps alone is 0.",
    QUERIES[1]: "Yeast, gas and heat are answers. A recipe alone is 1.",
}
OPENING = ("In spring", "By night", "At first", "As a rule", "In most years", "Near the coast")
SUBJECT = ("migrating birds", "the bread", "the tide", "older flocks", "bakers", "the moon and the sun")
MIDDLE = ("follow", "give way to", "are drawn by", "depend on", "take their time with", "return to")
END = (
    "the stars and the pull of the earth",
    "a warm and quiet place",
    "what they learned a year before",
    "salt and heat",
)


def tell(rng: np.random.Generator) -> str:
    """Some sentences that mean nothing."""
    parts = ([str(rng.choice(words)) for words in (OPENING, SUBJECT, MIDDLE, END)] for _ in range(6))
    return " ".join(f"{a} {b} {c} {d}." for a, b, c, d in parts)


def judge_some(store: Path, rng: np.random.Generator) -> None:
    """A campaign of which ann and bob have judged some pairs, one every seven seconds each; bob is generous."""
    collection = SyntheticCampaign(queries=6, systems=6, depth=10).draw(rng)
    given = collection.judgments
    grades = dict(zip(map(given.pool.label, range(len(given))), given.grades(), strict=True))
    now = time.time() - 800
    with Campaign.create(
        store,
        replace(collection, judgments=None),
        metric="nDCG@10",
        scale=probeval.Scale.graded(2),
        model="uniform",
        name="birds",
        guideline=GUIDELINE,
        queries={query: QUERIES[i % len(QUERIES)] for i, query in enumerate(collection.runs.queries)},
        stopping="confidence=.95",
        grade_words=GRADE_WORDS,
        overlap=0.3,
        clock=lambda: now,
    ) as campaign:
        own = {query: OF_QUERIES[text] for query, text in campaign.queries.items() if text in OF_QUERIES}
        campaign.change_query_guidelines("eve", own)
        for turn in range(100):
            who = ("ann", "bob")[turn % 2]
            task = campaign.next(who)[0]
            now += 7
            grade = grades[task.query, task.doc]
            if who == "bob" and rng.random() < 0.4:
                grade = min(grade + 1, 2)
                campaign.comment("bob", task.query, task.doc, "It helps to understand the question.")
            campaign.answer(who, task.question, grade=grade, seconds=6.5)
            if turn % 10 == 9:
                campaign.refresh()
        campaign.forecast()
        write_documents(campaign, store, rng)


def compare_some(store: Path, rng: np.random.Generator) -> None:
    """A campaign in which ann, bob and cid have compared some documents; cid answers at random, mostly left."""
    collection = SyntheticCampaign(queries=6, systems=6, depth=10).draw(rng)
    given = collection.judgments
    grades = dict(zip(map(given.pool.label, range(len(given))), given.grades(), strict=True))
    now = time.time() - 2000
    with Campaign.create(
        store,
        replace(collection, judgments=None),
        metric="nDCG@10",
        scale=probeval.Scale.graded(2),
        model="hierarchical",
        name="birds",
        guideline=GUIDELINE,
        queries={query: QUERIES[i % len(QUERIES)] for i, query in enumerate(collection.runs.queries)},
        ask="preferences",
        follow_up=True,
        overlap=0.3,
        gold_share=0.15,
        repeat_share=0.1,
        clock=lambda: now,
    ) as campaign:
        campaign.change_gold("eve", known_orders(grades), kind="comparison")
        campaign.refresh()
        for turn in range(240):
            who = ("ann", "bob", "cid")[turn % 3]
            task = campaign.next(who)[0]
            now += 8
            left, right = (float(grades[task.query, doc]) for doc in (task.doc, task.other))
            choice = "left" if left > right else "right" if right > left else "equal"
            relevant = ("neither", "chosen", "both")[sum(grade > 0 for grade in (left, right))]
            if who == "cid":
                choice, relevant = ("left" if rng.random() < 0.7 else "right"), "both"
            seconds, shown = rng.uniform(1, 3) if who == "cid" else rng.uniform(4, 8), task.documents
            campaign.answer(who, task.question, shown=shown, choice=choice, relevant=relevant, seconds=seconds)
        campaign.refresh()
        write_documents(campaign, store, rng)


def known_orders(grades: dict[tuple[str, str], float]) -> dict[str, list[tuple[str, str]]]:
    """For each query, four documents that are better than four others."""
    known = {}
    for query in {query for query, _ in grades}:
        best, worst = ([doc for (q, doc), grade in grades.items() if (q, grade) == (query, at)] for at in (2, 0))
        known[query] = [*zip(best[:4], worst[:4], strict=False)]
    return known


def write_documents(campaign: Campaign, store: Path, rng: np.random.Generator) -> None:
    rows = [{"doc": doc, "title": f"Notes, part {doc[1:]}", "text": tell(rng)} for doc in campaign.pool.docs]
    store.with_name("documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def ask_users(store: Path, rng: np.random.Generator) -> None:
    """A study with users about the lists of a synthetic campaign."""
    collection = SyntheticCampaign(queries=6, systems=6, depth=10).draw(rng)
    chosen = choose_lists(collection.runs, collection.judgments, "nDCG@5", pairs=20, rng=rng)
    texts = {query: QUERIES[i % len(QUERIES)] for i, query in enumerate(collection.runs.queries)}
    Campaign.create_lists(store, chosen, name="birds", queries=texts, seed=1).close()


@contextmanager
def served(store: Path) -> Iterator[str]:
    """The address of a page while the block runs."""
    command = [sys.executable, "-c", "from probeval.cli import main; main()", "judge", str(store), "--port", "0"]
    command += ["--docs", str(store.with_name("documents.jsonl")), "--assessor", "ann", "--format", "csv", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            server.stdout.readline()
            yield server.stdout.readline().split(",")[0]
        finally:
            server.terminate()


def draw(folder: Path, program: str) -> list[Path]:
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        store, two = Path(place, "birds.db"), Path(place, "two.db")
        judge_some(store, np.random.default_rng(0))
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        with served(store) as address:
            for name, (path, view) in VIEWS.items():
                page = browser.new_page(**view)
                page.goto(address + path)
                page.screenshot(path=folder / name)
        compare_some(two, np.random.default_rng(1))
        with served(two) as address, Campaign.open(two) as campaign:
            for name, (view, ask) in COMPARISONS.items():
                if campaign.setup.ask != ask:
                    campaign.change("eve", ask=ask)
                page = browser.new_page(**view)
                page.goto(address)
                page.keyboard.press("ArrowLeft")
                page.screenshot(path=folder / name)
        study = Path(place, "study.db")
        ask_users(study, np.random.default_rng(0))
        with served(study) as address:
            for name, view in LISTS.items():
                page = browser.new_page(**view)
                page.goto(address)
                page.keyboard.press("1")
                page.screenshot(path=folder / name)
        browser.close()
    return [folder / name for name in (*VIEWS, *COMPARISONS, *LISTS)]


if __name__ == "__main__":
    found = shutil.which("chromium")
    if found is None:
        print("chromium is not installed: nothing to draw with.")
    else:
        print(f"Wrote {', '.join(map(str, draw(Path(sys.argv[1] if len(sys.argv) > 1 else '.'), found)))}.")
