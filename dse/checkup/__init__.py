"""What an installation can do, and how to mend what it cannot."""
