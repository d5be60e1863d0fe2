"""Between host and lanes: registers, what a tensor's descriptor may be, and what it configures."""
