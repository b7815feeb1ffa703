"""TUNE: measure any command, keep every measurement, find the best setting.

============  =====================================================================================================
`study`       the study file: parameters, command, budget; every error with its line and key
`measuring`   one run of the command, and its result
`store`       every trial, durable and shared: Optuna's tables on SQLite or PostgreSQL
`learning`    findings from the observations, and the next suggestion, as functions of the store
`page`        the report, as a file and live
`work`        workers that run trials, and their display
`service`     studies over HTTP and JSON
`function`    `minimize` and `maximize`: a Python function in place of a command; `stored_function` keeps its trials
`command`     the command line
============  =====================================================================================================

Each imports from those above it only.
"""
