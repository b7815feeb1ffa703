"""What could be asked for, and what is: candidates, scores, widths, and questions that explore."""
