"""Student's t for the mean of a few values, and Holm's correction; scripts/replay-tables.py uses them.

With t = sqrt(df) tan(angle) the density of Student's t becomes cos(angle) ** (df - 1), so that both the
distribution and its quantiles come from integrals of a cosine's power.
"""
import math
import statistics

STEPS = 2000  # of Simpson's rule


def cosine_power(angle, power):
    """The integral of cos ** power from 0 to this angle, at most a right one."""
    width = angle / STEPS
    inner = sum((4 if i % 2 else 2) * math.cos(i * width) ** power for i in range(1, STEPS))
    return (1 + inner + max(math.cos(angle), 0.0) ** power) * width / 3


def two_sided(t, df):
    """The probability that Student's t with so many degrees of freedom is at least as far from 0."""
    return 1 - cosine_power(math.atan(abs(t) / math.sqrt(df)), df - 1) / cosine_power(math.pi / 2, df - 1)


def quantile(df, level=0.95):
    """How far from 0 it is with the probability 1 - level."""
    whole, low, high = cosine_power(math.pi / 2, df - 1), 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        if cosine_power(middle, df - 1) < level * whole:
            low = middle
        else:
            high = middle
    return math.sqrt(df) * math.tan(low)


def interval(values):
    """Mean and 95 % interval; without an interval (NaN) of one value."""
    centre = statistics.fmean(values)
    if len(values) < 2:
        return centre, math.nan, math.nan
    half = quantile(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return centre, centre - half, centre + half


def p_value(values):
    """Two-sided, of the mean being 0; 1 of one value or of zeros alone."""
    if len(values) < 2 or not any(values):
        return 1.0
    error = statistics.stdev(values) / math.sqrt(len(values))
    return two_sided(statistics.fmean(values) / error, len(values) - 1) if error > 0 else 0.0


def holm(p_values):
    """The adjusted p-values, in the order given: each is the least level at which its claim still stands
    when all of them are tested together."""
    ret, least = [0.0] * len(p_values), 0.0
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    for rank, i in enumerate(order):
        least = max(least, min(1.0, (len(order) - rank) * p_values[i]))
        ret[i] = least
    return ret
