"""What came out, as files and as one page."""
