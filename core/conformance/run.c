/* core/conformance/run.c: tn_conformance_run: options in, report out. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/conformance/suite.h"
#include "core/tensor/tensor.h"

/* ---- options ---- */

static tn_status wrong_filter(tn_suite *suite, const char *part) {
  return tn_failf(suite->env, TN_EINVAL,
                  "'%s' in '%s': expected OP, OP/DTYPE, OP/DTYPE/DRAW or OP/DTYPE/DRAW/gradient, as in "
                  "matmul/f32/3",
                  part, suite->options->only);
}

static tn_status read_dtype(tn_suite *suite, const char *word) {
  for (int32_t dtype = TN_I32; dtype < TN_DTYPES; dtype++)
    if (strcmp(word, tn_dtype_name(dtype)) == 0) {
      suite->filter.dtype = dtype;
      return TN_OK;
    }
  return wrong_filter(suite, word);
}

static tn_status read_draw(tn_suite *suite, const char *word) {
  char *end;
  long long draw = strtoll(word, &end, 10);
  if (*word == '\0' || *end != '\0' || draw < 0) return wrong_filter(suite, word);
  suite->filter.draw = draw;
  suite->filter.gradient = 0;
  return TN_OK;
}

static tn_status read_part(tn_suite *suite, int32_t position, const char *word) {
  tn_suite_filter *f = &suite->filter;
  if (position == 1 && strcmp(f->op, "device") == 0 && strlen(word) < sizeof f->op - sizeof "device/") {
    memcpy(f->op, "device/", sizeof "device/" - 1);
    memcpy(f->op + sizeof "device/" - 1, word, strlen(word) + 1);
    return TN_OK;
  }
  if (position == 0 && *word != '\0' && strlen(word) < sizeof f->op) {
    memcpy(f->op, word, strlen(word) + 1);
    return TN_OK;
  }
  if (position == 1) return read_dtype(suite, word);
  if (position == 2) return read_draw(suite, word);
  if (position == 3 && strcmp(word, "gradient") == 0) {
    f->gradient = 1;
    return TN_OK;
  }
  return wrong_filter(suite, word);
}

static tn_status read_filter(tn_suite *suite) {
  suite->filter = (tn_suite_filter){"", TN_ANY, -1, -1};
  if (suite->options->only == NULL) return TN_OK;
  char *rest = tn_arena_strdup(&suite->arena, suite->options->only);
  int32_t position = 0;
  if (rest == NULL) return TN_ENOMEM;
  for (char *word; (word = strsep(&rest, "/")) != NULL; position++) TN_TRY(read_part(suite, position, word));
  return TN_OK;
}

/* "matmul/f64: no double precision" */
static tn_status read_known_line(tn_suite *suite, char *line, int32_t number) {
  tn_suite_known known = {.line = tn_arena_strdup(&suite->arena, line)};
  char *colon = strchr(line, ':'), *slash = strchr(line, '/');
  if (known.line == NULL) return TN_ENOMEM;
  if (colon == NULL || slash == NULL || slash > colon || *tn_text_trim(colon + 1) == '\0')
    return tn_failf(suite->env, TN_EINVAL,
                    "line %d of what is not supported, '%s': expected OP/DTYPE: reason", number, line);
  *colon = *slash = '\0';
  known.op = tn_text_trim(line);
  known.dtype = tn_text_trim(slash + 1);
  return tn_vec_push(suite->env, &suite->known, known);
}

static tn_status read_known(tn_suite *suite) {
  if (suite->options->unsupported == NULL) return TN_OK;
  char *rest = tn_arena_strdup(&suite->arena, suite->options->unsupported);
  int32_t number = 1;
  if (rest == NULL) return TN_ENOMEM;
  for (char *line; (line = strsep(&rest, "\n")) != NULL; number++) {
    line[strcspn(line, "#\r")] = '\0';
    line = tn_text_trim(line);
    if (*line != '\0') TN_TRY(read_known_line(suite, line, number));
  }
  return TN_OK;
}

/* ---- the report ---- */

static json_t *describe_failures(const tn_suite_failure *v, size_t n) {
  json_t *list = json_array();
  for (size_t i = 0; i < n; i++)
    json_array_append_new(list, json_pack("{s:s, s:s}", "case", v[i].name, "reason", v[i].reason));
  return list;
}

static json_t *describe_stale(const tn_suite *suite) {
  json_t *list = json_array();
  for (size_t i = 0; i < suite->known.n; i++)
    if (!suite->known.v[i].met) json_array_append_new(list, json_string(suite->known.v[i].line));
  return list;
}

static json_t *describe_kernels(const tn_suite *suite) {
  json_t *list = json_array();
  for (size_t i = 0; i < suite->kernels.n; i++) {
    const tn_suite_kernel *k = &suite->kernels.v[i];
    json_array_append_new(list, json_pack("{s:s, s:s, s:I}", "name", k->name, "plugin", k->plugin, "launches",
                                          (json_int_t)k->launches));
  }
  return list;
}

static json_t *report_of(const tn_suite *suite) {
  const tn_device *device = suite->site.device;
  char bits[17];
  snprintf(bits, sizeof bits, "%016llx", (unsigned long long)suite->bits);
  return json_pack("{s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:o}", "backend", device->use->backend, "device",
                   device->target.properties.name, "bits", bits, "passed", (json_int_t)suite->passed,
                   "failed", describe_failures(suite->failed.v, suite->failed.n), "unsupported",
                   describe_failures(suite->unsupported.v, suite->unsupported.n), "stale",
                   suite->filter.op[0] != '\0' ? json_array() : describe_stale(suite), "kernels",
                   describe_kernels(suite));
}

/* The text in memory of the context. */
static tn_status take_report(const tn_suite *suite, char **text) {
  json_t *report = report_of(suite);
  char *dumped = report != NULL ? json_dumps(report, JSON_COMPACT) : NULL;
  json_decref(report);
  *text = dumped != NULL ? tn_strdup(suite->env, dumped) : NULL;
  free(dumped);
  return *text != NULL ? TN_OK : tn_failf(suite->env, TN_ENOMEM, "out of memory while reporting");
}

/* ---- the whole ---- */

static tn_status run_suite(tn_suite *suite, char **json) {
  TN_TRY(read_filter(suite));
  TN_TRY(read_known(suite));
  TN_TRY(suite->options->plugin != NULL ? tn_suite_run_plugin(suite) : tn_suite_run_core(suite));
  if (suite->passed + (int64_t)suite->failed.n + (int64_t)suite->unsupported.n == 0)
    return tn_failf(suite->env, TN_EINVAL, "'%s': there is no such case",
                    suite->options->only != NULL ? suite->options->only : suite->options->plugin);
  return take_report(suite, json);
}

/* Members that the caller's struct does not have yet are as if not set. */
static tn_status copy_options(tn_device *device, const tn_conformance_options *from,
                              tn_conformance_options *all) {
  uint32_t room = from->struct_size;
  if (room < offsetof(tn_conformance_options, begin))
    return tn_failf(device, TN_EINVAL,
                    "tn_conformance_options.struct_size is %u; set it to sizeof(tn_conformance_options)",
                    room);
  *all = (tn_conformance_options){0};
  memcpy(all, from, room < sizeof *all ? room : sizeof *all);
  return TN_OK;
}

tn_status tn_conformance_run(tn_device *device, const tn_conformance_options *given, char **json) {
  tn_conformance_options all;
  const tn_conformance_options *options = &all;
  *json = NULL;
  TN_TRY(copy_options(device, given, &all));
  tn_suite suite = {.env = &device->env, .options = options, .arena = tn_arena_new(&device->env)};
  suite.site = (tn_trial_site){&device->env, device->use->context->registry, device->use->ops, device};
  suite.bits = TN_HASH_START;
  suite.draws = options->draws > 0        ? options->draws
                : options->plugin != NULL ? TN_PLUGIN_DRAWS
                                          : TN_TRIAL_DRAWS;
  int64_t guard = device->target.guard_bytes;
  bool uncaptured = device->uncaptured;
  device->target.guard_bytes = TN_TRIAL_GUARD;
  device->uncaptured = uncaptured || options->uncaptured != 0;
  tn_status status = run_suite(&suite, json);
  device->target.guard_bytes = guard;
  device->uncaptured = uncaptured;
  tn_vec_free(suite.env, &suite.known);
  tn_vec_free(suite.env, &suite.failed);
  tn_vec_free(suite.env, &suite.unsupported);
  tn_vec_free(suite.env, &suite.kernels);
  tn_arena_free(&suite.arena);
  return status;
}
