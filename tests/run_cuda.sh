#!/usr/bin/env bash
# All that needs a GPU, in one go: the figures, then the tests marked cuda where pytest is installed.
# PYTHON names the interpreter that has torch; words after the script are parts (times modes breaks sources trace).
set -uo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
status=0
PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" "$python" tests/cuda_figures.py "$@" || status=1
if "$python" -c 'import pytest, xdist' 2>/dev/null; then
    PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" "$python" -m pytest -m cuda -n 1 -p no:cacheprovider tests || status=1
else
    echo "pytest is not installed: only the figures were made"
fi
exit $status
