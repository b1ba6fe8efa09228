"""The pictures of the judging page: a synthetic campaign in a browser, on a desk and on a phone.

Run as ``python examples/judging_page.py [FOLDER]``: it writes judging-desktop.png and judging-phone.png there. It needs
the extra ``web``, Playwright and Debian's chromium. No query, document or judgment in it is real.
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

try:
    from playwright.sync_api import sync_playwright
except ImportError:
    sys.exit(print("Playwright is not installed: nothing to draw with."))

VIEWS = {
    "judging-desktop.png": {"viewport": {"width": 900, "height": 760}, "color_scheme": "light"},
    "judging-phone.png": {"viewport": {"width": 390, "height": 800}, "color_scheme": "dark", "is_mobile": True},
}

QUERIES = ("how do migrating birds find their way", "why does bread rise", "what makes the tide turn")
GUIDELINE = """2: it answers the query, all of it or in part.
1: it is about the query's topic, and does not answer it.
0: neither. Judge by the text alone."""
OPENING = ("In spring", "By night", "At first", "As a rule", "In most years", "Near the coast")
SUBJECT = ("young birds", "the dough", "the water", "older flocks", "bakers", "the moon and the sun")
MIDDLE = ("follow", "give way to", "are drawn by", "depend on", "take their time with", "return to")
END = (
    "the stars and the pull of the earth",
    "a warm and quiet place",
    "what they learned a year before",
    "salt and heat",
)


def tell(rng: np.random.Generator) -> str:
    """Some sentences that mean nothing."""
    parts = ([str(rng.choice(words)) for words in (OPENING, SUBJECT, MIDDLE, END)] for _ in range(9))
    return " ".join(f"{a} {b} {c} {d}." for a, b, c, d in parts)


def judge_some(store: Path, rng: np.random.Generator) -> None:
    """A campaign of which ann has judged 60 pairs, one every seven seconds."""
    collection = probeval.synthetic_campaign(rng, queries=6, systems=6, depth=10)
    given = collection.judgments
    grades = dict(zip(map(given.pool.label, range(len(given))), given.grades(), strict=True))
    now = time.time() - 500
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
        clock=lambda: now,
    ) as campaign:
        for turn in range(60):
            now += 7
            task = campaign.next("ann")[0]
            campaign.record("ann", task.query, task.doc, grades[task.query, task.doc])
            if turn % 10 == 9:
                campaign.refresh()
        rows = [{"doc": doc, "title": f"Notes, part {doc[1:]}", "text": tell(rng)} for doc in campaign.pool.docs]
    store.with_name("documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@contextmanager
def served(store: Path) -> Iterator[str]:
    """The address of ``probeval judge`` while the block runs."""
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
        store = Path(place, "birds.db")
        judge_some(store, np.random.default_rng(0))
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        with served(store) as address:
            for name, view in VIEWS.items():
                page = browser.new_page(**view)
                page.goto(address)
                if name == "judging-desktop.png":
                    page.locator("#curve summary").click()
                page.screenshot(path=folder / name)
        browser.close()
    return [folder / name for name in VIEWS]


if __name__ == "__main__":
    found = shutil.which("chromium")
    if found is None:
        print("chromium is not installed: nothing to draw with.")
    else:
        print(f"Wrote {', '.join(map(str, draw(Path(sys.argv[1] if len(sys.argv) > 1 else '.'), found)))}.")
