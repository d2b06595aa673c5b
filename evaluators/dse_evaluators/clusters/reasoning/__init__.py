"""What it costs to let a language model think longer or more often."""
