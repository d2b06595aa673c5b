"""Power oversubscription of a row of servers, with clock caps above power thresholds."""
