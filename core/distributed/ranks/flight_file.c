/* core/distributed/ranks/flight_file.c: see flight_file.h. */
#include "core/distributed/ranks/flight_file.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/file/file.h"
#include "core/base/system/system.h"
#include "core/base/text/text.h"
#include "tenon/plugin/communicator.h"

/* ---- the summary ---- */

static void flight_add_call(const tn_flight *flight, uint64_t number, tn_rank_summary *s) {
  tn_flight_entry entry;
  if (s->n_calls == TN_SUMMARY_CALLS || !tn_flight_read(flight, number, &entry)) return;
  tn_summary_call *call = &s->calls[s->n_calls++];
  *call = (tn_summary_call){.number = entry.number,
                            .step = entry.step > 0 ? entry.step : 0,
                            .count = entry.count,
                            .kind = entry.kind,
                            .dtype = entry.dtype};
  memcpy(call->name, entry.name, sizeof call->name);
  memcpy(call->program, entry.program, sizeof call->program);
}

/* Half of the calls are the first ones that did not end, which others may wait for; the rest the last ones.
 */
void tn_flight_summarize(const tn_flight *flight, int32_t rank, tn_rank_summary *s) {
  tn_flight_wait wait = tn_flight_waits(flight);
  double since_s = wait.since_s, until_s = atomic_load(&flight->stopped_s);
  uint64_t begun = tn_flight_begun(flight), ended = atomic_load(&flight->ended), next;
  if (until_s == 0) until_s = tn_clock_s();
  if (ended > begun) ended = begun;
  *s = (tn_rank_summary){.rank = rank,
                         .wait = wait.kind,
                         .begun = begun,
                         .ended = ended,
                         .exchanges = atomic_load(&flight->exchanges),
                         .step = atomic_load(&flight->step)};
  if (wait.kind != TN_FLIGHT_NOTHING) s->waited_ms = (int64_t)(fmax(until_s - since_s, 0) * 1e3);
  snprintf(s->what, sizeof s->what, "%s", wait.what != NULL ? wait.what : "");
  for (next = ended + 1; next <= begun && s->n_calls < TN_SUMMARY_CALLS / 2; next++)
    flight_add_call(flight, next, s);
  uint64_t last = begun > TN_SUMMARY_CALLS / 2 ? begun - TN_SUMMARY_CALLS / 2 + 1 : 1;
  if (s->n_calls > 0 && last < next) last = next;
  for (; last <= begun; last++) flight_add_call(flight, last, s);
}

/* ---- lines ---- */

/* The system's time at 0 of tn_clock_s, in seconds since 1970. */
static double flight_epoch_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec - tn_clock_s();
}

/* Releases the line. */
static void flight_add_line(tn_text *text, json_t *line) {
  char *printed = line != NULL ? json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(16)) : NULL;
  json_decref(line);
  if (printed == NULL) text->failed = true;
  if (printed != NULL) tn_text_add(text, printed);
  tn_text_add(text, "\n");
  free(printed);
}

/* A text may be that of a file or a model, and need not be UTF-8: then only its ASCII is written. */
static json_t *flight_text(const char *text) {
  char ascii[4096];
  size_t n = 0;
  json_t *json = json_string(text);
  if (json != NULL) return json;
  for (; text[n] != '\0' && n < sizeof ascii; n++) ascii[n] = (unsigned char)text[n] < 0x80 ? text[n] : '?';
  return json_stringn(ascii, n);
}

static const char *flight_wait_name(int32_t wait) {
  static const char *const names[TN_FLIGHT_WAITS] = {"nothing", "a collective", "its device", "an exchange",
                                                     "the host"};
  return names[wait];
}

static void flight_add_summary(tn_text *text, const tn_rank_summary *s, const tn_flight_file *about) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  flight_add_line(
      text, json_pack("{s:i, s:i, s:i, s:o, s:I, s:o, s:f, s:I, s:I, s:I, s:I, s:s, s:s, s:f}", "rank",
                      (int)s->rank, "ranks", (int)about->ranks, "process", (int)about->process, "host",
                      flight_text(*about->host != '\0' ? about->host : host), "pid", (json_int_t)getpid(),
                      "failure", flight_text(about->failure), "time", flight_epoch_s() + tn_clock_s(), "step",
                      (json_int_t)s->step, "begun", (json_int_t)s->begun, "ended", (json_int_t)s->ended,
                      "exchanges", (json_int_t)s->exchanges, "waits_for", flight_wait_name(s->wait), "what",
                      s->wait != TN_FLIGHT_NOTHING ? s->what : "", "waited_s", (double)s->waited_ms / 1e3));
}

static void flight_add_entry(tn_text *text, const tn_flight_entry *e, double epoch_s) {
  json_t *line = json_pack("{s:I, s:I, s:o, s:s, s:o, s:s, s:I, s:s, s:f}", "number", (json_int_t)e->number,
                           "step", (json_int_t)e->step, "program", flight_text(e->program), "collective",
                           tn_collective_name(e->kind), "name", flight_text(e->name), "dtype",
                           tn_dtype_name(e->dtype), "count", (json_int_t)e->count, "state",
                           e->ended_s > 0 ? "ended" : "begun", "begun_s", epoch_s + e->begun_s);
  if (line != NULL && e->ended_s > 0) json_object_set_new(line, "ended_s", json_real(epoch_s + e->ended_s));
  flight_add_line(text, line);
}

/* ---- the file ---- */

static tn_status flight_make_folder(tn_env *env, const char *folder) {
  if (mkdir(folder, 0777) == 0 || errno == EEXIST) return TN_OK;
  return tn_file_fail(env, folder, "made");
}

static tn_status flight_write_text(tn_env *env, const tn_text *text, int32_t rank, const char *folder) {
  char name[32];
  if (text->failed) return TN_ENOMEM;
  snprintf(name, sizeof name, "rank%d.jsonl", (int)rank);
  char *path = tn_path_join(env, folder, name);
  tn_status status = path != NULL ? tn_file_write_atomic(env, path, text->v, text->n) : TN_ENOMEM;
  tn_release(env, path);
  return status;
}

tn_status tn_flight_write(tn_env *env, const tn_flight *flight, const tn_rank_summary *summary,
                          const tn_flight_file *about) {
  tn_text text = tn_text_new(env);
  double epoch_s = flight_epoch_s();
  tn_flight_entry entry;
  flight_add_summary(&text, summary, about);
  for (uint64_t i = tn_flight_first(flight); i <= summary->begun; i++)
    if (tn_flight_read(flight, i, &entry)) flight_add_entry(&text, &entry, epoch_s);
  tn_status status = flight_make_folder(env, about->folder);
  if (status == TN_OK) status = flight_write_text(env, &text, summary->rank, about->folder);
  tn_text_free(&text);
  return status;
}
