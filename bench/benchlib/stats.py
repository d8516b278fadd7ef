"""Medians, spreads, distances. Pure: nothing is drawn at random."""

import math
import statistics


def median(values) -> float:
    """The median; not a number of no values."""
    values = list(values)
    return statistics.median(values) if values else float("nan")


def quartiles(values) -> tuple[float, float]:
    """Lower and upper quartile, ends included; of one value, that value."""
    values = list(values)
    if len(values) < 2:
        return (values[0], values[0]) if values else (float("nan"),) * 2
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def shares(weights: dict) -> dict:
    """Weights as parts of their sum."""
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()} if total else {}


def distance(left: dict, right: dict) -> float:
    """Total variation distance of two tables of weights, in percentage points."""
    left, right = shares(left), shares(right)
    names = left.keys() | right.keys()
    return 50 * sum(abs(left.get(name, 0) - right.get(name, 0)) for name in names)


def noise_floor(truth: dict, samples: int) -> float:
    """The mean distance between the truth and as many independent draws from it, in points.

    Exact: half the sum of the mean absolute deviations of binomial variables, by De Moivre.
    """
    if samples <= 0:
        return float("nan")
    return 50 * sum(mean_deviation(samples, part) for part in shares(truth).values()) / samples


def independent(weights: float, squares: float) -> int:
    """How many samples of equal weight scatter as much as these, of this sum and sum of squares.

    The program's activity is given, and the choice of samples is random. So two samples of one long
    wait are as independent as any others. Samples of different intervals are drawn separately, each
    at a random moment of its interval, and those of one are draws of threads without replacement.
    The variance of both does not exceed that of free draws of a moment and a thread, unless threads
    do the same at the same time. A profiler that samples at fixed times makes no such draws, so
    this does not hold for it.
    """
    return round(weights * weights / squares) if squares > 0 else 0


def mean_deviation(n: int, p: float) -> float:
    """The mean of |X - np| where X is binomial: 2 m C(n, m) p^m q^(n - m + 1), m = [np] + 1."""
    if not 0 < p < 1:
        return 0.0
    m = math.floor(n * p) + 1
    choose = math.lgamma(n + 1) - math.lgamma(m + 1) - math.lgamma(n - m + 1)
    return 2 * m * math.exp(choose + m * math.log(p) + (n - m + 1) * math.log1p(-p))


def quantile(values, part: float) -> float:
    """The least value that is no less than this part of all (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(math.ceil(part * len(ordered)), 1) - 1] if ordered else float("nan")
