"""Pipeline schedules as lists of actions, one file a schedule."""
