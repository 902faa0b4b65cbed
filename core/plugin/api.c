/* core/plugin/api.c: the host table. Calls for errors, log and memory go to core/base, those for
 * tokenizers to core/tokenizer, all others to the functions that the handle carries (handles.h). */
#include "core/plugin/handles.h"

#include "core/base/file/file.h"
#include "core/plugin/parts.h"
#include "core/tokenizer/calls.h"

#include <stdio.h>

/* A callback that calls tn_fail has failed, also where it passes TN_OK or an unknown code. */
static tn_status failure_code(tn_status code) {
  return code > TN_OK && code <= TN_EINTERNAL ? code : TN_EINTERNAL;
}

static tn_status api_fail(const void *handle, tn_status code, const char *option, const char *format, ...) {
  va_list args;
  va_start(args, format);
  tn_status status = tn_failv(handle, failure_code(code), option, format, args);
  tn_error_name_option(handle);
  va_end(args);
  return status;
}

static void api_log(const void *handle, int32_t level, const char *format, ...) {
  char line[2048];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(line, sizeof(line), format, args);
  va_end(args);
  tn_logf(handle, level, "%s", n < 0 ? format : line);
}

static void *api_alloc(const void *handle, size_t bytes) { return tn_alloc(handle, bytes); }
static void api_free(const void *handle, void *block) { tn_release(handle, block); }

static const tn_build_ops *build_ops(tn_build *b) { return ((tn_build_host *)b)->ops; }

static void api_begin(tn_build *b, const char *op) { build_ops(b)->begin(b, op); }
static void api_arg(tn_build *b, tn_val value) { build_ops(b)->arg(b, value); }
static void api_set_int(tn_build *b, const char *name, int64_t value) {
  build_ops(b)->set_int(b, name, value);
}
static void api_set_float(tn_build *b, const char *name, double value) {
  build_ops(b)->set_float(b, name, value);
}
static void api_set_ints(tn_build *b, const char *name, int64_t n, const int64_t *values) {
  build_ops(b)->set_ints(b, name, n, values);
}
static void api_set_floats(tn_build *b, const char *name, int64_t n, const double *values) {
  build_ops(b)->set_floats(b, name, n, values);
}
static void api_set_text(tn_build *b, const char *name, const char *value) {
  build_ops(b)->set_text(b, name, value);
}
static tn_val api_end(tn_build *b) { return build_ops(b)->end(b); }
static tn_val api_result(tn_build *b, tn_val first, int32_t index) {
  return build_ops(b)->result(b, first, index);
}
static const tn_type *api_type(tn_build *b, tn_val value) { return build_ops(b)->type(b, value); }
static int32_t api_n_in(tn_build *b) { return build_ops(b)->n_in(b); }
static tn_val api_in(tn_build *b, int32_t index) { return build_ops(b)->in(b, index); }
static tn_val api_out(tn_build *b, int32_t index) { return build_ops(b)->out(b, index); }
static tn_val api_dout(tn_build *b, int32_t index) { return build_ops(b)->dout(b, index); }
static int32_t api_want(tn_build *b, int32_t index) { return build_ops(b)->want(b, index); }
static void api_yield(tn_build *b, int32_t index, tn_val value) { build_ops(b)->yield(b, index, value); }
static tn_val api_param(tn_build *b, const char *name, const tn_type *type, const char *init) {
  return build_ops(b)->param(b, name, type, init);
}
static tn_val api_state(tn_build *b, const char *name, const tn_type *type, const char *init) {
  return build_ops(b)->state(b, name, type, init);
}
static void api_commit(tn_build *b, tn_val state, tn_val now) { build_ops(b)->commit(b, state, now); }
static tn_val api_layer(tn_build *b, const char *name, const char *line, const tn_val *in, int32_t n_in) {
  return build_ops(b)->layer(b, name, line, in, n_in);
}
static tn_val api_option_value(tn_build *b, const char *option) {
  return build_ops(b)->option_value(b, option);
}
static tn_val api_counter(tn_build *b, int32_t which) { return build_ops(b)->counter(b, which); }
static uint64_t api_random_stream(tn_build *b, const char *use) { return build_ops(b)->stream(b, use); }
static int32_t api_training(tn_build *b) { return build_ops(b)->training(b); }
static int32_t api_frozen(tn_build *b, const char *name) { return build_ops(b)->frozen(b, name); }
static int32_t api_ranks(tn_build *b) { return build_ops(b)->ranks(b); }
static tn_status api_status(tn_build *b) { return build_ops(b)->status(b); }

static void api_variant(tn_query *q, const tn_variant *variant) { ((tn_query_host *)q)->variant(q, variant); }

static void api_parallel(tn_launch *l, int64_t chunks, void (*body)(void *arg, int64_t chunk), void *arg) {
  const tn_launch_host *host = (const tn_launch_host *)l;
  if (host->parallel != NULL) {
    host->parallel(&l->env, host->device, chunks, body, arg);
    return;
  }
  for (int64_t chunk = 0; chunk < chunks; chunk++) body(arg, chunk);
}

static void *api_field(tn_sample *s, int32_t field, const tn_type *type) {
  return ((tn_sample_host *)s)->field(s, field, type);
}

static int32_t api_stopping(const void *handle) { return tn_stop_asked(handle); }
static const char *api_learnt(const void *handle) {
  const tn_error_record *record = ((const tn_env *)handle)->record;
  return record != NULL ? record->learnt : NULL;
}
static int32_t api_shards(const void *handle) {
  const tn_error_record *record = ((const tn_env *)handle)->record;
  return record != NULL && record->shards > 1 ? record->shards : 1;
}

const tn_api tn_host_api = {
    .struct_size = (uint32_t)sizeof(tn_api),
    .major = TN_ABI_MAJOR,
    .minor = TN_ABI_MINOR,
    .fail = api_fail,
    .log = api_log,
    .alloc = api_alloc,
    .free = api_free,
    .begin = api_begin,
    .arg = api_arg,
    .set_int = api_set_int,
    .set_float = api_set_float,
    .set_ints = api_set_ints,
    .set_floats = api_set_floats,
    .set_text = api_set_text,
    .end = api_end,
    .result = api_result,
    .type = api_type,
    .n_in = api_n_in,
    .in = api_in,
    .out = api_out,
    .dout = api_dout,
    .want = api_want,
    .yield = api_yield,
    .param = api_param,
    .state = api_state,
    .commit = api_commit,
    .layer = api_layer,
    .option_value = api_option_value,
    .counter = api_counter,
    .random_stream = api_random_stream,
    .training = api_training,
    .ranks = api_ranks,
    .status = api_status,
    .variant = api_variant,
    .parallel = api_parallel,
    .field = api_field,
    .make_folder = tn_folder_make_private,
    .frozen = api_frozen,
    .stopping = api_stopping,
    .tokenizer_open = tn_host_tokenizer_open,
    .tokenizer_open_text = tn_host_tokenizer_open_text,
    .tokenizer_of_characters = tn_host_tokenizer_of_characters,
    .tokenizer_close = tn_host_tokenizer_close,
    .tokenizer_json = tn_host_tokenizer_json,
    .tokenizer_size = tn_host_tokenizer_size,
    .tokenizer_id = tn_host_tokenizer_id,
    .tokenizer_token = tn_host_tokenizer_token,
    .tokenizer_encode = tn_host_tokenizer_encode,
    .tokenizer_decode = tn_host_tokenizer_decode,
    .token_stream_open = tn_host_token_stream_open,
    .token_stream_next = tn_host_token_stream_next,
    .token_stream_end = tn_host_token_stream_end,
    .token_stream_close = tn_host_token_stream_close,
    .tokenizer_encode_all = tn_host_tokenizer_encode_all,
    .learnt = api_learnt,
    .part_open = tn_host_part_open,
    .shards = api_shards,
    .wrap = tn_wrap,
};
