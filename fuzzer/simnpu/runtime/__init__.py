"""The C side of the stand-in, and how it is compiled."""
