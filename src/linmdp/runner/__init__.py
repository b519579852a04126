"""Running agents in environments: specs, the loop, many seeds."""
