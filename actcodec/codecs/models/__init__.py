"""The golden models behind the protocol of the registry (see :class:`~actcodec.codecs.mode.Mode`)."""
