"""Campaigns: programs in isolated processes, verdicts in a store, findings confirmed, shrunk and filed."""
