"""What a sparse posterior is made of: maps from points to a few features."""
