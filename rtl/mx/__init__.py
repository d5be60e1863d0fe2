"""MX: the formats of OCP's Microscaling, which 32 values share a scale in."""
