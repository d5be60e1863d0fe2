"""Packets of all lanes."""
