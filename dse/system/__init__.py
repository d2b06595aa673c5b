"""Processes of the operating system, and texts that leave the program: below everything else."""
