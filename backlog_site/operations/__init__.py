"""Health, doctor, backups and logs."""
