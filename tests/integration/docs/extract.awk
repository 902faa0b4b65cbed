# tests/integration/docs/extract.awk: the blocks of documents, as files in the folder `out`, and a list of them:
#
#   NUMBER KIND PAGE:LINE REASON
#
# KIND is ini, sh or console, the word behind the three back quotes; lines indented by four blanks are ini where they
# begin with [section], and console where they begin with `tenon` or `tools/dev`. `word` is a command in back quotes in
# running text. REASON is that of a comment in front of the block, `<!-- not run: REASON -->`, or of one for the rest of
# the page, `<!-- not run on this page: REASON -->`, or empty.

function begin(what) {
  kind = what
  n++
  start = FNR
  reason = mark == "" && kind != "ini" ? page_mark : mark
  mark = ""
  printf "" >(out "/" n)
}
function keep(line) {
  if (in_fence && substr(line, 1, indent) ~ /^ *$/) line = substr(line, indent + 1)
  print line >(out "/" n)
}
function end() {
  close(out "/" n)
  printf "%d %s %s:%d %s\n", n, kind, FILENAME, start, reason
  kind = ""
}

FNR == 1 {
  if (kind != "") end()
  in_fence = 0
  page_mark = ""
}

/^ *```/ {
  if (kind != "") end()
  if (!in_fence && match($0, /^ *```(ini|sh|console)$/)) {
    indent = index($0, "`") - 1
    begin(substr($0, indent + 4))
  }
  in_fence = !in_fence
  next
}
in_fence { if (kind != "") keep($0); next }

# indented
kind == "ini" && !/^    ((build\/tools\/)?tenon|tools\/dev) / && (/^    / || /^$/) { keep(substr($0, 5)); next }
kind == "console" && /^    / { keep(substr($0, 5)); next }
kind != "" { end() }
/^    \[[a-z]/ { begin("ini"); keep(substr($0, 5)); next }
/^    ((build\/tools\/)?tenon|tools\/dev) / { begin("console"); keep(substr($0, 5)); next }

/^<!-- not run on this page: .* -->$/ { page_mark = substr($0, 28, length($0) - 31); next }
/^<!-- not run: .* -->$/ { mark = substr($0, 15, length($0) - 18); next }
!/^$/ { mark = "" }

{
  text = $0
  while (match(text, /`(tenon|tools\/dev) [^`]*`/)) {
    begin("word")
    keep(substr(text, RSTART + 1, RLENGTH - 2))
    end()
    text = substr(text, RSTART + RLENGTH)
  }
}
END { if (kind != "") end() }
