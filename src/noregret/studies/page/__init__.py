"""The report, as a file and live."""
