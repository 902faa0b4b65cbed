#!/bin/sh
# tests/style/abi.sh TREE: every struct of the public headers, and every one of its members, is pinned in
# core/plugin/abi_asserts.c: the struct by FROZEN, SIZED, HANDLE or ITEM, the member by AT. So a member that fills
# padding, which changes no size, is noticed as well.
set -u
tree=$1
list=core/plugin/abi_asserts.c
pinned=$(mktemp)
trap 'rm -f "$pinned"' EXIT

sed -n -e 's/^\(FROZEN\|SIZED\|HANDLE\|ITEM\)(\(tn_[a-z0-9_]*\),.*/\2/p' \
  -e 's/^AT(\(tn_[a-z0-9_]*\), \([a-z0-9_]*\),.*/\1.\2/p' "$tree/$list" >"$pinned"

# Prints "FILE:LINE STRUCT" and "FILE:LINE STRUCT.MEMBER" of a header.
members() {
  awk -v file="$1" '
    # The name that a declarator declares: (*name)(...), (*name)[n], name[n], name.
    function name_of(text) {
      if (match(text, /\(\*[a-z0-9_]+\)/)) return substr(text, RSTART + 2, RLENGTH - 3)
      gsub(/\[[^]]*\]/, "", text)
      sub(/[ \t]+$/, "", text)
      return match(text, /[a-z0-9_]+$/) ? substr(text, RSTART) : ""
    }
    function declare(text, parts, n, i) {
      if (text ~ /^[ \t]*$/) return
      n = text ~ /\(\*/ ? 1 : split(text, parts, ",")
      if (n == 1) parts[1] = text
      for (i = 1; i <= n; i++) printf "%s:%d %s.%s\n", file, FNR, name, name_of(parts[i])
    }
    {
      while (match($0, /\/\*[^*]*(\*[^\/][^*]*)*\*\//)) $0 = substr($0, 1, RSTART - 1) substr($0, RSTART + RLENGTH)
      if (in_comment) { if (!sub(/^.*\*\//, "")) next; in_comment = 0 }
      if (sub(/\/\*.*$/, "")) in_comment = 1
    }
    !name && match($0, /^(typedef )?struct tn_[a-z0-9_]+ \{/) {
      name = $0
      sub(/^(typedef )?struct /, "", name)
      sub(/ \{.*/, "", name)
      printf "%s:%d %s\n", file, FNR, name
      sub(/^[^{]*\{/, "")
      text = ""
    }
    name && /^\}/ { name = ""; next }
    name {
      text = text " " $0
      while ((i = index(text, ";")) > 0) { declare(substr(text, 1, i - 1)); text = substr(text, i + 1) }
    }' "$tree/$1"
}

# The macro of a struct pins item, env and struct_size.
bad=$(cd "$tree" && find include/tenon -name '*.h' | sort | while read -r header; do
  members "$header"
done | awk -v list="$list" '
  FILENAME != "-" { pinned[$1] = 1; next }
  $2 ~ /\.(item|env|struct_size)$/ { next }
  !($2 in pinned) { printf "%s: %s is not in %s\n", $1, $2, list }' "$pinned" -)

if [ -n "$bad" ]; then
  printf '%s\n' "$bad" >&2
  echo "case failed: every public struct is pinned"
  exit 1
fi
echo "case ok: every public struct is pinned"
