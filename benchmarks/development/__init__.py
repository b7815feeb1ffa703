"""The development suite: problems on which changes of `Optimizer` are judged, none of them of `benchmarks.peers`.

``python -m benchmarks.development --help`` runs it, with another source tree beside this one if you name it.
"""
