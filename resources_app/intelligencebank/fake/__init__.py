"""Fake IntelligenceBank over real HTTP on separate ports, with a switch for every unknown of the
real service.
"""
