"""Benches of MX's units."""
