"""Label Studio: pairs to judge out as tasks with a labeling configuration, annotations in as judgments."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from probeval.data.files import read_bytes
from probeval.data.judgments import Judgments
from probeval.data.payloads import member, parsed_json
from probeval.data.scale import Scale
from probeval.data.tables import NAMES, cell_text, ids
from probeval.data.tasks import OpenPair, WriteOptions
from probeval.errors import DataError, ProbevalWarning

__all__ = ["label_studio_tasks", "read_annotations", "read_label_studio"]

GRADE = "grade"  # the name of the control in the labeling configuration
MOST_BUTTONS = 10  # grades that are shown as choices; more are a number field
MOST_SECONDS = 1e12  # of an annotation
VALUES = ("choices", "number", "rating")  # where a result keeps its value
COLUMNS = ("query", "doc", "grade", "assessor", "time", "lead_time", "skipped")
EXPORTS = "Export the project as JSON or JSON_MIN"


def label_studio_tasks(pairs: Sequence[OpenPair], options: WriteOptions) -> dict[str, str]:
    """Pairs to judge as ``tasks.json``, and the labeling configuration of the scale as ``config.xml``.

    A task has the ids, the texts and the expected grade in its data; the grade nearest to the expected one is a
    prediction of the task.

    Examples
    --------
    >>> pairs, options = [OpenPair("q1", "007", 1.62)], WriteOptions(scale=Scale.graded(2))
    >>> (task,) = json.loads(label_studio_tasks(pairs, options)["tasks.json"])
    >>> task["data"]["doc"], task["predictions"][0]["result"][0]["value"]
    ('007', {'choices': ['2']})
    """
    if options.scale is None:
        raise DataError("the labeling configuration shows the grades: name their scale, scale='graded:2' (--scale).")
    tasks = [_task(number, pair, options, options.scale) for number, pair in enumerate(pairs, start=1)]
    return {
        "tasks.json": json.dumps(tasks, indent=2, ensure_ascii=False) + "\n",
        "config.xml": _configuration(options.scale),
    }


def _task(number: int, pair: OpenPair, options: WriteOptions, scale: Scale) -> dict[str, Any]:
    data: dict[str, Any] = {
        "query": pair.query,
        "doc": pair.doc,
        "query_text": options.query_text(pair.query),
        "doc_text": options.doc_text(pair.doc),
    }
    if pair.expected is None:
        return {"data": data}
    nearest = scale.grades[int(np.argmin(np.abs(scale.values - pair.expected)))]
    choices = len(scale) <= MOST_BUTTONS
    result = {
        "id": f"expected-{number}",
        "from_name": GRADE,
        "to_name": "document",
        "type": "choices" if choices else "number",
        "value": {"choices": [f"{nearest:g}"]} if choices else {"number": nearest},
    }
    return {
        "data": data,
        "predictions": [{"model_version": options.name, "result": [result]}],
    }


def _configuration(scale: Scale) -> str:
    """The labeling configuration: the texts, and one choice per grade or a number field."""
    grades = [f"{grade:g}" for grade in scale.grades]
    if len(scale) > MOST_BUTTONS:
        control = f'  <Number name="{GRADE}" toName="document" min="{grades[0]}" max="{grades[-1]}" required="true"/>'
    else:
        keys = [f' hotkey="{grade}"' if len(grade) == 1 else "" for grade in grades]
        choices = [f'    <Choice value="{grade}"{key}/>' for grade, key in zip(grades, keys, strict=True)]
        opened = f'  <Choices name="{GRADE}" toName="document" choice="single-radio" showInline="true" required="true">'
        control = "\n".join([opened, *choices, "  </Choices>"])
    return f"""<View>
  <Header value="Query"/>
  <Text name="query" value="$query_text"/>
  <Header value="Document"/>
  <Text name="document" value="$doc_text"/>
  <Header value="Grade of the document for this query"/>
{control}
</View>
"""


def read_label_studio(path: str | PathLike[str]) -> Judgments:
    """Read the judgments in an export of Label Studio, JSON or JSON_MIN.

    Every annotation with a grade is a judgment by its annotator. Skipped ones, and those without a grade, are left
    out, with a warning. Predictions and drafts are no judgments.

    Parameters
    ----------
    path
        The export; see :func:`read_annotations` for its content.
    """
    file = Path(path)
    table = read_annotations(file)
    judged = table[table["grade"].notna()]
    out = len(table) - len(judged)
    if judged.empty:
        raise DataError(f"none of its {out:,} annotations has a grade. {EXPORTS} after annotating.", path=file)
    if out:
        skipped = int(table["skipped"].sum())
        warnings.warn(
            f"{file}: {out:,} annotations are left out: {skipped:,} skipped, {out - skipped:,} without a grade.",
            ProbevalWarning,
            2,
        )
    if judged["time"].notna().all():
        judged = judged.sort_values("time", kind="stable")
    return Judgments.rows(
        judged["query"].tolist(),
        judged["doc"].tolist(),
        judged["grade"].to_numpy(),
        assessors=judged["assessor"].tolist() if judged["assessor"].any() else None,
        times=judged["time"].to_numpy(),
    )


def read_annotations(path: str | PathLike[str]) -> pd.DataFrame:
    """Return one row per annotation in an export of Label Studio, JSON or JSON_MIN, as listed.

    The columns are query, doc, grade (NaN if skipped or without one), assessor (the e-mail address or the number of
    the annotator), time (seconds since 1970), lead_time (the seconds that the annotation took) and skipped.

    The ids are in the data of a task, as ``query`` and ``doc`` or under the names that
    :func:`probeval.read_judgments` takes for columns. The grade is the value of the control ``grade``, or of the only
    control. A choice must be a number; one that is a word needs an alias in the labeling configuration.

    Parameters
    ----------
    path
        The export.
    """
    file = Path(path)
    tasks = parsed_json(file, read_bytes(file))
    if not isinstance(tasks, list):
        raise DataError(f"expected an array of tasks. {EXPORTS}.", path=file)
    rows = [row for place, task in enumerate(tasks, start=1) for row in _rows(task, f"task {place}", file)]
    if not rows:
        raise DataError(f"no task in it has an annotation. {EXPORTS} after annotating.", path=file)
    table = pd.DataFrame(rows, columns=list(COLUMNS), dtype=object)
    return table.assign(
        query=ids(table["query"].tolist(), "query", path=file),
        doc=ids(table["doc"].tolist(), "doc", path=file),
        **{name: table[name].astype(float) for name in ("grade", "time", "lead_time")},
        skipped=table["skipped"].astype(bool),
    )


def _rows(task: Any, where: str, path: Path) -> Iterator[tuple[Any, ...]]:
    """Yield the annotations of a task of JSON, or of a record of JSON_MIN, which has one."""
    if not isinstance(task, dict):
        raise DataError(f"{where} must be an object, got {type(task).__name__}. {EXPORTS}.", path=path)
    if "annotations" in task:
        data = member(task, "data", dict, where=where, path=path)
        for annotation in member(task, "annotations", list, where=where, path=path):
            results = member(annotation, "result", list, where=f"an annotation of {where}", path=path, default=[])
            skipped = bool(annotation.get("was_cancelled"))
            grade = None if skipped else _grade(_controls(results, where, path), where, path)
            who = annotation.get("completed_by")
            yield _row(data, annotation, grade, who, skipped, where, path)
    elif "annotation_id" in task:
        if task["annotation_id"] is not None:  # a task without annotations has a record too
            found = next((task[name] for name in NAMES["grade"] if task.get(name) not in (None, [])), None)
            grade = _grade({} if found is None else {GRADE: _values(found)}, where, path)
            yield _row(task, task, grade, task.get("annotator"), False, where, path)
    else:
        raise DataError(f"{where} has neither 'annotations' nor 'annotation_id'. {EXPORTS}.", path=path)


def _row(
    data: Mapping[str, Any],
    annotation: Mapping[str, Any],
    grade: float | None,
    who: Any,
    skipped: bool,
    where: str,
    path: Path,
) -> tuple[Any, ...]:
    pair = []
    for name in ("query", "doc"):
        found = next((key for key in NAMES[name] if key in data), None)
        if found is None:
            raise DataError(f"{where} has no {name} in its data: one of {', '.join(NAMES[name])} is needed.", path=path)
        pair.append(data[found])
    if isinstance(who, dict):
        who = who.get("email") or who.get("id")
    when = annotation.get("updated_at") or annotation.get("created_at")
    spent = annotation.get("lead_time")
    known = isinstance(spent, (int, float)) and not isinstance(spent, bool)
    if spent is not None and not (known and abs(spent) < MOST_SECONDS):
        raise DataError(f"{where}: 'lead_time' must be a number of seconds, got {spent!r:.60}.", path=path)
    return (*pair, grade, cell_text(who), _seconds(when, where, path), spent, skipped)


def _controls(results: Sequence[Any], where: str, path: Path) -> dict[str, list[Any]]:
    """The values of each control with a choice, a number or a rating."""
    found: dict[str, list[Any]] = {}
    for result in results:
        value = member(result, "value", dict, where=f"a result of {where}", path=path, default={})
        if any(kind in value for kind in VALUES):
            name = member(result, "from_name", str, where=f"a result of {where}", path=path)
            found.setdefault(name, []).extend(_values([value]))
    return found


def _values(found: Any) -> list[Any]:
    """The values in what JSON_MIN has for a control: a text, or results with a choice, a number or a rating."""
    out: list[Any] = []
    for value in found if isinstance(found, list) else [found]:
        inner = next((value[kind] for kind in VALUES if kind in value), value) if isinstance(value, dict) else value
        out += inner if isinstance(inner, list) else [inner]
    return out


def _grade(controls: Mapping[str, list[Any]], where: str, path: Path) -> float | None:
    """The grade of an annotation: the value of the control of the grade; None without one."""
    named = [name for name in NAMES["grade"] if name in controls] or list(controls)
    if not named:
        return None
    if named[0] not in NAMES["grade"] and len(named) > 1:
        raise DataError(
            f"{where} has several controls ({', '.join(named)}). Name that of the grade {GRADE!r}.", path=path
        )
    values = controls[named[0]]
    if len(values) != 1:
        raise DataError(f"{where} has {len(values)} values of {named[0]!r} in one annotation; expected one.", path=path)
    try:
        grade = float(values[0])
    except (TypeError, ValueError, OverflowError):
        grade = math.nan
    if isinstance(values[0], bool) or not math.isfinite(grade):
        raise DataError(
            f"{where}: the grade must be a number, got {str(values[0])[:60]!r}. Give such a choice an alias in the "
            'labeling configuration: <Choice value=".." alias="1"/>.',
            path=path,
        )
    return grade


def _seconds(when: Any, where: str, path: Path) -> float:
    """A time in ISO 8601 as seconds since 1970; NaN without one."""
    if when is None:
        return math.nan
    try:
        time = datetime.fromisoformat(when)
        return (time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp()
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{where}: expected a time such as 2026-03-09T22:16:08Z, got {when!r}.", path=path) from None
