"""THE OPTIMIZER: good results when nobody knows the constants.

=====================  ===========================================================================================
`parameters`, `space`  what there is to choose from, as points of the unit cube
`history`              what was asked for, measured, and has failed
`calibration`          the replaceable steps, and their order: from measurements to a belief
`scaling`, `fit`,      the steps: robust centre and unit; kernel and noise by marginal likelihood; how far each
`weights`, `widths`    measurement is trusted; how far to look beyond the mean
`candidates`           where to look
`optimizer`            `Optimizer`: ask, tell, fail, best
=====================  ===========================================================================================
"""
