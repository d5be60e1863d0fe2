"""Between lanes and the stream: packets of the blocks of all lanes."""
