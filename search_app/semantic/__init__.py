"""Texts as vectors, so that search also finds what is meant. Nothing here is imported where there is no model: see meaning.py."""

import os

# Before numpy is imported. The matrices are small: a second thread costs more than it brings, and every process has its own.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
