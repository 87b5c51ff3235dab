"""Run `make run`: the supervisor and the servers that come as wheels."""
