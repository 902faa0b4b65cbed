#!/bin/sh
# embed.sh FLAG... FILE...: a C file with the flags of the compiler and the texts of the files, by their paths from the
# root (device_text.h). Flags begin with '-'.
set -eu
echo '#include "backends/cuda/modules/device_text.h"'
echo 'const char *const tn_cuda_flags[] = {'
while [ $# -gt 0 ]; do
  case $1 in
  -*) echo "  \"$1\"," && shift ;;
  *) break ;;
  esac
done
echo '  NULL};'
i=0
for file; do
  echo "static const unsigned char text_$i[] = {"
  od -An -v -tu1 "$file" | sed 's/\([0-9]\{1,\}\)/\1,/g'
  echo '0};'
  i=$((i + 1))
done
echo 'const tn_cuda_text tn_cuda_texts[] = {'
i=0
for file; do
  echo "  {\"backends/${file##*backends/}\", (const char *)text_$i},"
  i=$((i + 1))
done
echo '  {NULL, NULL}};'
