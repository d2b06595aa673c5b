"""Edge systems: networks cut between device and server, robots, phones, microcontrollers."""
