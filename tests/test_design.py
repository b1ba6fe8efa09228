"""The design, held: who may import whom, what the public face is, and what `import probeval` does not load."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import probeval

PACKAGE = Path(probeval.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

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
    "results",
    "extensions",
    "parallel",
    "records",
    "reporting",
}
FEATURES = BASE | {"data"}
RELEVANCE = FEATURES | {"features"}
SCORES = RELEVANCE | {"relevance", "metrics"}
SELECTION = SCORES | {"scores"}
ABOVE_SELECTION = SELECTION | {"selection"}
CORE = ABOVE_SELECTION | {"simulation", "campaign", "reliability", "satisfaction", "preferences"}
RESULTS = CORE | {"studies"}
MAY_IMPORT = {
    "characters": set(),
    "errors": {"characters"},
    "arrays": set(),
    "streams": set(),
    "threads": set(),
    "text_tables": {"characters"},
    "display": {"characters", "text_tables"},
    "results": {"display"},
    "ties": {"arrays"},
    "extensions": {"errors"},
    "parallel": {"errors", "extensions"},
    "records": {"display", "errors"},
    "reporting": set(),
    "bayes": BASE,
    "data": BASE,
    "metrics": BASE | {"data"},
    "features": FEATURES,
    "labelling": BASE | {"data"},
    "relevance": RELEVANCE | {"bayes"},
    "scores": SCORES,
    "selection": SELECTION,
    "partitioned": SELECTION,
    "reliability": BASE | {"bayes", "data", "metrics", "scores"},
    "preferences": BASE | {"data"},
    "satisfaction": BASE | {"data", "metrics", "scores", "preferences"},
    "simulation": ABOVE_SELECTION | {"reliability"},
    "campaign": ABOVE_SELECTION | {"reliability", "simulation", "preferences", "satisfaction"},
    "studies": CORE,
    "plots": RESULTS,
    "reports": RESULTS | {"plots"},
    "web": RESULTS | {"plots", "reports"},
    "api": RESULTS | {"bayes", "labelling", "partitioned", "plots", "reports"},
    "adapters": RESULTS | {"plots", "reports", "api"},
    "cli": RESULTS | {"plots", "reports", "web", "api", "__init__"},
    "__init__": RESULTS | {"plots", "reports", "api"},
    "__main__": {"cli"},
}


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


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
    return {parts[0] if parts and parts[0] in MAY_IMPORT else "__init__" for parts in inside}


def name_of(path: Path) -> str:
    return ".".join(["probeval", *path.relative_to(PACKAGE).with_suffix("").parts])


def test_imports_go_down_the_table():
    wrong = [
        f"{name_of(path)} may not import {below}"
        for path in MODULES
        for below in sorted(imported(tree_of(path), name_of(path)) - MAY_IMPORT.get(part(path), set()) - {part(path)})
    ]
    assert not wrong, "\n".join(wrong)


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
    found = {name_of(path): runtime_imports(tree_of(path)) for path in MODULES}
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


def test_modules_say_what_they_are_and_what_is_public():
    wrong = []
    for path in MODULES:
        module = importlib.import_module(name_of(path).removesuffix(".__init__"))
        public = getattr(module, "__all__", None)
        if not module.__doc__:
            wrong.append(f"{module.__name__} has no docstring")
        if public is None:
            wrong.append(f"{module.__name__} has no __all__")
            continue
        wrong += [f"{module.__name__}.__all__ has {name} twice" for name in set(public) if public.count(name) > 1]
        wrong += [f"{module.__name__}.__all__ names {name}" for name in public if not hasattr(module, name)]
    assert not wrong, "\n".join(wrong)


def test_import_probeval_stays_light():
    heavy = ["pymc", "arviz", "statsmodels", "matplotlib", "scipy.stats", "numba", "pyarrow.parquet", "typer", "rich"]
    heavy += ["sqlalchemy", "starlette", "uvicorn"]
    code = f"import json, sys, probeval; print(json.dumps([m for m in {heavy} if m in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_a_class_name_has_one_meaning_in_the_package():
    homes: dict[str, list[str]] = {}
    for path in MODULES:
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(str(path.relative_to(PACKAGE)))
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


def test_no_module_changes_the_world_when_imported():
    # No filters or handlers are set at import.
    called = [
        f"{name_of(path)} calls {ast.unparse(node.value.func)}"
        for path in MODULES
        for node in tree_of(path).body
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    ]
    wrong = [call for call in called if call.split()[-1].split(".")[0] in {"warnings", "logging", "np", "pd", "os"}]
    assert not wrong, "\n".join(wrong)


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
