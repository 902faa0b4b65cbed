#!/bin/sh
# tests/integration/mpi/mpich.sh [FOLDER]: builds Tenon against MPICH in FOLDER (build-mpich), beside an Open MPI that stays the
# default of the machine, and runs the tests `mpi` and `mpi: train` by its mpirun. On Debian: apt-get install mpich libmpich-dev.
#   MPICH=mpich (its package of pkg-config)   MPICH_RUN=mpirun.mpich   MESON_OPTIONS (more options of the build)
set -eu
cd "$(dirname "$0")/../../.."
build=${1:-build-mpich} package=${MPICH:-mpich} launcher=${MPICH_RUN:-mpirun.mpich}
missing() { echo "mpich.sh: there is no $1: install MPICH (on Debian: mpich libmpich-dev)" >&2; exit 69; }
launcher=$(command -v "$launcher") || missing "$launcher"
pkg-config --exists "$package" || missing "package $package of pkg-config"
# meson asks pkg-config for Open MPI first, by the name ompi-c: here this is a package with the flags of MPICH.
if [ ! -e "$build/build.ninja" ]; then
  mkdir -p "$build.pc"
  packages=$(cd "$build.pc" && pwd)
  printf 'Name: mpich\nDescription: MPICH\nVersion: %s\nLibs: %s\nCflags: %s\n' "$(pkg-config --modversion "$package")" \
    "$(pkg-config --libs "$package")" "$(pkg-config --cflags "$package")" >"$packages/ompi-c.pc"
  printf "[binaries]\nmpirun = '%s'\n[built-in options]\npkg_config_path = '%s'\n" "$launcher" "$packages" >"$packages/native.ini"
  meson setup "$build" --native-file "$packages/native.ini" -Dmpi=enabled ${MESON_OPTIONS:-}
fi
ninja -C "$build" backends/mpi/tenon-mpi.so
ldd "$build/backends/mpi/tenon-mpi.so" | grep libmpich ||
  { echo "mpich.sh: $build/backends/mpi/tenon-mpi.so is not linked with MPICH" >&2; exit 70; }
meson test -C "$build" --print-errorlogs mpi 'mpi_ train' # meson writes _ for :
