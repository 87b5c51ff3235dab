"""What the pages of the viewer show: each answer for one person, in a number of queries that does not grow."""
