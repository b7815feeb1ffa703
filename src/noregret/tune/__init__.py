"""TUNE: measure any command, keep every measurement, find the best setting.

===========================  =====================================================================================
`study`, `reading`,          a study file: what to tune, the command, when to stop; every error with its line and key
`checks`, `table`, `results`
`measure`, `keeper`          one run of the command, safely, and its result
`store`, `records`, `holder`, every trial, durable and shared: Optuna's tables on SQLite or PostgreSQL
`identity`, `database`,
`locks`, `faults`
`suggest`                    what to try next, as a function of the store
`worker`, `display`          the work, and what is seen of it
`findings`, `words`          what the measurements say
`page`, `prose`,             the report, as a file and live
`pictures`, `charts`, `watch`
`command`, `running`         the command line
===========================  =====================================================================================
"""
