"""Where sectors lie in memory, and the beats that move them."""
