"""Packets of lanes whose modes have streams instead of blocks."""
