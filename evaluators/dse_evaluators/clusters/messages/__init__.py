"""Messages of data that is not contiguous: datatypes, machines, and methods to send them."""
