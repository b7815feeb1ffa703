"""THE OPTIMIZER: good results when nobody knows the constants.

=====================  ===========================================================================================
`parameters`, `space`  what there is to choose from, as points of the unit cube
`history`, `evidence`  what was measured, and has failed; the same as the calibration works on it
`failures`             which settings are hopeless, and which merely had bad luck
`calibration`          the replaceable steps, and their order: from measurements to a belief
`scaling`, `fit`,      the steps: robust centre and unit; kernel and noise by marginal likelihood; how far each
`weights`,             measurement is trusted;
`candidates`,          where to look;
`improvement`,         what is worth measuring;
`widths`               how far to look beyond the mean
`condensing`,          which points the belief is made of, when they are many;
`tracker`, `asking`    the belief, kept up to date; the next point, with trials still out
`optimizer`            `Optimizer`: ask, tell, fail, best
=====================  ===========================================================================================
"""
