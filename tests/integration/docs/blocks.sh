#!/bin/sh
# tests/integration/docs/blocks.sh ROOT TENON [CC...]: the blocks of README.md, CONTRIBUTING.md and docs/**/*.md are true.
#
#   ini       is accepted by `tenon config check`. A block that is no whole configuration and includes none is checked on
#             top of base.ini; where it has layers without a loss, a last layer is added. Pages of docs/plugins may use
#             the items of docs/plugins/examples. `include = photos.ini` is what `tenon init photos` writes.
#   commands  (sh, console, and in back quotes in running text): the program's own parser takes them, as it does with
#             --help behind them; `tools/dev WORD` is one of its commands.
#   sh        is run, page by page, in a folder with model.ini, photos/, novel.txt, runs/mnist and others, after the
#             script setup/PAGE, where there is one.
#
# `<!-- not run: REASON -->` in front of a block keeps it from being run, or an INI from being checked;
# `<!-- not run on this page: REASON -->` keeps all blocks behind it from being run. A case for each block; the counts stand at the
# end, and none of them may be 0.
set -u
root=$(realpath "$1") tenon=$(realpath "$2")
build=$(dirname "$(dirname "$tenon")")
shift 2
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
failed=0 n_ini=0 n_commands=0 n_run=0

# report ok|failed NAME: prints the output of a failure, too.
report() {
  echo "case $1: $2"
  [ "$1" = ok ] && return
  sed 's/^/  /' "$scratch/said"
  echo "$2" >>"$scratch/failed"
  failed=1
}

# ---- INI ----

# Whether a block is a whole configuration.
is_whole() { grep -q '^source *=' "$1" && grep -q '^inputs *=' "$1" && grep -q '^layers *=' "$1" && grep -q '^loss *=' "$1"; }

# A fragment that fits base.ini: behind layers without a loss come two more, whose result fits the loss of the base, and a
# fragment with layers has no metrics but its own.
complete_fragment() {
  awk -v own_loss="$(grep -c '^loss *=' "$1")" -v own_metrics="$(grep -c '^metrics *=' "$1")" '
    function finish() { if (open && !own_loss) print "    flatten\n    last_of_the_test: linear(10)"; open = 0 }
    /^[^ \t]/ || /^$/ { finish() }
    /^\[/ { in_model = $0 ~ /^\[model\]/ }
    in_model && /^layers *=/ { open = 1; if (!own_metrics) print "metrics =" }
    { print }
    END { finish() }' "$1"
}

# The first backend whose options a block sets, and which this build and $plugins lack.
find_missing_backend() {
  sed -n 's/^\[backend\.\(.*\)\]$/\1/p' "$1" | while read -r name; do
    # shellcheck disable=SC2086 # options
    "$tenon" inspect backend "$name" $plugins >/dev/null 2>&1 || { echo "$name" && break; }
  done
}

check_ini() { # $1: the block, $2: its place
  ini=$scratch/ini/$(basename "$1").ini
  plugins=
  if is_whole "$1" || grep -q '^include *=' "$1"; then
    cp "$1" "$ini"
  else
    { echo "include = $here/base.ini" && complete_fragment "$1"; } >"$ini"
  fi
  case $2 in docs/plugins/*) for so in "$scratch"/ini/*.so; do plugins="$plugins --plugin $so"; done ;; esac
  missing=$(find_missing_backend "$1")
  [ -z "$missing" ] || { echo "case skipped: $2: ini: this build has no backend $missing" && return; }
  # shellcheck disable=SC2086
  if (cd "$scratch/ini" && "$tenon" config check "$ini" $plugins) >"$scratch/said" 2>&1; then
    report ok "$2: ini"
  else
    report failed "$2: ini"
  fi
  n_ini=$((n_ini + 1))
}

# ---- commands ----

# The commands of `tenon` and tools/dev in a block, one a line, without comments, redirections and the other side of pipes.
# Between quotes `|`, `<` and `>` are no pipes and redirections.
list_commands() {
  sed -e ':join' -e '/\\$/{N;s/\\\n//;b join' -e '}' -e 's/^#.*//' -e 's/[0-9]*>&[0-9]*//g' -e 's/[[:space:]]#.*//' "$1" |
    sed -E ':quoted;s/("[^"|<>]*)[|<>]([^"]*")/\1_\2/;t quoted' |
    grep -oE '(^|[ (;&|])((build/tools/)?tenon|tools/dev) [^|;&<>()]*' | sed -e 's/^[ (;&|]*//' -e 's|^build/tools/||'
}

parse_dev() { # the command of tools/dev
  grep -q "^$1)\$" "$root/tools/dev" && return
  echo "tools/dev has no such command" >"$scratch/said"
  return 1
}

# In running text the last option may stand without its value.
parse_command() { # the words behind `tenon`
  case $1 in
  --help | -h | -V | --version) "$tenon" "$1" ;;
  help) "$tenon" "$@" ;;
  *) (cd "$scratch/empty" && { "$tenon" "$@" --help || { [ $kind = word ] && "$tenon" "$@" 1 --help; }; }) ;;
  esac >"$scratch/said" 2>&1
}

# Words in capitals stand for something. 1 serves everywhere.
check_command() { # $1: the command, $2: its place
  case $1 in *'['* | *'...'* | *'|'* | 'tenon '[A-Z]* | 'tenon help '[A-Z]*) return ;; esac
  words=$(printf '%s' "$1" | sed -E 's/ [A-Z]+( |$)/ 1\1/g; s/[$`{}*?~]/_/g') place=$2
  sh -nc ": $words" 2>/dev/null || { echo "$words: no words of a shell" >"$scratch/said" && report failed "$place" && return; }
  set -f
  eval "set -- $words"
  set +f
  program=$1
  shift
  n_commands=$((n_commands + 1))
  if [ "$program" = tools/dev ]; then parse_dev "$1"; else parse_command "$@"; fi && report ok "$place: $program $*" ||
    report failed "$place: $program $*"
}

# ---- running ----

make_photos() { # two classes with eight pictures each
  mkdir -p "$1/photos/cat" "$1/photos/dog"
  for i in 1 2 3 4 5 6 7 8; do
    cp "$root/tests/fuzz/seeds/jpeg/rgb.jpg" "$1/photos/cat/$i.jpg"
    cp "$root/tests/fuzz/seeds/png/rgb.png" "$1/photos/dog/$i.png"
  done
}

make_folder() { # $1: a folder with what the pages speak of, $2: the name of the page's setup
  mkdir -p "$1/runs" "$1/home/.zfunc" "$1/home/.config/fish/completions"
  make_photos "$1"
  cp "$root/tests/fuzz/seeds/jpeg/rgb.jpg" "$1/cat.jpg"
  cp -r "$1/photos/cat" "$1/holiday"
  cp "$root/docs/architecture.md" "$1/novel.txt"
  if "$tenon" inspect cuda >/dev/null 2>&1; then cat "$root/tests/devices/made_up_h200.json"; else "$tenon" doctor cpu --device-json; fi >"$1/h200.json"
  cp "$here/model.ini" "$1/model.ini"
  cp "$root"/docs/plugins/examples/*.c "$root"/docs/examples/c/*.c "$1"
  cp -r "$scratch/mnist" "$1/runs/mnist"
  mkdir -p "$1/build" && ln -s "$scratch/bin" "$1/build/tools"
  [ ! -e "$here/setup/$2" ] || (cd "$1" && PATH=$scratch/bin:$PATH sh "$here/setup/$2") || echo "setup of $2 failed"
}

run_block() { # $1: the block, $2: its place
  folder=$scratch/pages/$(echo "${2%:*}" | tr / -)
  [ -d "$folder" ] || make_folder "$folder" "$(basename "$folder" .md)" >"$scratch/said" 2>&1
  n_run=$((n_run + 1))
  if word=$(grep -oE '(^|[ (;&|])(sudo|pip|pip3|tools/dev|curl|wget) ' "$1" | head -n 1) && [ -n "$word" ]; then
    echo "it calls$word: write <!-- not run: REASON --> in front of the block" >"$scratch/said"
    report failed "$2: run"
  elif (cd "$folder" && CC=cc HOME=$folder/home LD_LIBRARY_PATH=$build PKG_CONFIG_PATH=$build/meson-uninstalled PATH=$scratch/bin:$PATH timeout 900 bash -euo pipefail "$1") >"$scratch/said" 2>&1; then
    report ok "$2: run"
  else
    report failed "$2: run"
  fi
}

# ---- all ----

prepare() {
  mkdir -p "$scratch/ini" "$scratch/empty" "$scratch/blocks" "$scratch/pages" "$scratch/bin"
  printf '#!/bin/sh\nexec "%s" "$@"\n' "$tenon" >"$scratch/bin/tenon"
  printf '#!/bin/sh\nPATH="%s"\nexec %s "$@"\n' "$PATH" "$*" >"$scratch/bin/cc"
  chmod +x "$scratch/bin/tenon" "$scratch/bin/cc"
  for source in "$root"/docs/plugins/examples/*.c; do
    name=$(basename "$source" .c)
    "$scratch/bin/cc" -shared -fPIC -I"$root/include" -o "$scratch/ini/${name%_backend}.so" "$source" || return 1
  done
  make_photos "$scratch/ini"
  (cd "$scratch/ini" && "$tenon" init photos) || return 1
  "$tenon" train "$here/model.ini" --quiet --set run.name=mnist --output "$scratch" || return 1
}

prepare "$@" >"$scratch/said" 2>&1 || { report failed "preparation"; exit 1; }
pages=$(cd "$root" && ls README.md CONTRIBUTING.md && find docs -name '*.md' | LC_ALL=C sort)
# shellcheck disable=SC2086
(cd "$root" && awk -v out="$scratch/blocks" -f "$here/extract.awk" $pages) >"$scratch/list" || exit 1

while read -r number kind place reason; do
  block=$scratch/blocks/$number
  if [ "$kind" = ini ]; then
    if [ -n "$reason" ]; then echo "case skipped: $place: ini: $reason"; else check_ini "$block" "$place"; fi
    continue
  fi
  list_commands "$block" >"$scratch/commands"
  while read -r line; do check_command "$line" "$place"; done <"$scratch/commands"
  [ "$kind" = sh ] || continue
  if [ -n "$reason" ]; then echo "case skipped: $place: run: $reason"; else run_block "$block" "$place"; fi
done <"$scratch/list"

if [ $failed -ne 0 ]; then sed 's/^/case failed: /' "$scratch/failed"; fi
echo "$n_ini configurations, $n_commands commands, $n_run blocks were run"
[ $n_ini -gt 0 ] && [ $n_commands -gt 0 ] && [ $n_run -gt 0 ] || { echo "case failed: nothing was checked"; exit 1; }
exit $failed
