"""Launch settings of programs: designs as flags and configuration files, and back."""
