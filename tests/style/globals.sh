#!/bin/sh
# tests/style/globals.sh LIBRARY...: refuses writable globals in the libraries, so that contexts share nothing. These
# objects of the compiler and the linker are allowed:
#   completed.*, __TMC_END__, __dso_handle   the start-up code of a shared object
#   __cpu_model, __cpu_features2             libgcc's, filled once by a constructor before anything runs
#   mpi_world, mpi_thread                    of the communicator mpi: MPI is begun and ended once in a process
#   nvtxGlobals_v3, Initialize...Nvtx2_fnptr  of NVTX's header: the profiler that watches the process
set -u
status=0
for library in "$@"; do
  found=$(objdump -t "$library" | awk '
    $0 ~ /[ \t]O[ \t]+\.t?(data|bss)[ \t]/ &&
    $NF !~ /^(completed\.[0-9]+|__TMC_END__|__dso_handle|__cpu_model|__cpu_features2|mpi_world|mpi_thread|nvtxGlobals_v3|InitializeInjectionNvtx2_fnptr)$/ { print $NF }')
  if [ -z "$found" ]; then
    echo "case ok: globals of $(basename "$library")"
  else
    echo "case failed: globals of $(basename "$library"): $(echo "$found" | tr '\n' ' ')"
    status=1
  fi
done
exit $status
