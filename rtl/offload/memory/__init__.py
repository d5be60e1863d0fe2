"""Between lanes and memory: what sectors a tensor has, where they lie, and the beats that move them."""
