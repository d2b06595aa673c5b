"""What a row of servers draws, and what becomes of them when it would draw too much."""
