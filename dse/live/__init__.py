"""What is known and shown of a study while it runs: for commands, programs and notebooks."""
