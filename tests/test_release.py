"""Releases and the files around the code: version and date agree everywhere, checks are those of the Makefile."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import yaml

import probeval

ROOT = Path(__file__).parents[1]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_version_is_written_once() -> None:
    assert "version" not in PROJECT["project"]
    assert "version" in PROJECT["project"]["dynamic"]
    assert PROJECT["tool"]["hatch"]["version"] == {"path": "probeval/__init__.py"}
    source = (ROOT / "probeval" / "__init__.py").read_text(encoding="utf-8")
    assert re.findall(r'^__version__ = "(.+)"$', source, re.MULTILINE) == [probeval.__version__]
    assert re.fullmatch(r"\d+\.\d+\.\d+", probeval.__version__)


def test_the_changelog_has_dated_versions() -> None:
    past = re.findall(r"^## (.+)$", CHANGELOG, flags=re.MULTILINE)
    versions, dates = zip(*(heading.split(" - ") for heading in past), strict=True)
    assert versions[0] == probeval.__version__
    numbers = [tuple(map(int, version.split("."))) for version in versions]
    assert numbers == sorted(set(numbers), reverse=True)
    days = [date.fromisoformat(day) for day in dates]
    assert days == sorted(days, reverse=True)


def test_the_changelog_uses_the_usual_headings() -> None:
    kinds = set(re.findall(r"^### (.+)$", CHANGELOG, flags=re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_news_become_a_section_of_the_changelog(tmp_path: Path) -> None:
    for part in ("docs/news.py", "CHANGELOG.md"):
        (tmp_path / part).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / part, tmp_path / part)
    (tmp_path / "docs" / "news").mkdir()
    (tmp_path / "docs" / "news" / "a-verb.added.md").write_text("**A verb.** It has\ntwo lines.\n")
    (tmp_path / "docs" / "news" / "a-fault.fixed.md").write_text("A fault.\n")
    subprocess.run([sys.executable, "docs/news.py", "9.0.0"], cwd=tmp_path, check=True)
    written = (tmp_path / "CHANGELOG.md").read_text(encoding="utf-8")
    coming, rest = CHANGELOG.split("\n## ", 1)
    section = "### Added\n- **A verb.** It has\n  two lines.\n\n### Fixed\n- A fault.\n"
    assert written == f"{coming}\n## 9.0.0 - {date.today().isoformat()}\n\n{section}\n## {rest}"
    assert list((tmp_path / "docs" / "news").iterdir()) == []


def test_news_are_named_by_a_kind() -> None:
    names = [path.name for path in (ROOT / "docs" / "news").iterdir()]
    assert [
        n for n in names if not re.fullmatch(r"[a-z0-9-]+\.(added|changed|deprecated|removed|fixed|security)\.md", n)
    ] == []


def test_the_citation_is_complete_and_of_this_version() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    required = {"cff-version", "message", "title", "authors"}  # of CFF 1.2.0
    assert required <= cited.keys()
    assert cited["cff-version"] == "1.2.0"
    assert cited["version"] == probeval.__version__
    released = re.search(rf"^## {re.escape(probeval.__version__)} - (\S+)$", CHANGELOG, re.MULTILINE)
    assert released is not None
    assert cited["date-released"] == date.fromisoformat(released[1])
    assert cited["license"] == PROJECT["project"]["license"]
    assert cited["authors"] == PROJECT["project"]["authors"]
    assert cited["repository-code"] == PROJECT["project"]["urls"]["Source"]


def test_references_have_what_a_citation_needs() -> None:
    references = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["references"]
    for reference in references:
        assert {"type", "title", "authors", "year"} <= reference.keys(), reference["title"]
        assert all({"given-names", "family-names"} == author.keys() for author in reference["authors"])
        assert re.fullmatch(r"10\.\d{4,9}/\S+", reference.get("doi", "10.1000/none"))
    assert sum("doi" in reference for reference in references) >= 5


def _commands(target: str) -> list[str]:
    """The commands of a target of the Makefile."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    rule = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    assert rule is not None, f"the Makefile has no target {target}"
    return [line.strip() for line in rule[1].splitlines()]


def test_a_commit_is_checked_as_make_lint_checks() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    (local,) = config["repos"]
    assert local["repo"] == "local"  # nothing is fetched
    (hook,) = local["hooks"]
    assert (hook["language"], hook["entry"]) == ("system", "make lint")
    assert not hook["pass_filenames"]  # the whole tree, as in the Makefile
    assert _commands("lint") == ["$(BIN)/ruff check .", "$(BIN)/ruff format --check .", "$(BIN)/mypy"]


def _workflow(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8"))
    return loaded


def test_workflows_test_every_supported_python_with_make_test() -> None:
    job = _workflow("tests.yml")["jobs"]["test"]
    prefix = "Programming Language :: Python :: 3."
    supported = [c.rpartition(" ")[2] for c in PROJECT["project"]["classifiers"] if c.startswith(prefix)]
    assert job["strategy"]["matrix"]["python"] == supported
    assert job["steps"][-1] == {"run": "make test"}


def test_a_release_is_checked_before_it_is_published() -> None:
    jobs = _workflow("release.yml")["jobs"]
    said = [step.get("run", "") for step in jobs["build"]["steps"]]
    assert said.index("python -m build") < said.index("python -m twine check --strict dist/*")
    assert jobs["publish"]["needs"] == "attest"
    assert jobs["attest"]["needs"] == "build"


def test_workflows_have_the_least_permissions() -> None:
    release = _workflow("release.yml")
    assert release["permissions"] == {}
    assert {name: job["permissions"] for name, job in release["jobs"].items()} == {
        "build": {"contents": "read"},
        "attest": {"id-token": "write", "attestations": "write"},
        "publish": {"id-token": "write"},
    }
    assert _workflow("tests.yml")["permissions"] == {"contents": "read"}


def test_actions_of_others_are_named_by_commit() -> None:
    files = [*(ROOT / ".github").rglob("*.yml"), ROOT / "docs" / "how-to" / "ci.md"]
    used = [line for path in files for line in re.findall(r"uses: (\S+@\S+.*)", path.read_text(encoding="utf-8"))]
    others = [line for line in used if not line.startswith("probeval/")]
    assert len(others) >= 10
    assert [line for line in others if not re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}  # v[\d.]+", line)] == []
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        checkouts = [
            s for j in _workflow(path.name)["jobs"].values() for s in j["steps"] if "checkout" in s.get("uses", "")
        ]
        assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_files_for_contributors_name_no_host_and_no_machine() -> None:
    files = [*(ROOT / ".github").rglob("*.*"), *(ROOT / ".ci").glob("*"), ROOT / ".pre-commit-config.yaml"]
    for path in filter(Path.is_file, files):
        text = path.read_text(encoding="utf-8") if path.suffix != ".pyc" else ""
        found = re.search(r"(?<![\w.])/(?:work|root|home)/|https?://(?!host/)", text)
        assert not found, f"{path.relative_to(ROOT)} names {found and found[0]}"


def test_contributors_find_every_target_of_the_makefile() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert phony is not None
    assert [target for target in phony[1].split() if f"`make {target}`" not in page] == []
    named = re.findall(r"`((?:probeval|tests|docs|models)/[\w./]*)`", page)
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_pages_that_machines_and_newcomers_are_sent_to_exist() -> None:
    home = PROJECT["project"]["urls"]["Documentation"]
    pages = re.findall(rf"\({home}/(.+?)\.html\)", (ROOT / "docs" / "llms.txt").read_text(encoding="utf-8"))
    assert len(pages) > 10
    assert [page for page in pages if not (ROOT / "docs" / f"{page}.md").exists()] == []
    for file in (ROOT / ".github").glob("*.md"):
        links = re.findall(r"\]\(([^):]+)\)", file.read_text(encoding="utf-8"))
        assert [link for link in links if not (file.parent / link).exists()] == [], file.name
