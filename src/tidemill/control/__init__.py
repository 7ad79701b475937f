"""Control: how queries are started, stopped, paused and changed, as decisions on their records."""
