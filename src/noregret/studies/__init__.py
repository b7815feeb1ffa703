"""TUNE: measure any command, keep every measurement, find the best setting.

============  =====================================================================================================
`study`       the study file: parameters, command, budget; every error with its line and key
`store`       every trial, durable and shared: documents in a table of SQLite or PostgreSQL
`session`     one call that measures trials: its plan, and its loop
`measuring`   one run of the command, and its result
`learning`    findings from the observations, and the next suggestion, as functions of the store
`page`        the report, as a file and live
`display`     the picture of a running study, and its conclusion
`running`     `tune` and `report`: workers that run trials
`function`    `minimize` and `maximize`: a Python function in place of a command
`command`     the command line
============  =====================================================================================================

Each imports from those above it only.
"""
