"""Tests of the host stand-in for the device."""
