"""Differential fuzzer for the Ascend NPU Triton backend of PyTorch."""
