"""Arithmetic that several methods share."""
