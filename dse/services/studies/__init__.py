"""What is done with stored studies."""
