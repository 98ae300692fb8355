"""What people and other programs read: the terminal, JUnit files."""
