"""Loops that shrink what is in play: arms, points of a box, or the cells of a tree."""
