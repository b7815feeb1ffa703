"""What we believe about f."""
