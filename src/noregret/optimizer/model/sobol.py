"""Sobol points without ``scipy.stats``, whose import takes longer than that of everything else here.

The points equal those of ``scipy.stats.qmc.Sobol`` with the same seed. Direction numbers are those of S. Joe and F. Y.
Kuo, "Constructing Sobol sequences with better two-dimensional projections", SIAM J. Sci. Comput. 30 (2008).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from noregret.gp.posterior import Floats, Ints

BITS = 30
"""Binary digits of a coordinate. As many as in ``scipy.stats.qmc.Sobol``."""
TABLE = """
3:1 7:1,3 11:1,3,1 13:1,1,1 19:1,1,3,3 25:1,3,5,13 37:1,1,5,5,17 41:1,1,5,5,5 47:1,1,7,11,19 55:1,1,5,1,1
59:1,1,1,3,11 61:1,3,5,5,31 67:1,3,3,9,7,49 91:1,1,1,15,21,21 97:1,3,1,13,27,49 103:1,1,1,15,7,5 109:1,3,1,15,13,25
115:1,1,5,5,19,61 131:1,3,7,11,23,15,103 137:1,3,7,13,13,15,69 143:1,1,3,13,7,35,63 145:1,3,5,9,1,25,53
157:1,3,1,13,9,35,107 167:1,3,1,5,27,61,31 171:1,1,5,11,19,41,61 185:1,3,5,3,3,13,69 191:1,1,7,13,1,19,1
193:1,3,7,5,13,19,59 203:1,1,3,9,25,29,41 211:1,3,5,13,23,1,55 213:1,3,7,3,13,59,17 229:1,3,1,3,5,53,69
239:1,1,5,5,23,33,13 241:1,1,7,7,1,61,123 247:1,1,7,9,13,61,49 253:1,3,3,5,3,55,33 285:1,3,1,15,31,13,49,245
299:1,3,5,15,31,59,63,97 301:1,3,1,11,11,11,77,249 333:1,3,1,11,27,43,71,9 351:1,1,7,15,21,11,81,45
355:1,3,7,3,25,31,65,79 357:1,3,1,1,19,11,3,205 361:1,1,5,9,19,21,29,157 369:1,3,7,11,1,33,89,185
391:1,3,3,3,15,9,79,71 397:1,3,7,11,15,39,119,27 425:1,1,3,1,11,31,97,225 451:1,1,1,3,23,43,57,177
463:1,3,7,7,17,17,37,71 487:1,3,1,5,27,63,123,213 501:1,1,3,5,11,43,53,133 529:1,3,5,5,29,17,47,173,479
539:1,3,3,11,3,1,109,9,69 545:1,1,1,5,17,39,23,5,343 557:1,3,1,5,25,15,31,103,499 563:1,1,1,11,11,17,63,105,183
601:1,1,5,11,9,29,97,231,363 607:1,1,5,15,19,45,41,7,383 617:1,3,7,7,31,19,83,137,221 623:1,1,1,3,23,15,111,223,83
631:1,1,5,13,31,15,55,25,161 637:1,1,3,13,25,47,39,87,257 647:1,1,1,11,21,53,125,249,293 661:1,1,7,11,11,7,57,79,323
675:1,1,5,5,17,13,81,3,131 677:1,1,7,13,23,7,65,251,475 687:1,3,5,1,9,43,3,149,11 695:1,1,3,13,31,13,13,255,487
701:1,3,3,1,5,63,89,91,127 719:1,1,3,3,1,19,123,127,237 721:1,1,5,7,23,31,37,243,289 731:1,1,5,11,17,53,117,183,491
757:1,1,1,5,1,13,13,209,345 761:1,1,3,15,1,57,115,7,33 787:1,3,1,11,7,43,81,207,175 789:1,3,1,1,15,27,63,255,49
799:1,3,5,3,27,61,105,171,305 803:1,1,5,3,1,3,57,249,149 817:1,1,3,5,5,57,15,13,159 827:1,1,1,11,7,11,105,141,225
847:1,3,3,5,27,59,121,101,271 859:1,3,5,9,11,49,51,59,115 865:1,1,7,1,23,45,125,71,419 875:1,1,3,5,23,5,105,109,75
877:1,1,7,15,7,11,67,121,453 883:1,3,7,3,9,13,31,27,449 895:1,3,1,15,19,39,39,89,15 901:1,1,1,1,1,33,73,145,379
911:1,3,1,15,15,43,29,13,483 949:1,1,7,3,19,27,85,131,431 953:1,3,3,3,5,35,23,195,349 967:1,3,3,7,9,27,39,59,297
971:1,1,3,9,11,17,13,241,157 973:1,3,7,15,25,57,33,189,213 981:1,1,7,1,9,55,73,83,217 985:1,3,3,13,19,27,23,113,249
995:1,3,5,3,23,43,3,253,479 1001:1,1,5,5,11,5,45,117,217
"""
"""Primitive polynomial, as a binary number, and first direction numbers of each dimension from the second on."""


@lru_cache(maxsize=8)
def sobol(count: int, dimension: int, seed: int) -> Floats:
    """The first points of a scrambled Sobol sequence, (count, d)."""
    power = int(np.ceil(np.log2(max(count, 1))))
    rows = TABLE.split()
    if dimension > len(rows) + 1:
        from scipy.stats import qmc

        # seed, not rng, is the name that older scipy knows
        points = np.asarray(qmc.Sobol(dimension, seed=np.random.default_rng(seed)).random_base2(power))
    else:
        shift, directions = _scrambled(rows[: dimension - 1], np.random.default_rng(seed).spawn(1)[0])
        whole = shift[None]
        for bit in range(power):  # in the order of the Gray code, a half is the half before in reverse, one bit flipped
            whole = np.vstack([whole, whole[::-1] ^ directions[:, bit]])
        points = whole / 2.0**BITS
    points = points[:count]
    points.setflags(write=False)
    return points


def _scrambled(rows: list[str], rng: np.random.Generator) -> tuple[Ints, Ints]:
    """A random shift, (d,), and direction numbers, (d, BITS), multiplied by random lower triangular matrices."""
    plain = np.array([[1] * BITS, *map(_directions, rows)]) << np.arange(BITS)[::-1]
    size = len(plain), BITS
    shift = rng.integers(2, size=size, dtype=np.uint32) @ (1 << np.arange(BITS))
    matrices = np.tril(rng.integers(2, size=(*size, BITS), dtype=np.uint32))
    matrices[:, range(BITS), range(BITS)] = 1
    places = np.arange(BITS)[::-1]  # the most significant digit first
    digits = plain[:, None, :] >> places[:, None] & 1
    return shift, ((matrices @ digits & 1) << places[:, None]).sum(axis=1)


def _directions(row: str) -> list[int]:
    """All direction numbers of a dimension, by the recurrence that its polynomial has (Joe and Kuo, eq. 2)."""
    polynomial, _, first = row.partition(":")
    directions = [int(number) for number in first.split(",")]
    degree = len(directions)
    taps = [int(digit) for digit in f"{int(polynomial):b}"[1:]]
    while len(directions) < BITS:
        number = directions[-degree]
        for back, tap in enumerate(taps, 1):
            number ^= tap * directions[-back] << back
        directions.append(number)
    return directions
