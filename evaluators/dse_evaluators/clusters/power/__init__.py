"""Power of a row of servers, and the effects of caps when it would draw too much."""
