"""THE LAB: runs of algorithms on problems, and the papers' figures made from them.

=============================  ====================================================================================
`run`, `trace`                 one run, and its record
`trials`, `summary`            many runs in parallel, and their means with intervals
`compare`, `plot`              several algorithms on one problem, paired by seed; pictures
`figure`, `claims`             the contract of a figure, and the tests of a paper's claims
`figures`                      the figures, one file per paper
`reproduce`, `page`            run and judge figures, resumable; the results as one page
`run_command`,                 the command line
`reproduce_command`
=============================  ====================================================================================
"""
