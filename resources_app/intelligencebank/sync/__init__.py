"""The mirror follows IntelligenceBank: runs that can be killed anywhere, and never delete on a doubt."""
