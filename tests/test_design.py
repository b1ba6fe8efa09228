"""The design, held: who may import whom, what the public face is, and what `import probeval` does not load."""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import probeval

PACKAGE = Path(probeval.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
MOST_LINES = 450
MOST_MODULES = 8  # of a folder of relevance, __init__.py aside
ROOT = Path(__file__).parents[1]
ARCHITECTURE = ROOT / "docs" / "architecture.md"
TOP_LEVEL = {
    ".ci",
    ".github",
    ".gitignore",
    ".pre-commit-config.yaml",
    "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "docs",
    "examples",
    "models",
    "probeval",
    "pyproject.toml",
    "tests",
}

# What each part may import, itself aside. What stands below a part's neighbour is open to it too.
BASE = {
    "characters",
    "errors",
    "arrays",
    "streams",
    "threads",
    "ties",
    "text_tables",
    "display",
    "schema",
    "extensions",
    "parallel",
    "campaign_studies",
}
FEATURES = BASE | {"data"}
RELEVANCE = FEATURES | {"features"}
SCORES = RELEVANCE | {"relevance", "metrics"}
SELECTION = SCORES | {"scores"}
ABOVE_SELECTION = SELECTION | {"selection"}
RESULTS = ABOVE_SELECTION | {"simulation", "campaign", "pools", "reliability", "satisfaction", "preferences"}
MAY_IMPORT = {
    "characters": set(),
    "errors": {"characters"},
    "arrays": set(),
    "streams": set(),
    "threads": set(),
    "text_tables": {"characters"},
    "display": {"characters", "text_tables"},
    "schema": set(),
    "ties": {"arrays"},
    "extensions": {"errors"},
    "parallel": {"errors", "extensions"},
    "campaign_studies": {"display", "errors", "parallel"},
    "bayes": BASE,
    "data": BASE,
    "metrics": BASE | {"data"},
    "features": FEATURES,
    "relevance": RELEVANCE | {"bayes"},
    "scores": SCORES,
    "selection": SELECTION,
    "partitioned": ABOVE_SELECTION,
    "reliability": BASE | {"bayes", "data", "metrics", "scores"},
    "preferences": BASE | {"data"},
    "satisfaction": BASE | {"data", "metrics", "scores", "preferences"},
    "simulation": ABOVE_SELECTION | {"reliability"},
    "pools": ABOVE_SELECTION | {"reliability", "simulation"},
    "campaign": ABOVE_SELECTION | {"reliability", "simulation", "preferences", "satisfaction"},
    "plots": RESULTS,
    "reports": RESULTS | {"plots"},
    "web": RESULTS | {"plots", "reports"},
    "api": RESULTS | {"partitioned", "plots", "reports"},
    "adapters": RESULTS | {"plots", "reports", "api"},
    "cli": RESULTS | {"plots", "reports", "web", "api", "__init__"},
    "__init__": RESULTS | {"plots", "reports", "api"},
    "__main__": {"cli"},
}


def part(path: Path) -> str:
    """The part of the package that a file belongs to: ``data`` for ``data/pool.py``."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(tree: ast.AST, module: str) -> set[str]:
    """The parts of probeval that a module names in its imports, wherever they stand, functions included."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = module.split(".")[: -node.level]
                base = ".".join([*above, *([base] if base else [])])
            names |= {f"{base}.{alias.name}" for alias in node.names}
    inside = [name.split(".")[1:] for name in names if name.split(".")[0] == "probeval"]
    known = {part(path) for path in MODULES}
    return {parts[0] if parts and parts[0] in known else "__init__" for parts in inside}


def name_of(path: Path) -> str:
    return ".".join(["probeval", *path.relative_to(PACKAGE).with_suffix("").parts])


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_down_the_table(path):
    here = part(path)
    assert here in MAY_IMPORT, f"{here} has no place in the import table"
    wrong = imported(ast.parse(path.read_text()), name_of(path)) - MAY_IMPORT[here] - {here}
    assert not wrong, f"{here} may not import {', '.join(sorted(wrong))}"


def test_the_scan_sees_imports_of_every_kind():
    text = """
import probeval.cli.app
from probeval import errors
from probeval import measure
from ..metrics import parse
from . import pool
def late():
    from probeval.data.runs import Runs
"""
    found = imported(ast.parse(text), "probeval.data.runs")
    assert found == {"cli", "errors", "__init__", "metrics", "data"}


def test_the_table_has_no_circle():
    left = {name: set(below) for name, below in MAY_IMPORT.items()}
    while left:
        free = [name for name, below in left.items() if not below & left.keys()]
        assert free, f"a circle among {sorted(left)}"
        for name in free:
            del left[name]


def runtime_imports(tree: ast.AST) -> set[str]:
    """The modules that a module imports when it runs, in functions too: all but those for annotations alone."""
    names: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom):
            names |= {node.module or ""} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        names |= runtime_imports(node)
    return names


def test_no_two_modules_of_a_part_import_each_other():
    found = {name_of(path): runtime_imports(ast.parse(path.read_text())) for path in MODULES}
    left = {name: names & found.keys() for name, names in found.items() if not name.endswith("__init__")}
    while left:
        free = [name for name, below in left.items() if not below & left.keys()]
        assert free, f"a circle among {sorted(left)}"
        for name in free:
            del left[name]


def test_all_is_sorted_and_is_the_public_face():
    public = {
        name
        for name, value in vars(probeval).items()
        if not name.startswith("_") and not isinstance(value, ModuleType) and value is not Any
    }
    assert probeval.__all__ == sorted(probeval.__all__)
    assert public | {"__version__"} <= set(probeval.__all__)
    assert all(hasattr(probeval, name) for name in probeval.__all__)  # some load late
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = probeval.nothing


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_all_names_exist_once_and_are_the_modules_own_or_passed_on(path):
    name = name_of(path).removesuffix(".__init__")
    module = importlib.import_module(name)
    if not hasattr(module, "__all__"):
        pytest.fail(f"{name} has no __all__")
    assert len(set(module.__all__)) == len(module.__all__)
    missing = [public for public in module.__all__ if not hasattr(module, public)]
    assert not missing, f"{name}.__all__ names {missing}"


def test_every_subpackage_says_what_it_is():
    for found in pkgutil.iter_modules([str(PACKAGE)]):
        module = importlib.import_module(f"probeval.{found.name}")
        assert module.__doc__, found.name


def test_import_probeval_stays_light():
    heavy = ["pymc", "arviz", "statsmodels", "matplotlib", "scipy.stats", "numba", "pyarrow.parquet", "typer", "rich"]
    heavy += ["sqlalchemy", "starlette", "uvicorn"]
    code = f"import json, sys, probeval; print(json.dumps([m for m in {heavy} if m in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_a_class_name_has_one_meaning_in_the_package():
    homes: dict[str, list[str]] = {}
    for path in MODULES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(str(path.relative_to(PACKAGE)))
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_modules_are_short_and_finished(path):
    text = path.read_text()
    assert len(text.splitlines()) <= MOST_LINES
    for mark in ("TO" + "DO", "FIX" + "ME", "XX" + "X"):
        assert mark not in text


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_no_module_changes_the_world_when_imported(path):
    # No filters or handlers are set at import.
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            called = ast.unparse(node.value.func)
            assert called.split(".")[0] not in {"warnings", "logging", "np", "pd", "os"}, called


def test_errors_are_drawn_as_they_are():
    from probeval import errors

    tree = {
        name: value
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.ProbevalError)
    }
    for name, value in tree.items():
        assert name in errors.__doc__
        assert name in errors.__all__
        assert value is errors.ProbevalError or value.__bases__ == (errors.ProbevalError,)


def drawn(drawing: str) -> list[str]:
    """The paths that a drawing of folders names: two spaces per level, files and folders first, then what they are."""
    paths, above = [], [""]
    for line in filter(str.strip, drawing.splitlines()):
        level = (len(line) - len(line.lstrip())) // 2
        names = re.match(r"\s*((?:\w+(?:\.py|/)(?:\s+|$))*)", line)[1].split()
        assert names, f"names no file or folder: {line!r}"
        assert level < len(above), f"stands too far to the right: {line!r}"
        paths += [above[level] + name for name in names]
        above = [*above[: level + 1], above[level] + names[0]]
    return paths


def test_the_scan_reads_a_drawing():
    drawing = """
probeval/
  errors.py       what is raised, as in other.py
  metrics/        measures
    linear.py  ratio.py     the kernels
    inner/
      deep.py
  web/
    page.py  templates/     pages
models/           data
"""
    assert drawn(drawing) == [
        "probeval/",
        "probeval/errors.py",
        "probeval/metrics/",
        "probeval/metrics/linear.py",
        "probeval/metrics/ratio.py",
        "probeval/metrics/inner/",
        "probeval/metrics/inner/deep.py",
        "probeval/web/",
        "probeval/web/page.py",
        "probeval/web/templates/",
        "models/",
    ]


def test_the_tree_is_drawn_as_it_is():
    page = ARCHITECTURE.read_text(encoding="utf-8")
    paths = drawn(re.search(r"## The tree\n+```text\n(.*?)```", page, re.DOTALL)[1])
    assert len(set(paths)) == len(paths), "a file is drawn twice"
    homes = {path: (PACKAGE.parent if path.startswith("probeval/") else ARCHITECTURE.parents[1]) for path in paths}
    gone = [path for path in paths if not (homes[path] / path).exists()]
    assert not gone, f"docs/architecture.md draws what is not there: {', '.join(gone)}"
    modules = {path.relative_to(PACKAGE.parent).as_posix() for path in MODULES if path.name != "__init__.py"}
    missing = sorted(modules - set(paths))
    assert not missing, f"docs/architecture.md does not draw {', '.join(missing)}"


def test_the_top_level_has_only_what_belongs_there():
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode or not done.stdout:
        pytest.skip("not a checkout of git")
    assert {path.split("/")[0] for path in done.stdout.splitlines()} == TOP_LEVEL


def test_folders_of_relevance_are_small():
    relevance = PACKAGE / "relevance"
    for folder in (relevance, *(path for path in relevance.rglob("*") if path.is_dir())):
        names = [path.name for path in folder.glob("*.py") if path.name != "__init__.py"]
        assert len(names) <= MOST_MODULES, f"{folder.name}/ has {len(names)} modules: {', '.join(sorted(names))}"
