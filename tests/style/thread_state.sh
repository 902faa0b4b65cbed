#!/bin/sh
# tests/style/thread_state.sh ROOT: every exported function begins with the default state of the thread (TN_ENTER or
# TN_THREAD_STATE of core/base/thread_state.h), unless the list below says why it need not.
set -eu
cd "$1"
# These neither compute nor print: getters, and those that are safe in a handler of signals.
exempt=" tn_error_text tn_status_name tn_string_free tn_version tn_text_make_plain tn_run_stop tn_session_steps
 tn_tensor_type tn_tensor_device tn_tensor_data tn_tensor_wrap tn_tensor_view tn_tensor_permute tn_call_cancel
 tn_call_operand "
# Only of the function of a model, which runs inside tn_run_open_model and the calls that compile.
exempt="$exempt tn_model_input tn_model_target tn_model_output tn_model_measured tn_model_loss tn_model_metric
 tn_model_loss_value "
names=$(cat include/tenon/*.h | sed -n 's/^TN_EXPORT [^(]*[ *]\(tn_[a-z0-9_]*\)(.*/\1/p')
[ -n "$names" ] || { echo "no exported function found" >&2; exit 1; }
# shellcheck disable=SC2046,SC2086
awk -v names="$(echo $names)" -v exempt="$(echo $exempt)" '
BEGIN {
  n = split(names, list, " ")
  for (i = 1; i <= n; i++) wanted[list[i]] = 1
  n = split(exempt, list, " ")
  for (i = 1; i <= n; i++) delete wanted[list[i]]
}
/^[a-z].*[ *]tn_[a-z0-9_]*\(/ {
  name = $0
  sub(/\(.*/, "", name)
  sub(/.*[ *]/, "", name)
  if (name in wanted) { inside = name; place = FILENAME ":" FNR }
}
inside != "" && /TN_ENTER\(|TN_THREAD_STATE;/ { begun[inside] = 1 }
inside != "" && /;$/ && !/^ / { inside = "" } # a declaration, or a body of one line
inside != "" && /^}/ {
  if (!(inside in begun)) { printf "%s: %s has neither TN_ENTER nor TN_THREAD_STATE\n", place, inside; bad = 1 }
  seen[inside] = 1
  inside = ""
}
END {
  for (name in wanted) if (!(name in seen)) { print name ": its definition was not found"; bad = 1 }
  exit bad
}' $(find core -name '*.c' | sort) >&2
echo "case ok: public calls begin with the default state of their thread"
