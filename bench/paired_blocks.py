"""How far two means over the same text lie apart, with an interval that holds the true difference 95 times of 100. A
text's neighbouring tokens are alike, so its blocks are compared, as src/lab/intervals.h does of one series. Pure.
"""
import math

_NORMAL_975 = 1.959963984540054
_SMALL = (12.706204736, 4.302652730, 3.182446305, 2.776445105, 2.570581836)


def student_t975(freedom):
    """What Student's t stays below 97.5 times of 100; beyond the table its expansion about the normal distribution."""
    if freedom <= len(_SMALL):
        return _SMALL[freedom - 1]
    z, v = _NORMAL_975, freedom
    z2 = z * z
    terms = (z * (z2 + 1) / 4, z * ((5 * z2 + 16) * z2 + 3) / 96, z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384,
             z * ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160)
    return z + sum(term / v ** (i + 1) for i, term in enumerate(terms))


def difference(ours, theirs):
    """(mean, least, most) of ours less theirs; each is [[tokens, mean], ...] by block (`kl_blocks` of `troupe eval`)."""
    if [tokens for tokens, _ in ours] != [tokens for tokens, _ in theirs]:
        raise ValueError("blocks of different texts cannot be compared")
    tokens = sum(count for count, _ in ours)
    sums = [(count, count * (a - b)) for (count, a), (_, b) in zip(ours, theirs)]
    mean = sum(total for _, total in sums) / tokens
    if len(sums) < 2:
        return mean, -math.inf, math.inf
    squares = sum((total - count * mean) ** 2 for count, total in sums)
    half = student_t975(len(sums) - 1) * math.sqrt(len(sums) / (len(sums) - 1) * squares) / tokens
    return mean, mean - half, mean + half
