"""Commands of ``dse assets`` and ``dse environments``."""
