"""Turn texts into vectors for semantic search.

Without a model nothing here is imported: see meaning.py.
"""

import os

# Before numpy is imported. The matrices are small: a second thread costs more than it gains, in
# every process.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
