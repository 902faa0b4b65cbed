#!/bin/sh
# tests/style/quotes.sh FOLDER [EXAMPLES]: every block of C on the pages of a folder is part, line for line, of one of
# the examples (FOLDER/examples), which other tests build and use.
set -eu
cd "$1"
examples=${2:-examples}
status=0
for page in *.md; do
  if awk '
    FILENAME ~ /\.c$/ { text[FILENAME] = text[FILENAME] $0 "\n"; next }
    /^```c$/ { in_block = 1; start = FNR; block = ""; next }
    /^```$/ && in_block {
      in_block = 0
      quoted = 0
      for (file in text) if (index(text[file], block)) quoted = 1
      if (!quoted) { printf "%s:%d: this stands in no example\n", FILENAME, start; bad = 1 }
    }
    in_block { block = block $0 "\n" }
    END { exit bad }' "$examples"/*.c "$page" >&2; then
    echo "case ok: quotes of $page"
  else
    echo "case failed: quotes of $page"
    status=1
  fi
done
exit $status
