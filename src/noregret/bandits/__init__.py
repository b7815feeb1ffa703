"""THE PAPERS: algorithms with regret bounds, the parts that they are made of, and the lab that compares them.

===============  ==================================================================================================
`belief`         posteriors on arms: exact, sketched, robust, under drift, on a cluster
`decision`       rules, designs, schedules and loops; `Policy`, which asks for pulls and takes rewards
`algorithms`     the papers' algorithms, each a composition of these
`bounds`         what the theorems promise, with constants
`problems`       worlds with known truth
`testing`        the contracts as checks for one's own parts
`lab`            runs, comparisons, and the papers' figures
===============  ==================================================================================================
"""
