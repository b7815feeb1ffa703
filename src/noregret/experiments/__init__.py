"""THE LAB: runs of algorithms on problems, and the papers' figures made from them.

=============================  ====================================================================================
`running`                      one run, many in parallel, and what is kept of them
`drawing`                      pictures of runs and of beliefs
`judging`                      the contract of a figure, its panels, and how a paper's claims are decided
`page`                         what came out, as files and as one page
`figures`                      one file per figure of a paper
`reproduce`, `progress`        all of it, resumable, and how it is going
`comparison`                   a few algorithms on one problem, paired
`command`, `comparing`         the command line
=============================  ====================================================================================
"""
