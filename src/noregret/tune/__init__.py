"""TUNE: measure any command, keep every measurement, find the best setting.

============  =====================================================================================================
`study`       the study file: what to tune, the command, when to stop; every error with its line and key
`measuring`   one run of the command, safely, and its result
`store`       every trial, durable and shared: Optuna's tables on SQLite or PostgreSQL
`learning`    what the measurements say, and what to try next, as a function of the store
`page`        the report, as a file and live
`work`        the work, and what is seen of it
`command`     the command line
============  =====================================================================================================

Each imports from those above it only.
"""
