#!/bin/sh
# tests/unit/backends/cuda/headers.sh SCRIPT: where the build finds CUDA's headers. A case a line.
set -u
script=$1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
failed=0
unset CUDA_PATH CUDA_HOME VIRTUAL_ENV CONDA_PREFIX PYTHONUSERBASE
HOME=$scratch/home HEADERS_ROOT=$scratch/root
export HOME HEADERS_ROOT

put() {
  for file; do mkdir -p "$(dirname "$scratch/$file")" && : >"$scratch/$file"; done
}

# $1: the case; $2: the folders expected, below the scratch folder; the rest: arguments.
finds() {
  title=$1 expected=$2
  shift 2
  found=$(sh "$script" "$@" | sed "s|^$scratch/||" | tr '\n' ' ')
  if [ "$found" = "$expected" ]; then
    echo "case ok: $title"
  else
    echo "case failed: $title: found '$found', expected '$expected'"
    failed=1
  fi
}

# The packages of a CUDA 12, of a CUDA 13, and a toolkit; $1: the folder.
put_12() { put "$1/cuda_runtime/include/cuda.h" "$1/cuda_nvrtc/include/nvrtc.h" "$1/cublas/include/cublasLt.h"; }
put_13() { put "$1/cu13/include/cuda.h" "$1/cu13/include/nvrtc.h" "$1/cu13/include/cublasLt.h"; }
put_toolkit() { put "$1/include/cuda.h" "$1/include/nvrtc.h" "$1/include/cublasLt.h"; }
expect_12() { echo "$1/cuda_runtime/include $1/cuda_nvrtc/include $1/cublas/include "; }

finds "no headers" ""
system=root/usr/local/lib/python3.11/dist-packages/nvidia
put_12 "$system"
finds "packages of the system" "$(expect_12 $system)"
user=home/.local/lib/python3.12/site-packages/nvidia
put_13 "$user"
put "$user/cudnn/include/cudnn.h" "$user/nccl/include/nccl.h"
finds "packages of the user come before the system's" "$user/cu13/include $user/cudnn/include $user/nccl/include "
own="env of one/lib/python3.11/site-packages/nvidia"
put_12 "$own"
VIRTUAL_ENV="$scratch/env of one" finds "a virtual environment, of a name with blanks" "$(expect_12 "$own")"
rm "$scratch/$own/cublas/include/cublasLt.h"
VIRTUAL_ENV="$scratch/env of one" finds "a place that lacks a header is left out" "$user/cu13/include $user/cudnn/include $user/nccl/include "
put lt/cublasLt.h
VIRTUAL_ENV="$scratch/env of one" finds "a folder that is given completes a place" "lt $(expect_12 "$own")" "$scratch/lt" /nowhere
put_toolkit root/usr/local/cuda
finds "the toolkit comes before packages" "root/usr/local/cuda/include "
put_toolkit other
CUDA_PATH=$scratch/other finds "CUDA_PATH comes before /usr/local/cuda" "other/include "
rm -r "$scratch/root/usr/local/cuda"
put_toolkit root/usr
finds "compilers look into /usr/include by themselves" ""
exit $failed
