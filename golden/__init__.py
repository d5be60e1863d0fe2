"""The golden model: what every unit computes, in vectorised NumPy, bit for bit."""
