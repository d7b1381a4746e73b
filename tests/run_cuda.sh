#!/usr/bin/env bash
# All that needs a GPU, in one go: the tests marked cuda, which print their figures; without pytest the figures alone.
# PYTHON names the interpreter that has torch; words after the script are parts of tests/cuda_figures.py, to run only those.
set -uo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
if [ $# -eq 0 ] && "$python" -c 'import pytest, xdist' 2>/dev/null; then
    exec "$python" -m pytest -m cuda -n 0 -rP -p no:cacheprovider tests
fi
exec "$python" tests/cuda_figures.py "$@"
