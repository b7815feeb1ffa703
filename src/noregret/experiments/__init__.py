"""The lab: runs, their traces, tables and pictures of them."""
