"""THE OPTIMIZER: good results when nobody knows the constants.

======================  ==========================================================================================
`spaces`                what there is to choose from and what is given with it, as points of the unit cube
`fitting`               from measurements to scale, trust, kernel and noise
`choosing`              what could be asked for, and what is worth measuring
`calibration`           these steps and their order, each of them replaceable
`history`, `failures`   what was measured or has failed; which settings are hopeless, and which had bad luck
`condensing`            which points the belief is made of, when they are many
`tracker`, `asking`     the belief, kept up to date; the next point, with trials still out
`constraining`          what must hold, what is believed about it, and what to ask for under it
`comparing`             when the baseline is worth a measurement, and how much better others are
`certifying`            how far off an estimate may be, how much better others may be, and when to stop
`trials`                what was given away to be measured, and which answers have come
`alone`                 methods for one thread at a time
`checking`, `estimate`  the numbers that a user gives; what is believed about some params
`conclusions`           what is recommended, believed and certain
`showing`               measurements as frames, and where an optimizer stands in words
`optimizer`             `Optimizer`: ask, tell, fail, best, gain, done
======================  ==========================================================================================
"""
