#!/bin/sh
# Print the Python interpreter to build the environment with: $1 if given, else the first that fits.
# It must be 3.11 or newer and able to make environments (Debian keeps that in the package python3-venv).
fits='import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))'

for python in ${1:-python3 python3.11 python3.12 python3.13 python3.14}; do
    if path=$(command -v "$python") && "$path" -c "$fits" 2>/dev/null; then
        echo "$path"
        exit 0
    fi
done

{
    echo "No usable Python found."
    echo "  looked at: ${1:-python3, python3.11 to python3.14}"
    echo "  found:     $("${1:-python3}" --version 2>&1 | tail -n 1)"
    echo "  expected:  Python 3.11 or newer with the modules venv and ensurepip"
    echo "  what to do: on Debian or Ubuntu 'apt-get install python3 python3-venv'; elsewhere install Python 3.11,"
    echo "              then run 'make setup PYTHON=/path/to/python3.11'"
} >&2
exit 1
