"""Gist: one file for each of its encodings."""
