#!/bin/sh
# python.sh MODULES SCRIPT [argument...]: runs a script with $PYTHON, or python3, which has the packages of the peers. Without
# MODULES there, as "onnx, torch", the test is skipped.
python=${PYTHON:-python3} modules=$1
shift
"$python" -c "import $modules" 2>/dev/null || {
  echo "skipped: $python does not import $modules; PYTHON=/path/to/python names one that does"
  exit 77
}
exec "$python" "$@"
