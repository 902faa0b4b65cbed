#!/bin/sh
# tests/style/words.sh ROOT: refuses turns of phrase that make a sentence hard to read. CONTRIBUTING.md has the rule
# behind each. The check reads comments and string literals of C, comments of scripts and build files, and
# documents as a whole. It prints one line for each phrase on stderr and exits with 1 if there is any.
set -eu
cd "$1"
files=$(find README.md CONTRIBUTING.md meson.build include core backends plugins tools tests docs .ci 2>/dev/null \
  -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.md' -o -name '*.sh' -o -name 'meson.build' -o -name '*.py' \
  -o -name '*.ini' -o -path tools/dev -o -path .ci/run | grep -v '^tests/style/words' | sort)

# shellcheck disable=SC2016,SC2086
LC_ALL=C awk '
BEGIN {
  n_rules = 0
  # One rule: a pattern (a blank stands for any white space), and the advice.
  rule("[^A-Za-z_]([Ww]hoever|[Nn]obody|[Ss]omebody|[Ww]hatever|[Ww]homever)[^A-Za-z_]", "name the thing in the code that acts")
  rule("[^A-Za-z_](who|whom)[^A-Za-z_]", "name the thing in the code that acts")
  rule("[.:;] (What|Who) [a-z]", "begin the sentence with the thing in the code")
  rule("[^A-Za-z_][Ww]hat (is|are|was|were|lies|lie|stands|stand|comes|come|follows|follow|remains|belongs|goes|" \
       "happens|happened|has|have|had|does|did|do|can|cannot|must|may|should|would|will|leaves|needs|need|makes|" \
       "make|takes|take|gives|give|differs|differ|fits|fit|fails|failed|falls|fall|runs|reads|read|holds|works)[^A-Za-z_]",
       "begin with the noun: \"the operands that lie\", not \"what lies\"")
  rule("[^A-Za-z_](is|are|was|were|be) none[^A-Za-z_]", "say it positively: \"there is no device\", \"invalid\"")
  rule("[^A-Za-z_](lies|lie) otherwise[^A-Za-z_]", "say which layout: \"has another layout\"")
  rule("[^A-Za-z_]as (it|they) (lies|lie)[^A-Za-z_]", "say which layout: \"in its present layout\"")
  rule("[^A-Za-z_](has|have|had) a say[^A-Za-z_]", "code decides, reads or ignores")
  rule("[^A-Za-z_]s business[^A-Za-z_]", "say which part of the code does it")
  rule("[^A-Za-z_](would like|likes|pleases|hears|minds|believes)[^A-Za-z_]", "code does not feel: say what it reads or receives")
  rule("[^A-Za-z_]of (one|its) own accord[^A-Za-z_]", "say which part of the code does it")
}

function rule(pattern, advice) {
  n_rules++
  gsub(/ /, "[ \n]+", pattern)
  patterns[n_rules] = pattern
  advices[n_rules] = advice
}

# The sentence around a match asks: then "what" and "who" are question words.
function asks(text, at,    rest, end) {
  rest = substr(text, at)
  end = match(rest, /[.?!;]([ \n]|$)/)
  return end && substr(rest, end, 1) == "?"
}

function judge(text, first,    i, start, length_, offset, found, before, line, rest) {
  for (i = 1; i <= n_rules; i++) {
    rest = text
    offset = 0
    while (match(rest, patterns[i])) {
      start = RSTART # asks() matches, too
      length_ = RLENGTH
      found = substr(rest, start + 1, length_ - 2)
      before = substr(text, 1, offset + start)
      if (!asks(text, offset + start + 1) && !(found ~ /none$/ && before ~ /there[ \n]+$/)) {
        line = first + gsub(/\n/, "", before)
        gsub(/[ \n]+/, " ", found)
        printf "%s:%d: \"%s\": %s\n", file, line, found, advices[i]
        bad = 1
      }
      offset += start + length_ - 2
      rest = substr(rest, start + length_ - 1)
    }
  }
}

function flush_passage() {
  if (passage != "") judge("." passage "\n", passage_line)
  passage = ""
}

function add(text, line) {
  if (passage == "") passage_line = line
  passage = passage " " text "\n"
}

# C: comments run over lines; string literals are passages of their own.
function read_c(line,    at, end, text) {
  while (line != "") {
    if (in_comment) {
      end = index(line, "*/")
      text = end ? substr(line, 1, end - 1) : line
      sub(/^[ \t]*\*?[ \t]?/, "", text)
      if (text ~ /^[ \t]*$/) flush_passage()
      else add(text, FNR)
      if (!end) return
      flush_passage()
      in_comment = 0
      line = substr(line, end + 2)
    } else if (match(line, /"([^"\\]|\\.)*"|\/\*|\047([^\047\\]|\\.)+\047/)) {
      text = substr(line, RSTART, RLENGTH)
      line = substr(line, RSTART + RLENGTH)
      if (text == "/*") in_comment = 1
      else if (text ~ /^".* /) judge("." substr(text, 2, length(text) - 2) " ", FNR)
    } else return
  }
}

function read_script(line) {
  if (match(line, /(^|[ \t])#/)) add(substr(line, RSTART + RLENGTH), FNR)
  else flush_passage()
}

function read_ini(line) {
  if (match(line, /(^|[ \t])[;#]/)) add(substr(line, RSTART + RLENGTH), FNR)
  else flush_passage()
}

FNR == 1 { flush_passage(); in_comment = 0; in_code = 0; file = FILENAME }
file ~ /\.(c|h|cu|cuh)$/ { read_c($0); next }
file ~ /\.md$/ {
  gsub(/"[^"]*"/, "") # a quotation may be an example of a bad sentence
  if ($0 ~ /^[ \t]*$/) flush_passage()
  else add($0, FNR)
  next
}
file ~ /\.ini$/ { read_ini($0); next }
{ read_script($0) }
END { flush_passage(); exit bad }' $files >&2
echo "case ok: words"
