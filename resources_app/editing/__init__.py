"""Transform values with pure functions: operations, splices, diffs and merges."""
