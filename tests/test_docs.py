"""The documentation is true: its code runs and prints what it says, and nothing that exists goes unmentioned.

In README.md and docs/**/*.md, top to bottom and page by page in one namespace and one empty folder: ``python`` blocks
are executed, ``probeval`` lines of ``bash`` blocks are run. A ``text`` block right after one of these is what it must
print. ``<!-- skip: needs your own files -->`` on the line before a block is the only way out. Blocks that take long,
such as those that sample, have ``<!-- long: run by make validate -->`` there instead.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib.util
import io
import re
import runpy
import shlex
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from probeval.cli import main
from probeval.data import FORMATS
from probeval.data.judgments import RULES
from probeval.data.runs import ORDERS
from probeval.data.tables import NAMES
from probeval.metrics import REGISTRY
from probeval.selection import GOALS, POLICIES
from probeval.selection import RULES as STOPPING_RULES

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
GENERATED = DOCS / "reference" / "generated"
SKIP = "<!-- skip: needs your own files -->"
LONG = "<!-- long: run by make validate -->"
LONG_EXAMPLES = {"story.py", "judging_page.py"}  # run by make validate


def _pages() -> list[Path]:
    """README, the manual for agents and the pages that people wrote."""
    written = [p for p in DOCS.rglob("*.md") if GENERATED not in p.parents and DOCS / "_build" not in p.parents]
    return [ROOT / "README.md", ROOT / "probeval" / "SKILL.md", *sorted(written)]


PAGES = _pages()
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)


@dataclass
class Block:
    language: str
    line: int
    code: str
    skipped: bool
    long: bool = False
    output: str | None = None


def _blocks(text: str) -> list[Block]:
    """The fenced blocks of a page; a text block right after one that runs becomes its output."""
    blocks: list[Block] = []
    lines = text.splitlines()
    last_end, i = -2, 0
    while i < len(lines):
        fence = re.fullmatch(r"```(\S*)(?: .*)?", lines[i])
        if not fence:
            i += 1
            continue
        end = next(j for j in range(i + 1, len(lines)) if lines[j] == "```")
        code = "\n".join(lines[i + 1 : end]) + "\n"
        adjacent = not "".join(lines[last_end + 1 : i]).strip()
        if fence[1] == "text" and blocks and adjacent and blocks[-1].language in ("python", "bash"):
            blocks[-1].output = code
        else:
            before = lines[i - 1].strip() if i else ""
            blocks.append(Block(fence[1], i + 1, code, skipped=before == SKIP, long=before == LONG))
        last_end, i = end, end + 1
    return blocks


def _pages_with_code() -> list[Path]:
    """The pages that have something to run, those with most of it first: a long test at the end leaves cores idle."""

    def size(page: Path) -> int:
        return sum(len(b.code) for b in _blocks(page.read_text(encoding="utf-8")) if b.language in ("python", "bash"))

    return sorted(filter(size, PAGES), key=size, reverse=True)


def _run_command(line: str) -> None:
    words = shlex.split(line, comments=True)
    if ">" in words:
        at = words.index(">")
        with Path(words[at + 1]).open("w", encoding="utf-8") as file, contextlib.redirect_stdout(file):
            _run_command(shlex.join(words[:at]))
        return
    given, sys.argv = sys.argv, words
    try:
        main()
    except SystemExit as done:
        sys.stdout.flush()
        if done.code:
            print(f"[exit {done.code}]")
    finally:
        sys.argv = given


def _run(block: Block, namespace: dict[str, object], page: str) -> str:
    """What a block prints, on either stream."""
    screen = io.StringIO()
    with contextlib.redirect_stdout(screen), contextlib.redirect_stderr(screen):
        if block.language == "python":
            exec(compile("\n" * block.line + block.code, page, "exec"), namespace)
        else:
            for line in block.code.replace("\\\n", " ").splitlines():
                if line.startswith("probeval "):
                    _run_command(line)
    return screen.getvalue()


def _tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines()) + "\n"


def _check(page: Path, *, long: bool) -> None:
    """Run the blocks of a page in the present folder, long ones only if asked for."""
    name = str(page.relative_to(ROOT))
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in _blocks(page.read_text(encoding="utf-8")):
        if block.skipped or (block.long and not long) or block.language not in ("python", "bash"):
            continue
        got = _run(block, namespace, name)
        # Exit codes 3 and 4 are verdicts of probeval gate, not errors.
        if re.search(r"\[exit [12]\]", got) and (block.output is None or "Error: " not in block.output):
            pytest.fail(f"{name}:{block.line}: {got}")
        got = re.sub(r"\[exit \d+\]\n", "", got)
        if block.output is not None:
            want = _tidy(block.output)
            same = doctest.OutputChecker().check_output(want, _tidy(got), doctest.ELLIPSIS)
            assert same, f"{name}:{block.line} prints\n{_tidy(got)}and the page says\n{want}"


@pytest.mark.pages
@pytest.mark.parametrize("page", _pages_with_code(), ids=lambda p: str(p.relative_to(ROOT)))
def test_code_runs_and_prints_what_the_page_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _check(page, long=False)


@pytest.mark.validation
@pytest.mark.parametrize(
    "page", [p for p in PAGES if LONG in p.read_text(encoding="utf-8")], ids=lambda p: str(p.relative_to(ROOT))
)
def test_long_code_runs_too(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _check(page, long=True)


def test_a_page_that_lies_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = "```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n\n" + SKIP + "\n```bash\nprobeval evaluate mine\n```\n"
    sums, mine = _blocks(page)
    assert (sums.output, mine.skipped) == ("3\n", True)
    assert _run(sums, {}, "page") == "2\n"
    monkeypatch.chdir(tmp_path)
    assert "Error: " in _run(Block("bash", 1, "probeval evaluate none --qrels none --metric AP\n", False), {}, "page")


def _words_of(block: Block) -> list[list[str]]:
    return [shlex.split(line, comments=True) for line in block.code.replace("\\\n", " ").splitlines() if line.strip()]


def test_shell_blocks_hold_only_what_is_run_or_checked() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    unchecked = [
        f"{page.relative_to(ROOT)}:{block.line}: {' '.join(words)}"
        for page in PAGES
        for block in _blocks(page.read_text(encoding="utf-8"))
        if block.language == "bash"
        for words in filter(None, _words_of(block))
        if not (
            words[0] == "probeval"
            or (words[0] == "make" and words[-1] in targets)
            or (words[0] == "pip" and words[1] == "install")
            or (words[0] == "python" and (ROOT / words[1]).is_file())
            or words == [".", ".venv/bin/activate"]
        )
    ]
    assert not unchecked, "\n".join(unchecked)


def test_links_and_pictures_exist() -> None:
    missing = []
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
            there = page.parent / target
            if "://" not in target and GENERATED not in there.resolve().parents and not there.exists():
                missing.append(f"{page.relative_to(ROOT)} links to {target}")
    assert not missing, "\n".join(missing)


@cache
def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_command_and_option_is_explained_by_hand() -> None:
    generate = _generator()
    page = (DOCS / "how-to" / "command-line.md").read_text(encoding="utf-8")
    spelled = [text for f in (*generate.commands().values(), generate.root) for text, _, _, _ in generate.options(f)]
    assert {"--metric", "--qrels", "--debug", "RUNS..."} <= set(spelled)  # the generator does see them
    missing = [word for word in spelled if f"`{word}" not in page]
    missing += [name for name in generate.commands() if f"`probeval {name}" not in page]
    assert not missing


def test_every_command_and_option_is_in_the_reference() -> None:
    generate = _generator()
    page = generate.pages()["command-line.md"]
    for name, command in generate.commands().items():
        section = page.split(f"## probeval {name}\n")[1].split("\n## ")[0]
        for text, info, _, _ in generate.options(command):
            assert f"| `{text}` |" in section
            assert info.help
            assert info.help in section


def test_every_measure_is_documented() -> None:
    by_hand = (DOCS / "how-to" / "measures.md").read_text(encoding="utf-8")
    generated = _generator().pages()["measures.md"]
    missing = []
    for name, definition in REGISTRY.items():
        missing += [f"`{name}`"] * (f"`{name}`" not in by_hand)
        section = generated.split(f"\n## {name}\n")[1].split("\n## ")[0]
        parts = [definition.formula, "Bounds:"]
        parts += [part for p, entry in definition.parameters.items() for part in (f"| `{p}` |", entry.doc)]
        missing += [f"{name}: {part}" for part in parts if part not in section]
    assert not missing, "\n".join(missing)


def test_every_policy_goal_and_stopping_rule_is_documented() -> None:
    page, theory = _generator().pages()["judging.md"], (DOCS / "theory" / "judging.md").read_text(encoding="utf-8")
    forms = [*POLICIES, *GOALS, *(f"{name}=" for name in STOPPING_RULES)]
    assert [form for form in forms if f"| `{form}` |" not in page] == []
    assert [form for form in forms if f"`{form}`" not in theory] == []
    for described in (*POLICIES.values(), *STOPPING_RULES.values()):
        assert described.summary in page


PARTS = (
    "data",
    "metrics",
    "features",
    "relevance",
    "scores",
    "selection",
    "studies",
    "studies.pools",
    "simulation",
    "labelling",
    "campaign",
    "web",
    "reliability",
    "satisfaction",
    "plots",
    "reports",
    "adapters.ir_measures",
    "adapters.pyterrier",
    "display",
    "extensions",
    "results",
    "errors",
)


def test_every_public_name_is_in_the_reference() -> None:
    missing = []
    for module in ("probeval", *(f"probeval.{part}" for part in PARTS)):
        public = set(importlib.import_module(module).__all__) - set(REGISTRY) - {"__version__"}
        page = DOCS / "reference" / f"{module.removeprefix('probeval.').partition('.')[0]}.md"
        named = set(re.findall(r"(?<![\w.])\w+", page.read_text(encoding="utf-8")))
        missing += [f"{page.name}: {module}.{name}" for name in sorted(public - named)]
    assert not missing, "\n".join(missing)


def test_orders_rules_and_column_names_are_all_explained() -> None:
    order, data = (DOCS / page for page in ("theory/order.md", "how-to/data.md"))
    assert all(f"| `{name}` |" in order.read_text(encoding="utf-8") for name in ORDERS)
    known = data.read_text(encoding="utf-8")
    assert [name for name in RULES if f"`{name}`" not in known] == []
    assert [name for names in NAMES.values() for name in names if f"`{name}`" not in known] == []


def test_every_file_format_is_explained() -> None:
    known = (DOCS / "how-to" / "data.md").read_text(encoding="utf-8")
    kinds = {"Runs": "runs", "Judgments": "judgments", "LabelTable": "labels", "PairAnswers": "answers"}
    assert [f.name for f in FORMATS if f"| `{f.name}` | {kinds[f.holds.__name__]} |" not in known] == []


def test_every_name_on_the_reference_pages_exists() -> None:
    for page in (DOCS / "reference").glob("*.md"):
        module = None
        for line in page.read_text(encoding="utf-8").splitlines():
            if found := re.match(r"\.\. (?:currentmodule|automodule):: (\S+)", line):
                module = importlib.import_module(found[1])
            elif found := re.match(r"\.\. auto(?:class|function|data|exception):: (\S+)", line):
                assert module is not None
                assert hasattr(module, found[1]), f"{page.name}: {module.__name__}.{found[1]}"


def _needs_data(script: Path) -> bool:
    """Whether the first line of a script says that it takes a folder of real campaigns."""
    return " DATA" in script.read_text(encoding="utf-8").splitlines()[0]


@pytest.mark.pages
@pytest.mark.parametrize(
    "script",
    [pytest.param(p, id=p.name, marks=[pytest.mark.validation] if p.name in LONG_EXAMPLES else []) for p in EXAMPLES],
)
def test_examples_run(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(script)])
    if _needs_data(script):
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(script), run_name="__main__")
        said = ended.value.code if isinstance(ended.value.code, str) else capsys.readouterr().err
        assert said.startswith("usage: ")
        return
    runpy.run_path(str(script), run_name="__main__")
    printed = capsys.readouterr()
    assert printed.out.strip()
    assert not printed.err


def test_examples_say_what_they_do_and_are_named_in_the_docs() -> None:
    assert [script.name for script in EXAMPLES if not _needs_data(script)]
    for script in EXAMPLES:
        assert script.read_text(encoding="utf-8").startswith('"""')
        assert _needs_data(script) or f"examples/{script.name}" in TEXT


def test_pictures_come_from_scripts_and_are_small() -> None:
    pictures = sorted((DOCS / "_static").glob("*.png"))
    assert pictures
    for picture in pictures:
        assert any(picture.name in script.read_text(encoding="utf-8") for script in EXAMPLES), (
            f"no script draws {picture.name}"
        )
        assert picture.stat().st_size < 100_000
        assert picture.name in TEXT


def _glossary() -> dict[str, str]:
    """The terms of the glossary with their definitions, in the order of the page."""
    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    found = re.findall(r"^(\S[^\n]*)\n: (.*?)(?=\n\n|\Z)", text, flags=re.MULTILINE | re.DOTALL)
    terms = [term for term, _ in found]
    assert len(set(map(str.casefold, terms))) == len(terms)
    return dict(found)


def test_glossary_is_sorted_and_links_to_more() -> None:
    glossary = _glossary()
    assert len(glossary) > 70
    assert list(glossary) == sorted(glossary, key=str.casefold)
    assert [term for term, text in glossary.items() if not re.search(r"\]\(\S+\.md|`probeval\.", text)] == []


def test_names_in_the_glossary_exist() -> None:
    names = {name for text in _glossary().values() for name in re.findall(r"`(probeval(?:\.\w+)+)`", text)}
    assert len(names) > 40
    missing = []
    for name in sorted(names):
        module, _, attribute = name.rpartition(".")
        if not hasattr(importlib.import_module(module), attribute):
            missing.append(name)
    assert not missing


def test_pages_name_no_machine() -> None:
    for page in PAGES:
        found = re.search(r"(?<![\w.])/(?:work|root|home|tmp)/", page.read_text(encoding="utf-8"))
        assert not found, f"{page.relative_to(ROOT)} names {found and found[0]}"


def test_the_number_of_measures_is_right() -> None:
    assert f"Computes {len(REGISTRY)} measures" in (DOCS / "index.md").read_text(encoding="utf-8")
