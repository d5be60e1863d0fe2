"""Golden model of OCP's Microscaling formats."""
