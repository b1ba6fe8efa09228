"""What users notice, and what satisfies them: the rope, and the measure of the goal success."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from probeval.data import Scale
from probeval.errors import SatisfactionError
from probeval.metrics import AnyMetric, Metric, PSat, PSucc
from probeval.metrics.users_file import is_users_file
from probeval.reporting import SILENT, Reporter
from probeval.scores.evaluate import as_metric
from probeval.selection import Goal

if TYPE_CHECKING:
    from probeval.satisfaction import Agreement

__all__ = ["agreement_named", "agreement_of", "as_goal_metric", "as_rope"]


def as_goal_metric(
    metric: AnyMetric, goal: Goal | str, *, mapping: str | None = None, rope: float | str = 0.0
) -> Metric:
    """The measure, or for goal success with a named mapping, P(success) by that mapping.

    Without a name, the judging takes the published mapping of the measure: see :meth:`probeval.selection.Goal.metric`.

    >>> as_goal_metric("nDCG@10", "success", mapping="DCGl@5/broad")
    PSucc(mapping="DCGl@5/broad")
    """
    measure = as_metric(metric)
    if Goal.parse(goal).kind != "success":
        return measure
    if str(rope).strip().startswith("users="):
        raise _not_of_lists(str(rope), "P(success)")
    if mapping is not None and is_users_file(mapping):
        raise SatisfactionError(
            f"{mapping}: the goal success takes a mapping by its published name. A mapping of your own is for compare, "
            "report and ropes of users."
        )
    return measure if mapping is None or measure.name == PSucc.name else PSucc(mapping=mapping)


def agreement_named(mapping: str) -> Agreement | None:
    """The preferences of the users of a mapping, by its published name or from a file; None if they are not known."""
    from probeval.satisfaction import load_agreement, published_agreements

    return load_agreement(mapping) if is_users_file(mapping) else published_agreements().get(mapping)


def agreement_of(metric: Metric | None, scale: Scale | None, mapping: str | None) -> Agreement | None:
    """The preferences of users: those of the given mapping, or the published ones of the measure; None without any."""
    from probeval.satisfaction import agreement_for

    if mapping is not None:
        return agreement_named(mapping)
    return None if metric is None or scale is None else agreement_for(metric, scale)


def _not_of_lists(rope: str, measure: str) -> SatisfactionError:
    return SatisfactionError(
        f"rope {rope.strip()}: users notice differences between the scores of two lists, not in {measure}. "
        "Give a number, such as .05."
    )


def as_rope(
    rope: float | str,
    metric: AnyMetric | None = None,
    scale: Scale | None = None,
    *,
    mapping: str | None = None,
    reporter: Reporter = SILENT,
) -> float:
    """The region of practical equivalence: the size up to which differences count as ties.

    Parameters
    ----------
    rope
        The size, at least 0; or ``"users=SHARE"``: the difference that this share of users notice, see
        :meth:`probeval.satisfaction.Agreement.noticeable`.
    metric, scale
        The measure and the scale of the grades, whose published agreement is used; None for a table of scores.
    mapping
        The name of a published agreement, or a file of users, in place of that of the measure.
    reporter
        Receives the difference that users notice, and whose users these are.

    Examples
    --------
    >>> as_rope("0.02")
    0.02
    >>> as_rope("users=.5", "CG@5", Scale.parse("fine"))
    0.3
    """
    from probeval.satisfaction import agreement_for, load_agreement, published_agreements

    text = f"{rope:g}" if isinstance(rope, float) else str(rope).strip()
    of_users = text.startswith("users=")
    try:
        size = float(text.removeprefix("users="))
    except ValueError:
        size = math.nan
    if not 0 <= size < math.inf:
        raise SatisfactionError(f"A rope is a difference of at least 0, or users=SHARE (users=.5), got {text!r}.")
    if not of_users:
        return size
    if metric is not None and as_metric(metric).name in (PSat.name, PSucc.name):
        raise _not_of_lists(text, str(metric))
    found = None
    if mapping is not None:
        found = load_agreement(mapping)
    elif metric is not None and scale is not None:
        found = agreement_for(metric, scale)
    if found is None:
        of = "a table of scores" if metric is None else f"{metric} on the scale {scale}"
        raise SatisfactionError(
            f"rope {text}: no preferences of users are published for {of}. Borrow some with --mapping (mapping=): "
            f"{', '.join(published_agreements())}; the published ones are of lists of 5 music clips."
        )
    reporter.say(found.noticeable_in_words(size))
    return found.noticeable(size)
