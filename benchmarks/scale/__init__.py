"""What an event costs as something grows: the rate, the window, the keys, the queries."""
