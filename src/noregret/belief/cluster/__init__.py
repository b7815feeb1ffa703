"""Arms on a cluster: blocks of them stay on dask workers, each with an ordinary posterior about it.

==================  =====================================================================================
`section`           worker side: a block of the arms, posteriors about it, and the questions it answers
`blocks`            coordinator side: an (N, d) array whose rows are on the workers, and messages to them
`belief`            the posterior: a small one here with all rewards, one about every block there, and
                    numbers per arm (a mean, a score), computed on the workers when they are read
==================  =====================================================================================

A question goes to all workers at once, with the rewards that they do not have yet. A new worker, which lacks earlier
rewards, answers None; it is then sent the small posterior, from which it makes its own.
"""
