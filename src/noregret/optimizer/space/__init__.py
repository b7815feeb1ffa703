"""What there is to choose from: parameters, spaces of them, tables of candidates."""
