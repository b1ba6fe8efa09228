"""The pictures of the judging page: a synthetic campaign in a browser, on a desk and on a phone.

Run as ``python examples/judging_page.py [FOLDER]``: it writes judging-desktop.png and judging-phone.png there. It needs
the extra ``web``, Playwright and Debian's chromium. No query, document or judgment in it is real.
"""

import shutil
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import probeval

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


def draw(folder: Path, program: str) -> list[Path]:
    from playwright.sync_api import sync_playwright

    from probeval.campaign import Campaign
    from probeval.web import Document, Roster, serve

    rng, turns = np.random.default_rng(0), 0  # each judgment takes seven seconds
    judged = probeval.synthetic_campaign(rng, queries=12, systems=8, depth=10)
    grades = dict(
        zip(map(judged.judgments.pool.label, range(len(judged.judgments))), judged.judgments.grades(), strict=True)
    )
    with (
        tempfile.TemporaryDirectory() as place,
        Campaign.create(
            Path(place, "birds.db"),
            replace(judged, judgments=None),
            metric="nDCG@10",
            scale=probeval.Scale.graded(2),
            model="uniform",
            name="birds",
            guideline=GUIDELINE,
            queries={query: QUERIES[i % len(QUERIES)] for i, query in enumerate(judged.runs.queries)},
            stopping="confidence=.9",
            clock=lambda: time.time() + 7 * turns,
        ) as campaign,
        sync_playwright() as playwright,
    ):
        for turns in range(80):
            task = campaign.next("ann")[0]
            campaign.record("ann", task.query, task.doc, grades[task.query, task.doc])
            if turns % 10 == 9:
                campaign.refresh()
        documents = {doc: Document(tell(rng), title=f"Notes, part {doc[1:]}") for doc in campaign.pool.docs}
        address: list[str] = []
        there = threading.Event()

        def ready(url: str) -> None:
            address.append(url)
            there.set()

        settings = {"roster": Roster.local("ann"), "documents": documents, "port": 0, "ready": ready}
        threading.Thread(target=serve, args=(campaign,), kwargs=settings, daemon=True).start()
        assert there.wait(60)
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        views = {
            "judging-desktop.png": {"viewport": {"width": 1000, "height": 820}, "color_scheme": "light"},
            "judging-phone.png": {"viewport": {"width": 390, "height": 800}, "color_scheme": "dark", "is_mobile": True},
        }
        for name, view in views.items():
            page = browser.new_page(**view)
            page.goto(address[0])
            if not view.get("is_mobile"):
                page.locator("#course summary").click()
            page.screenshot(path=folder / name)
        browser.close()
    return [folder / name for name in views]


if __name__ == "__main__":
    found = shutil.which("chromium")
    if found is None:
        print("chromium is not installed: nothing to draw with.")
    else:
        print(f"Wrote {', '.join(map(str, draw(Path(sys.argv[1] if len(sys.argv) > 1 else '.'), found)))}.")
