"""Five other forecasts of a step, fitted to rows of one job, to stand beside stepcast's.

A row is a Step. Each class is fitted by `fit(rows, others)` and asked by `seconds(row)`; `rows` are
of the asked row's job, `others` are fitted rows of other jobs by the same method. Linear forms are
fitted by least squares of relative errors, with coefficients of at least 0.
"""
from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np


@dataclasses.dataclass(frozen=True)
class Step:
    """What a rival sees of a run."""
    nodes: int
    workers: int
    servers: int
    batch: float           # samples of a worker's micro-step; 0 in a bare message
    accumulation: int      # micro-steps of a step
    bytes: float           # what a worker contributes to one synchronisation
    rate: float | None     # bytes a second of the stated link
    rtt: float             # seconds; 0 where none is stated
    seconds: float
    exposed: float | None  # seconds of the step that wait for the synchronisation
    bare: bool             # a message without compute


def non_negative(columns, target):
    """Lawson and Hanson's least squares with x >= 0; of columns that say the same, the first."""
    scale = np.linalg.norm(columns, axis=0)
    used = scale > 0
    a = columns[:, used] / scale[used]
    x = np.zeros(a.shape[1])
    passive = np.zeros(a.shape[1], bool)
    for _ in range(10 * a.shape[1]):
        slope = a.T @ (target - a @ x)
        slope[passive] = -np.inf
        if passive.all() or slope.max() <= 1e-10 * np.linalg.norm(target):
            break
        # The first of those that are equally steep.
        passive[np.flatnonzero(slope >= slope.max() * (1 - 1e-9))[0]] = True
        while True:
            trial = np.zeros_like(x)
            trial[passive] = np.linalg.lstsq(a[:, passive], target, rcond=1e-10)[0]
            below = passive & (trial <= 0)
            if not below.any():
                break
            share = np.min(x[below] / np.maximum(x[below] - trial[below], 1e-300))
            x += share * (trial - x)
            passive &= x > 1e-14
            x[~passive] = 0
        x = trial
    result = np.zeros(columns.shape[1])
    result[used] = x / scale[used]
    return result


def relative_fit(features, rows):
    """Coefficients >= 0 with the least squares of relative errors."""
    seconds = np.array([row.seconds for row in rows])
    columns = np.array([features(row) for row in rows], float) / seconds[:, None]
    return non_negative(columns, np.ones(len(rows)))


class LastPoint:
    """The step at the nearest fitted scale, with the local batch that is nearest."""

    def fit(self, rows, others):
        self.rows = rows
        single = [row for row in rows if row.workers == 1]
        self.compute = relative_fit(_compute, single) if single else None

    def seconds(self, row):
        scale = min(((abs(math.log(r.workers / row.workers)), abs(math.log(r.nodes / row.nodes)))
                     for r in self.rows))
        near = [r for r in self.rows if (abs(math.log(r.workers / row.workers)),
                                         abs(math.log(r.nodes / row.nodes))) == scale]
        if not row.batch:
            size = min(abs(math.log(r.bytes / row.bytes)) for r in near)
            near = [r for r in near if abs(math.log(r.bytes / row.bytes)) == size]
            return row.bytes / near[0].bytes * _geometric(near)
        batch = min(abs(math.log(r.batch / row.batch)) for r in near)
        near = [r for r in near if abs(math.log(r.batch / row.batch)) == batch]
        seconds = _geometric(near)
        if self.compute is not None:
            seconds += np.dot(_compute(row), self.compute) - np.dot(_compute(near[0]), self.compute)
        return max(seconds, 1e-9)


class Ring:
    """Compute of a step and of a sample, alpha for each other worker, beta for each byte.

    The exchange counts between nodes, or between devices where no row leaves its node. The two
    numbers of the network come from the job's own exchanges, else from other jobs'; where nobody's
    were fitted, from what is stated: a byte goes twice, in frames of 1538 bytes on the wire that
    carry 1448, and each of the 2 (w - 1) rounds takes half a round trip.
    """

    def fit(self, rows, others):
        self.between_nodes = any(row.nodes > 1 for row in itertools.chain(rows, others))
        self.closed = False
        self.numbers = relative_fit(self._features, rows) if rows else np.zeros(4)
        if any(self._exchanges(row) for row in rows):
            return
        jobs = {}
        for row in others:
            jobs.setdefault(row.bytes, []).append(row)
        fits = [relative_fit(self._features, job) for job in jobs.values()
                if any(self._exchanges(row) for row in job)]
        self.between_nodes = self.between_nodes or not fits
        if fits:
            self.numbers[2:] = np.median(np.array(fits), axis=0)[2:]
        self.closed = not fits

    def _exchanges(self, row):
        return row.nodes > 1 if self.between_nodes else row.workers > 1

    def _features(self, row):
        exchange = (0, 0)
        if self._exchanges(row):
            w = row.workers
            exchange = (row.bytes * (w - 1) / w / (row.rate or 1), w - 1)
        return _compute(row) + exchange

    def seconds(self, row):
        numbers = self.numbers
        if self.closed and row.rate:
            numbers = np.array([*numbers[:2], 2 * 1538 / 1448, row.rtt])
        return np.dot(self._features(row), numbers)


class Optimus:
    """Peng et al.: theta0 b + theta1 + theta2 w / p + theta3 w + theta4 p, or without servers."""

    def fit(self, rows, others):
        self.numbers = relative_fit(self._features, rows)

    @staticmethod
    def _features(row):
        p = row.servers
        return _compute(row) + (row.workers / p if p else 0, row.workers, p)

    def seconds(self, row):
        return np.dot(self._features(row), self.numbers)


class PowerLaw:
    """Extra-P's form in workers: c0 + c1 w^i log2(w)^j, and a term of the samples.

    Of Extra-P's exponents those up to w, since no exchange costs more; those with the least error
    of rows left out one by one count.
    """
    EXPONENTS = [(i, j) for i in (0, 1 / 4, 1 / 3, 1 / 2, 2 / 3, 3 / 4, 1) for j in (0, 1)
                 if i or j]

    def fit(self, rows, others):
        scales = {row.workers for row in rows}
        seconds = np.array([row.seconds for row in rows])
        best = (np.inf,)
        for exponents in self.EXPONENTS if len(scales) > 1 else [None]:
            def features(row, e=exponents):
                grown = (row.workers**e[0] * math.log2(row.workers)**e[1],) if e else ()
                size = (row.bytes,) if row.bare else (row.batch * row.accumulation,)
                return (1,) + size + grown
            columns = np.array([features(row) for row in rows], float) / seconds[:, None]
            numbers = non_negative(columns, np.ones(len(rows)))
            residual = 1 - columns @ numbers
            in_use = columns[:, numbers > 0]
            leverage = np.einsum("ij,ji->i", in_use, np.linalg.pinv(in_use, rcond=1e-10))
            error = np.mean((residual / np.maximum(1 - leverage, 1e-3))**2)
            if error < best[0] * (1 - 1e-9):
                best = (error, features, numbers)
        _, self.features, self.numbers = best

    def seconds(self, row):
        return np.dot(self.features(row), self.numbers)


class Pollux:
    """Qiao et al.: seven parameters; the formulas are those of tests/calibrate/pollux_model.h.

    The published objective, by parabolas that touch its two roots from above; where a row does not
    state its exposed synchronisation, it has no part in the error of compute.
    """
    LEAST = 1e-8
    STARTS = (1.001, 3.0, 9.0)

    def fit(self, rows, others):
        self._read(rows)
        low = np.array([math.log(self.LEAST)] * 6 + [1.0])
        high = np.array([math.log(1e6)] * 6 + [10.0])
        start = np.log([0.1, 0.01, 0.1, 0.01, 0.1, 0.01, math.e])
        kept = {}
        if rows[0].bare:
            kept.update({0: self.LEAST, 1: self.LEAST})
        elif len({row.batch for row in rows}) == 1:
            known = self.accumulated[~np.isnan(self.accumulated)]
            kept[0] = (known.mean() if len(known) else min(self.step)) / 2
        nodes, workers = self.nodes, self.workers
        if not (nodes > 1).any():
            kept.update({2: self.LEAST, 3: self.LEAST})
        if not ((nodes == 1) & (workers > 1)).any():
            kept.update({4: self.LEAST, 5: self.LEAST})
        if not (workers > 2).any():
            kept.update({3: self.LEAST, 5: self.LEAST})
        for i, value in kept.items():
            start[i] = low[i] = high[i] = math.log(max(value, self.LEAST))
        self.free = np.flatnonzero(low < high)
        best = (np.inf, None)
        for gamma in self.STARTS:
            x = start.copy()
            x[6] = gamma
            found = self._descend(x, low, high)
            best = min(best, found, key=lambda fit: fit[0])
        p = best[1]
        if not (nodes > 1).any():
            p[2] = max(p[2], p[4] + math.log(1.1))
            p[3] = max(p[3], p[5] + math.log(1.1))
        self.numbers = p

    def seconds(self, row):
        return float(self.seconds_of([row])[0])

    def seconds_of(self, rows):
        """An array, at the cost of one."""
        self._read(rows)
        return np.exp(self._logs(self.numbers)[1])

    def _read(self, rows):
        self.nodes = np.array([row.nodes for row in rows])
        self.workers = np.array([row.workers for row in rows])
        self.batch = np.array([row.batch for row in rows], float)
        self.micro = np.array([row.accumulation for row in rows])
        self.step = np.array([row.seconds for row in rows])
        exposed = np.array([0 if row.workers == 1 and row.exposed is None else
                            math.nan if row.exposed is None else row.exposed for row in rows],
                           float)
        exposed[exposed >= self.step] = math.nan
        self.accumulated = (self.step - exposed) / self.micro

    def _logs(self, x):
        """ln of compute and of the step."""
        a_c, b_c, a_n, b_n, a_r, b_r = np.exp(x[:6])
        compute = a_c + b_c * self.batch
        more = np.maximum(self.workers - 2, self.LEAST)
        network = np.where(self.nodes > 1, a_n + b_n * more,
                           np.where(self.workers > 1, a_r + b_r * more, self.LEAST))
        high, low = np.maximum(compute, network), np.minimum(compute, network)
        last = high * (1 + (low / high)**x[6])**(1 / x[6])
        return np.log(compute), np.log((self.micro - 1) * compute + last)

    def _errors(self, x):
        compute, step = self._logs(x)
        known = ~np.isnan(self.accumulated)
        return (compute - np.log(self.accumulated))[known], step - np.log(self.step)

    @staticmethod
    def _penalties(x):
        return np.array([math.sqrt(1e-3) * (x[6] - 1), 0.1 * math.exp(min(x[3] - x[2], 50)),
                         0.1 * math.exp(min(x[5] - x[4], 50))])

    def objective(self, x):
        return (sum(math.sqrt(np.mean(e**2)) for e in self._errors(x) if len(e)) +
                float(np.sum(self._penalties(x)**2)))

    def _descend(self, x, low, high):
        x = np.clip(x, low, high)
        value = self.objective(x)
        for _ in range(60):
            touch = [max(math.sqrt(np.mean(e**2)), 1e-9) if len(e) else 1 for e in self._errors(x)]

            def residuals(y):
                parts = [e / math.sqrt(2 * len(e) * t) for e, t in zip(self._errors(y), touch)
                         if len(e)]
                return np.concatenate(parts + [self._penalties(y)])

            x = self._least_squares(residuals, x, low, high)
            now = self.objective(x)
            gain, value = value - now, min(value, now)
            if gain < 1e-8:
                break
        return value, x

    def _least_squares(self, residuals, x, low, high):
        """Levenberg and Marquardt's steps, kept within the bounds."""
        damping = 1e-3
        r = residuals(x)
        for _ in range(30):
            slopes = np.empty((len(r), len(self.free)))
            for column, i in enumerate(self.free):
                moved = x.copy()
                moved[i] += 1e-6 if x[i] + 1e-6 <= high[i] else -1e-6
                slopes[:, column] = (residuals(moved) - r) / (moved[i] - x[i])
            square, gradient = slopes.T @ slopes, slopes.T @ r
            # What rests on a bound and would leave it stays.
            at = x[self.free]
            stuck = ((at <= low[self.free]) & (gradient > 0)) | ((at >= high[self.free]) &
                                                                 (gradient < 0))
            open_ = np.flatnonzero(~stuck)
            if not len(open_):
                break
            before = float(r @ r)
            while damping < 1e8:
                part = square[np.ix_(open_, open_)]
                step = np.linalg.solve(part + damping * np.diag(np.diag(part) + 1e-12),
                                       -gradient[open_])
                trial = x.copy()
                trial[self.free[open_]] += np.clip(step, -3, 3)
                trial = np.clip(trial, low, high)
                moved = residuals(trial)
                if float(moved @ moved) < before:
                    break
                damping *= 4
            else:
                break
            x, r = trial, moved
            damping = max(damping / 8, 1e-9)
            if before - float(r @ r) < 1e-10 * before:
                break
        return x


def _compute(row):
    return (0, 0) if row.bare else (row.accumulation, row.accumulation * row.batch)


def _geometric(rows):
    return math.exp(sum(math.log(row.seconds) for row in rows) / len(rows))


RIVALS = {"last point": LastPoint, "ring": Ring, "Pollux": Pollux, "Optimus": Optimus,
          "power law": PowerLaw}


def forecasts(fitted, asked):
    """{rival: seconds of the asked rows}. Both are lists of (keys, step): the keys of a row name
    its job, the job on any network, and its method. A row is forecast from the first of its keys
    that has fitted rows, with those of its method beside them; without any it gets nan. The ring
    takes bare messages of one method as one job: it alone knows their bytes and rates."""
    index = {}
    for keys, step in fitted:
        for key in keys:
            index.setdefault(key, []).append((keys, step))
    answers = {}
    for name, kind in RIVALS.items():
        models, seconds = {}, []
        for keys, step in asked:
            if kind is Ring and step.bare:
                keys = keys[-1:]
            key = next((key for key in keys if key in index), None)
            if key not in models:
                models[key] = kind()
                own = index.get(key, [])
                if own or kind is Ring:
                    models[key].fit([s for _, s in own], [s for other, s in index.get(keys[-1], [])
                                                          if key not in other])
            known = key is not None or (kind is Ring and step.bare and step.rate)
            seconds.append(float(models[key].seconds(step)) if known else math.nan)
        answers[name] = seconds
    return answers
