"""actcodec: hardware that compresses activations, its golden models, and the command line of both."""
