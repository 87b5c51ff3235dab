"""Pure functions from value to value: operations, splices, diffs, merges."""
