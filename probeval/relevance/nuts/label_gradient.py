r"""Labels as one operation of PyTensor, with its gradient.

The operation goes from the worth of labels and standard normals to the log marginal likelihood of the labels and to the
logits of judged pairs. Its gradient is that of :mod:`probeval.relevance.nuts.label_normals`, step by step in reverse:
the adjoint of a value is written with a bar, here as ``d_``. Of :math:`M = B'V^{-1}B` with :math:`P = V^{-1}B`,
:math:`\bar B = P(\bar M + \bar M')` and :math:`\bar V = -P\bar M P'`; of a Cholesky factor :math:`S = RR'`,
:math:`\bar S = \frac12 R^{-T}(\Phi + \Phi')R^{-1}` with :math:`\Phi` the lower triangle of :math:`R'\bar R`, its
diagonal halved. As separate operations of PyTensor the same takes minutes to compile, and four times as long.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from probeval.arrays import Floats, Ints
from probeval.bayes import load
from probeval.relevance.nuts.label_normals import CampaignGivenLabels, LabelledQueries, Products, Setting

__all__ = ["JudgedLabels", "label_operation"]


class ForwardValues(NamedTuple):
    """The values that the gradient needs."""

    setting: Setting
    normals: Floats  # of the targets, shape (query, target)
    products: Products
    given: CampaignGivenLabels
    u: Floats
    h: Floats
    pushed: Floats  # R'^-1 times the campaign's normals


class JudgedLabels:
    """The labels of a campaign and its judged pairs, as a function of the worth and of standard normals.

    Parameters
    ----------
    labels
        The labels.
    pairs
        The judged pairs, in increasing order.
    """

    def __init__(self, labels: LabelledQueries, pairs: Ints) -> None:
        self.labels, pool = labels, labels.design.pool
        query = pool.query[pairs]
        count = np.bincount(query, minlength=len(pool.queries))
        place = np.full((len(pool.queries), int(count.max(initial=0))), -1)
        self.at = query, np.arange(len(query)) - (np.cumsum(count) - count)[query]
        place[self.at] = pairs - (np.cumsum(pool.sizes) - pool.sizes)[query]
        self.targets = labels.targets(place)
        self.rows = labels.rows[pairs]
        self._last: tuple[tuple[Floats, ...], ForwardValues] | None = None

    def state(self, *inputs: Floats) -> ForwardValues:
        """Return all values; those of the last inputs are kept for the gradient."""
        if self._last is not None and all(np.array_equal(a, b) for a, b in zip(inputs, self._last[0], strict=True)):
            return self._last[1]
        sds, slopes, own, popularity, middle, campaign, relevance = inputs
        setting, labels = Setting(sds, slopes, own, popularity), self.labels
        products = labels.products(setting, self.targets)
        given = labels.campaign(setting, products, float(middle))
        pushed = solve_triangular(given.root, campaign, lower=True, trans=1)
        u = given.mean + pushed
        normals = np.zeros(self.targets.place.shape)
        normals[self.at] = relevance
        state = ForwardValues(setting, normals, products, given, u, given.start + given.z @ u, pushed)
        self._last = tuple(np.array(x) for x in inputs), state
        return state

    def value(self, *inputs: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the log marginal likelihood, the logits of judged pairs, and the campaign's standard normals."""
        state, labels = self.state(*inputs), self.labels
        x = labels.relevance(state.products, state.h, state.normals)[self.at]
        logits = x + self.rows @ (labels.centre + state.given.spread * state.u)
        return np.array(state.given.log_marginal), logits, state.u

    def gradient(self, d_marginal: float, d_logits: Floats, *inputs: Floats) -> tuple[Floats, ...]:
        """Return the adjoints of all inputs from those of the first two values."""
        state, labels = self.state(*inputs), self.labels
        products, given = state.products, state.given
        n, total, u, h = labels.base.shape[2] - 1, products.total, state.u, state.h
        d_values = np.zeros_like(products.values)
        # Logits of judged pairs: rows g + C'V^-1(y - D h) + root z
        d_x = np.zeros_like(state.normals)
        d_x[self.at] = d_logits
        d_parameters = self.rows.T @ d_logits
        d_spread = d_parameters * u
        d_u = d_parameters * given.spread
        d_values[:, n + 2 :, n] = d_x
        d_values[:, n + 2 :, :n] = -d_x[:, :, None] * h
        d_h = -np.einsum("qt,qtn->n", d_x, products.values[:, n + 2 :, :n])
        d_left = cholesky_adjoint(products.root, d_x[:, :, None] * state.normals[:, None, :])
        d_values[:, n + 2 :, n + 2 :] = -d_left
        d_relevance = np.einsum("qij,qi->qj", products.root, d_x)[self.at]
        # h = h_0 + Z u; u = S^-1 r + R'^-1 z
        d_z, d_start = np.outer(d_h, u), d_h.copy()
        d_u = d_u + given.z.T @ d_h
        d_campaign = solve_triangular(given.root, d_u, lower=True)
        solved = solve_triangular(given.root, d_campaign, lower=True, trans=1)
        d_information = cholesky_adjoint(given.root, -np.outer(state.pushed, d_campaign))
        d_information -= np.outer(solved, given.mean)
        d_right = solved + d_marginal * given.mean
        # log p = -(log|V| + square + log|S| - r'S^-1 r) / 2
        inverse = solve_triangular(given.root, np.eye(len(u)), lower=True)
        d_information -= d_marginal / 2 * (inverse.T @ inverse + np.outer(given.mean, given.mean))
        both = d_information + d_information.T
        d_square, d_middle = -d_marginal / 2, 0.0
        d_total = np.zeros_like(total)
        if labels.level is not None:
            tau = labels.level.sd**2
            d_row = (both @ given.row + d_right * given.off) / tau
            d_off = (float(d_right @ given.row) + 2 * d_square * given.off) / tau
            d_middle = -d_off
            d_spread += labels.mean_rows * d_row
            d_z -= np.outer(total[:n, n + 1], d_row)
            d_total[:n, n + 1] = d_off * given.start - given.z @ d_row
            d_total[n, n + 1] = -d_off
            d_start += d_off * total[:n, n + 1]
        # S = I + Z'MZ, r = Z'(D'V^-1 y - M h_0), square = (y - D h_0)'V^-1 (y - D h_0)
        residual, d_residual = total[:n, n] - total[:n, :n] @ given.start, given.z @ d_right
        d_z += total[:n, :n] @ given.z @ both + np.outer(residual, d_right)
        d_total[:n, :n] += given.z @ d_information @ given.z.T
        d_total[:n, :n] += np.outer(d_square * given.start - d_residual, given.start)
        d_total[:n, n] += d_residual - 2 * d_square * given.start
        d_total[n, n] += d_square
        d_start -= total[:n, :n] @ d_residual + 2 * d_square * residual
        worth = self._of_worth(state, d_spread, d_z, d_start, d_values + d_total, d_left, -d_marginal / 2)
        return (*worth, np.array(d_middle), d_campaign, d_relevance)

    def _of_worth(
        self,
        state: ForwardValues,
        d_spread: Floats,
        d_z: Floats,
        d_start: Floats,
        d_values: Floats,
        d_left: Floats,
        d_log_det: float,
    ) -> Setting:
        """Return the adjoints of the worth of labels."""
        labels, setting, products, links = self.labels, state.setting, state.products, self.labels.links
        slopes, seen, n = setting.slopes / labels.scale, labels.seen(setting), labels.base.shape[2] - 1
        spread, n_families = state.given.spread, len(slopes)
        d_sds, d_own = np.zeros_like(setting.sds), np.zeros_like(setting.own)
        # Z and h_0
        d_tied = (d_z[links.terms] * spread[links.terms[1]]).sum(axis=1)
        d_tied += (d_start[links.terms[0]] * labels.centre[links.terms[1]]).sum(axis=1)
        d_slopes = d_tied * (1 + setting.popularity) + (d_z[links.effects] * spread[links.effects[1]]).sum(axis=1)
        d_spread[links.effects[1]] += slopes @ d_z[links.effects]
        d_spread[links.biases] += d_z[links.effects[0], links.biases]
        np.add.at(d_sds, links.effect, labels.scale * d_spread[links.effects[1]])
        np.add.at(d_own, links.bias_level, d_spread[links.biases].T)
        # B and V, from B'V^-1 B
        both = d_values + d_values.transpose(0, 2, 1)
        reached = products.solved @ both
        d_v = d_log_det * products.inverse - reached @ products.solved.transpose(0, 2, 1) / 2
        d_v *= labels.both_given
        d_columns = reached[..., n + 1 :] * labels.given[..., None]
        size = labels.grams.shape[2]
        parts = np.concatenate([labels.mean_grams[..., None], self.targets.cross], axis=3)
        by_family = d_columns.reshape(len(d_columns), n_families, size, -1)
        d_seen = np.empty(len(seen))
        d_between = d_v.reshape(-1, n_families, size, n_families, size).transpose(1, 3, 0, 2, 4)
        d_between = d_between.reshape(n_families**2, -1) @ labels.grams.reshape(len(seen), -1).T
        along = by_family.transpose(1, 0, 2, 3).reshape(n_families, -1) @ parts.reshape(len(seen), -1).T
        d_slopes += along @ seen
        for k, mine in enumerate(d_between.T.reshape(-1, n_families, n_families)):
            d_slopes += seen[k] * (mine + mine.T) @ slopes
            d_seen[k] = slopes @ mine @ slopes + slopes @ along[:, k] + float((d_left * self.targets.inner[k]).sum())
            d_own[k] += 2 * setting.own[k] * np.diag(mine)
        within = labels.places(labels.levels[: len(seen) - 1])
        d_sds[within] += 2 * (labels.share * labels.scale**2)[: len(within)] * setting.sds[within] * d_seen[:-1]
        return Setting(d_sds, d_slopes / labels.scale, d_own, d_tied * slopes)


def cholesky_adjoint(root: Floats, d_root: Floats) -> Floats:
    """Return the adjoint of symmetric matrices from that of their Cholesky factors, shape (.., n, n)."""
    inner = np.tril(root.swapaxes(-1, -2) @ np.tril(d_root))
    inner = inner + np.tril(inner, -1).swapaxes(-1, -2)
    turned = root.swapaxes(-1, -2)
    half = np.linalg.solve(turned, inner).swapaxes(-1, -2)
    return np.asarray(np.linalg.solve(turned, half)) / 2


def label_operation(judged: JudgedLabels) -> Any:
    """Return the operation of PyTensor: of the worth, the middle of cutpoints, and standard normals."""
    pt, graph = load("pytensor.tensor"), load("pytensor.graph")

    class LabelGradient(graph.op.Op):  # type: ignore[misc, name-defined]
        """The adjoints of the inputs."""

        def make_node(self, *inputs: Any) -> Any:
            inputs = tuple(pt.as_tensor(x) for x in inputs)
            return graph.basic.Apply(self, list(inputs), [x.type() for x in inputs[2:]])

        def perform(self, _: Any, inputs: Any, outputs: Any) -> None:
            for out, value in zip(outputs, judged.gradient(float(inputs[0]), *inputs[1:]), strict=True):
                out[0] = np.asarray(value)

    class Labels(graph.op.Op):  # type: ignore[misc, name-defined]
        """The log marginal likelihood of labels, the logits of judged pairs, the campaign's standard normals."""

        def make_node(self, *inputs: Any) -> Any:
            inputs = tuple(pt.as_tensor(x) for x in inputs)
            return graph.basic.Apply(self, list(inputs), [pt.dscalar(), pt.dvector(), pt.dvector()])

        def perform(self, _: Any, inputs: Any, outputs: Any) -> None:
            for out, value in zip(outputs, judged.value(*inputs), strict=True):
                out[0] = np.asarray(value)

        def L_op(self, inputs: Any, outputs: Any, d_outputs: Any) -> Any:  # noqa: N802
            d_marginal, d_logits = (
                pt.zeros_like(o) if isinstance(d.type, load("pytensor.gradient").DisconnectedType) else d
                for o, d in zip(outputs[:2], d_outputs[:2], strict=True)
            )
            return LabelGradient()(d_marginal, d_logits, *inputs)

    return Labels()
