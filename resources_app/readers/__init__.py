"""The readers behind the registry: one function per URI pattern."""
