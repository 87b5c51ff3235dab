"""Operate the site: health, doctor, backups and logs."""
