"""A faithful fake of IntelligenceBank: real HTTP on separate ports, with every doubt about the real one as a switch."""
