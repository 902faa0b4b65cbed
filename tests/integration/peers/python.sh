#!/bin/sh
# python.sh MODULE SCRIPT [argument...]: runs a script with $PYTHON, or python3, which has the packages of the peers. Without
# MODULE there the test is skipped.
python=${PYTHON:-python3} module=$1
shift
"$python" -c "import $module" 2>/dev/null || {
  echo "skipped: $python has no module $module; PYTHON=/path/to/python names one that has"
  exit 77
}
exec "$python" "$@"
