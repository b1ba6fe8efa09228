"""The public names: what `import probeval` offers, when it loads, and how results print."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import probeval
from probeval import errors

TASKS = (
    "evaluate",
    "compare",
    "next_pairs",
    "plan",
    "simulate",
    "gstudy",
    "dstudy",
    "fit",
    "Campaign",
    "report",
)


@pytest.mark.parametrize("name", TASKS)
def test_the_ten_tasks_are_at_the_top(name):
    assert name in probeval.__all__
    assert callable(getattr(probeval, name))


def test_every_exception_is_at_the_top():
    kinds = [n for n, c in vars(errors).items() if inspect.isclass(c) and issubclass(c, (Exception, Warning))]
    assert kinds
    assert set(kinds) <= set(probeval.__all__)


@pytest.mark.slow
def test_names_load_when_they_are_used():
    code = (
        "import sys, probeval\n"
        "assert not any(m.startswith('probeval.') for m in sys.modules), sorted(sys.modules)\n"
        "probeval.read_runs\n"
        "assert 'probeval.data' in sys.modules and 'probeval.api' not in sys.modules\n"
        "probeval.evaluate\n"
        "assert 'probeval.api' in sys.modules and 'sqlalchemy' not in sys.modules\n"
        "assert not {'pymc', 'arviz', 'matplotlib', 'statsmodels'} & set(sys.modules)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_every_public_name_exists_and_is_listed():
    for name in probeval.__all__:
        assert getattr(probeval, name) is not None
    assert set(probeval.__all__) <= set(dir(probeval))
    with pytest.raises(AttributeError, match="no attribute 'rank'"):
        probeval.rank  # noqa: B018
