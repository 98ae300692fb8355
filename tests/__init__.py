"""Tests, at the paths of the code that they test."""
