"""Colours and lines: the same algorithm looks the same in every picture.

The colours are those of Okabe and Ito, which colour-blind readers can tell apart.
"""

from __future__ import annotations

from itertools import product
from typing import Any
from zlib import crc32

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, RED, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#999999"
SOLID, DASHED, DOTTED, DASHDOT = "-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5))
LONG_DASHED = (0, (10, 2))

STYLES: dict[str, tuple[str, Any]] = {
    "igp-ucb": (BLUE, SOLID),
    "gp-ucb": (SKY, SOLID),
    "gp-ts": (ORANGE, SOLID),
    "gp-ei": (GREEN, SOLID),
    "gp-pi": (PURPLE, SOLID),
    "ay-ucb": (BLACK, SOLID),
    "amm-ucb": (RED, SOLID),
    "dmm-ucb": (SKY, DASHED),
    "tgp-ucb": (GREEN, DASHED),
    "ata-gp-ucb": (RED, DASHED),
    "ata-gp-ucb-nystrom": (RED, DASHED),
    "ata-gp-ucb-qff": (BLUE, DASHED),
    "mom-gp-ucb": (ORANGE, DASHDOT),
    "hvt-ucb": (BLACK, DASHED),
    "bkb": (GREEN, DASHDOT),
    "bbkb": (RED, DASHDOT),
    "mini-gp-ucb": (PURPLE, DASHDOT),
    "mini-bkb": (BLUE, DASHDOT),
    "bpe": (ORANGE, DASHED),
    "reds": (RED, DOTTED),
    "gp-threds": (PURPLE, DASHED),
    "a-gp-ucb": (PURPLE, DOTTED),
    "lb-gp-ucb": (GREEN, DOTTED),
    "rcgp-ucb": (SKY, DASHDOT),
    "cgp-ucb": (BLUE, LONG_DASHED),
    "tv-gp-ucb": (ORANGE, LONG_DASHED),
    "sw-gp-ucb": (GREEN, LONG_DASHED),
    "r-gp-ucb": (RED, LONG_DASHED),
    "wgp-ucb": (PURPLE, LONG_DASHED),
    "random": (GREY, SOLID),
}
"""Colour and line of every algorithm."""

_OTHERS = [
    style
    for style in product((BLACK, ORANGE, SKY, GREEN, BLUE, RED, PURPLE), (DOTTED, DASHDOT, DASHED, LONG_DASHED))
    if style not in STYLES.values()
]


def style(name: str) -> tuple[str, Any]:
    """The colour and the line style of an algorithm, computed from its name where it is not in ``STYLES``."""
    return STYLES.get(name) or _OTHERS[crc32(name.encode()) % len(_OTHERS)]
