"""Run uvicorn with workers that are forks, so that they need not import the packages again."""

import multiprocessing

import uvicorn._subprocess
import uvicorn.main

if __name__ == "__main__":
    uvicorn._subprocess.spawn = multiprocessing.get_context("fork")
    uvicorn.main()
