#!/bin/sh
# headers.sh FOLDER...: the folders of CUDA's headers, a line each: the FOLDERs that exist, and behind them what one place
# has of the rest: the toolkit, or PyPI's packages (nvidia/cu13/include; of CUDA 12 nvidia/cuda_runtime/include,
# nvidia/cuda_nvrtc/include and nvidia/cublas/include). Headers of two places are not mixed, since versions may differ.
# Prints the FOLDERs alone where no place has all, and nothing for /usr/include, where compilers look by themselves.
# HEADERS_ROOT precedes the system's folders, for tests.
set -u
root=${HEADERS_ROOT:-}
given=
for folder; do
  [ -d "$folder" ] && echo "$folder" && given="$given
$folder"
done
IFS='
' # separates the folders of lists; names may have blanks

# Whether the given folders and these have all headers.
complete() {
  for header in cuda.h nvrtc.h cublasLt.h; do
    found=
    for folder in $given "$@"; do
      [ -e "$folder/$header" ] && found=yes && break
    done
    [ -n "$found" ] || return 1
  done
}

# Ends the script if these folders have what the given ones lack.
take() {
  complete "$@" || return 0
  for folder; do
    [ "$folder" = "$root/usr/include" ] || [ ! -d "$folder" ] || echo "$folder"
  done
  exit 0
}

# The packages below a folder nvidia of site-packages. A folder of Python's that is not there is a pattern.
take_packages() {
  for packages; do
    [ -d "$packages" ] || continue
    for major in 13 14 15; do
      take "$packages/cu$major/include" "$packages/cudnn/include" "$packages/nccl/include"
    done
    take "$packages/cuda_runtime/include" "$packages/cuda_nvrtc/include" "$packages/cublas/include" "$packages/cudnn/include" \
      "$packages/nccl/include"
  done
}

for toolkit in "${CUDA_PATH:-}" "${CUDA_HOME:-}" "$root/usr/local/cuda" "$root/opt/cuda" "$root/usr"; do
  [ -n "$toolkit" ] && take "$toolkit/include"
done
for python in "${VIRTUAL_ENV:-}" "${CONDA_PREFIX:-}" "${PYTHONUSERBASE:-}" "${HOME:+$HOME/.local}" "$root/usr/local" "$root/usr"; do
  [ -n "$python" ] || continue
  take_packages "$python"/lib/python3*/site-packages/nvidia "$python"/lib/python3*/dist-packages/nvidia
done
exit 0
