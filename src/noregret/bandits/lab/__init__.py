"""THE LAB: runs of algorithms on problems, and the papers' figures made from them.

=============================  ====================================================================================
`run`                          one run
`trace`                        the results of trials: their files, and means with intervals
`trials`                       many runs, in parallel or compared, paired by seed
`plot`                         pictures of runs and of beliefs
`figure`                       the contract of a figure, and the tests of a paper's claims
`figures`                      the figures, one file per paper
`reproduce`, `page`            run and judge figures, resumable; the results as one page
`commands`                     the command line
=============================  ====================================================================================
"""
