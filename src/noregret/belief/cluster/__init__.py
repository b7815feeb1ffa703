"""Arms on a cluster: blocks of them stay on dask workers, each beside an ordinary posterior about it.

==================  =====================================================================================
`section`           what a worker holds: a block of the arms, and posteriors about it
`messages`          questions to workers, past dask's scheduling
`blocks`            the arms as the coordinator sees them: an (N, d) array whose rows are elsewhere
`numbers`           one number per arm (a mean, a score), computed on the workers when its top is asked for
`belief`            the posterior: a small one here, which knows all rewards, and one about every block
==================  =====================================================================================

A question goes to all workers at once, with the rewards that they have not heard of. A worker that does not know what
came before, as it is new, says so, and is sent the small posterior, from which it makes its own.
"""
