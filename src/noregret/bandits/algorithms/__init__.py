"""Algorithms of the papers, each a short composition of the parts in `belief` and `decision`."""

from noregret.bandits.algorithms.catoni import catoni_bpe, catoni_reds
from noregret.bandits.algorithms.contexts_and_drift import cgp_ucb, r_gp_ucb, sw_gp_ucb, tv_gp_ucb, wgp_ucb
from noregret.bandits.algorithms.domain_shrinking import bpe, gp_threds, reds
from noregret.bandits.algorithms.heavy_tails import ata_gp_ucb, tgp_ucb
from noregret.bandits.algorithms.kernelized_bandits import gp_ei, gp_pi, gp_ts, gp_ucb, igp_ucb, random
from noregret.bandits.algorithms.robust_bandits import hvt_ucb, mom_gp_ucb
from noregret.bandits.algorithms.sketching import ada_bkb, bbkb, bkb, mini_bkb, mini_gp_ucb
from noregret.bandits.algorithms.tighter_widths import amm_ucb, ay_ucb, dmm_ucb
from noregret.bandits.algorithms.unknown_constants import a_gp_ucb, lb_gp_ucb, rcgp_ucb

_BUILDERS = (
    gp_ucb,
    igp_ucb,
    gp_ts,
    gp_ei,
    gp_pi,
    ay_ucb,
    amm_ucb,
    dmm_ucb,
    tgp_ucb,
    ata_gp_ucb,
    mom_gp_ucb,
    hvt_ucb,
    catoni_reds,
    catoni_bpe,
    rcgp_ucb,
    a_gp_ucb,
    lb_gp_ucb,
    cgp_ucb,
    tv_gp_ucb,
    sw_gp_ucb,
    r_gp_ucb,
    wgp_ucb,
    bkb,
    bbkb,
    ada_bkb,
    mini_gp_ucb,
    mini_bkb,
    bpe,
    reds,
    gp_threds,
    random,
)

NAMES = {builder.__name__.replace("_", "-"): builder for builder in _BUILDERS}
"""Command-line names of the builders."""

__all__ = ["NAMES", *(builder.__name__ for builder in _BUILDERS)]
