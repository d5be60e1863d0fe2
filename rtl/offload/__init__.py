"""The offload layer: what moves blocks between memory and a DMA engine, and does not know what is in them."""
