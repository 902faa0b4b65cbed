#!/bin/sh
# embed.sh NAME FILE: a C file with the text of FILE as the bytes of NAME.
set -eu
echo "extern const char $1[];"
echo "const char $1[] = {"
od -An -v -td1 "$2" | sed 's/\(-\{0,1\}[0-9]\{1,\}\)/\1,/g'
echo '0};'
