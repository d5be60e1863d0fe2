"""The codecs where activations are: in PyTorch."""
