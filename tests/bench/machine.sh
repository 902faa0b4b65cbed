# tests/bench/machine.sh: for scripts that source it. Prints the machine and the versions of a result as members of
# a JSON object. $1: the root of the repository, $2: tenon, $3: threads
machine() {
  cpu=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1 | tr -d '\\"')
  isa=$(sed -n 's/^\(flags\|Features\)[^:]*: *//p' /proc/cpuinfo | head -n 1 | tr ' ' '\n' |
    grep -E '^(avx2|fma|f16c|avx_vnni|avx512.*|amx_.*|asimd.*|sve.*|bf16|i8mm)$' | tr '\n' ' ')
  printf '"date": "%s", "cpu": "%s", "processors": %s, "isa": "%s", "memory_mib": %s, "kernel": "%s", "threads": %s, "tenon": "%s", "commit": "%s"' \
    "$(date -u +%Y-%m-%d)" "${cpu:-$(uname -m)}" "$(nproc)" "${isa% }" \
    "$(awk '/^MemTotal/ { print int($2 / 1024) }' /proc/meminfo)" "$(uname -r)" "$3" \
    "$("$2" --version | cut -d' ' -f2)" "$(git -C "$1" rev-parse --short HEAD 2>/dev/null || true)"
}

# Ends a script: prints a mistake of the command line, and the comment at the head of the script.
usage() {
  echo "$(basename "$0"): $1" >&2
  sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d' >&2
  exit 2
}
