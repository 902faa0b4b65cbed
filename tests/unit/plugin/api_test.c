/* The host table: what every entry ends in. */
#include "tests/support/check_status.h"

#include "core/plugin/handles.h"

static test_env B;

static int set_up(void **state) {
  (void)state;
  test_env_start(&B);
  B.env.api = &tn_host_api;
  return 0;
}

static void fail_leaves_code_option_and_text(void **state) {
  (void)state;
  tn_status status = tn_fail(&B, TN_EUNSUPPORTED, "stride", "stride %d is odd", 3);
  assert_int_equal(status, TN_EUNSUPPORTED);
  assert_int_equal(B.record.code, TN_EUNSUPPORTED);
  assert_string_equal(B.record.option, "stride");
  assert_string_equal(tn_error_text(&B), "stride 3 is odd");
}

static void fail_never_returns_success(void **state) {
  (void)state;
  assert_int_equal(tn_fail(&B, TN_OK, NULL, "forgotten"), TN_EINTERNAL);
  assert_int_equal(tn_fail(&B, -5, NULL, "odd"), TN_EINTERNAL);
  assert_int_equal(tn_fail(&B, 4711, NULL, "odd"), TN_EINTERNAL);
}

static void log_reaches_the_sink(void **state) {
  (void)state;
  tn_env_log(&B, TN_LOG_WARN, "%d files", 7);
  assert_string_equal(B.log, "7 files\n");
}

static void memory_is_zeroed_and_given_back(void **state) {
  (void)state;
  char *block = tn_new(&B, 100);
  for (int i = 0; i < 100; i++) assert_int_equal(block[i], 0);
  tn_delete(&B, block);
  tn_delete(&B, NULL);
  assert_int_equal(B.live, 0);
  test_env_allow(&B, 0);
  assert_null(tn_new(&B, 1));
  assert_int_equal(B.record.code, TN_ENOMEM);
}

/* ---- handles ---- */

static int calls;
static char last[32];

static void seen(const char *what) {
  calls++;
  snprintf(last, sizeof(last), "%s", what);
}

static const tn_type scalar = {TN_F32, 0, {0}};
static void on_begin(tn_build *b, const char *op) { (void)b, seen(op); }
static void on_arg(tn_build *b, tn_val v) { (void)b, (void)v, seen("arg"); }
static void on_set_int(tn_build *b, const char *n, int64_t v) { (void)b, (void)n, (void)v, seen("set_int"); }
static void on_set_float(tn_build *b, const char *n, double v) {
  (void)b, (void)n, (void)v, seen("set_float");
}
static void on_set_ints(tn_build *b, const char *name, int64_t n, const int64_t *v) {
  (void)b, (void)name, (void)n, (void)v, seen("set_ints");
}
static void on_set_floats(tn_build *b, const char *name, int64_t n, const double *v) {
  (void)b, (void)name, (void)n, (void)v, seen("set_floats");
}
static void on_set_text(tn_build *b, const char *n, const char *v) {
  (void)b, (void)n, (void)v, seen("set_text");
}
static tn_val on_end(tn_build *b) { return (void)b, seen("end"), 11; }
static tn_val on_result(tn_build *b, tn_val v, int32_t i) { return (void)b, seen("result"), v + (tn_val)i; }
static const tn_type *on_type(tn_build *b, tn_val v) { return (void)b, (void)v, seen("type"), &scalar; }
static int32_t on_n_in(tn_build *b) { return (void)b, seen("n_in"), 2; }
static tn_val on_in(tn_build *b, int32_t i) { return (void)b, seen("in"), 20 + (tn_val)i; }
static tn_val on_out(tn_build *b, int32_t i) { return (void)b, seen("out"), 30 + (tn_val)i; }
static tn_val on_dout(tn_build *b, int32_t i) { return (void)b, seen("dout"), 40 + (tn_val)i; }
static int32_t on_want(tn_build *b, int32_t i) { return (void)b, seen("want"), i; }
static void on_yield(tn_build *b, int32_t i, tn_val v) { (void)b, (void)i, (void)v, seen("yield"); }
static tn_val on_param(tn_build *b, const char *n, const tn_type *t, const char *i) {
  return (void)b, (void)n, (void)t, (void)i, seen("param"), 50;
}
static tn_val on_state(tn_build *b, const char *n, const tn_type *t, const char *i) {
  return (void)b, (void)n, (void)t, (void)i, seen("state"), 51;
}
static void on_commit(tn_build *b, tn_val s, tn_val v) { (void)b, (void)s, (void)v, seen("commit"); }
static tn_val on_layer(tn_build *b, const char *n, const char *l, const tn_val *in, int32_t k) {
  return (void)b, (void)n, (void)l, (void)in, seen("layer"), 60 + (tn_val)k;
}
static tn_val on_option_value(tn_build *b, const char *o) { return (void)b, seen(o), 70; }
static tn_val on_counter(tn_build *b, int32_t w) { return (void)b, seen("counter"), 80 + (tn_val)w; }
static uint64_t on_stream(tn_build *b, const char *use) { return (void)b, seen(use), 1ull << 40; }
static int32_t on_training(tn_build *b) { return (void)b, seen("training"), 1; }
static int32_t on_ranks(tn_build *b) { return (void)b, seen("ranks"), 8; }
static int32_t on_frozen(tn_build *b, const char *name) { return (void)b, seen(name), 1; }
static tn_status on_status(tn_build *b) { return (void)b, seen("status"), TN_EINVAL; }

static const tn_build_ops build_ops = {
    on_begin,   on_arg,    on_set_int,  on_set_float, on_set_ints, on_set_floats, on_set_text,
    on_end,     on_result, on_type,     on_n_in,      on_in,       on_out,        on_dout,
    on_want,    on_yield,  on_param,    on_state,     on_commit,   on_layer,      on_option_value,
    on_counter, on_stream, on_training, on_ranks,     on_status,   on_frozen};

#define ENDS_IN(call, name)      ((call), assert_string_equal(last, name))
#define GIVES(call, value, name) (assert_int_equal((call), (value)), assert_string_equal(last, name))

static void the_emitter_goes_to_the_table_of_its_builder(void **state) {
  (void)state;
  tn_build_host host = {.pub = {.env = B.env}, .ops = &build_ops};
  tn_build *b = &host.pub;
  tn_val values[2] = {1, 2};
  calls = 0;
  ENDS_IN(tn_op_begin(b, "relu"), "relu");
  ENDS_IN(tn_op_arg(b, 1), "arg");
  ENDS_IN(tn_op_set_int(b, "n", 1), "set_int");
  ENDS_IN(tn_op_set_float(b, "n", 1), "set_float");
  ENDS_IN(tn_op_set_ints(b, "n", 0, NULL), "set_ints");
  ENDS_IN(tn_op_set_floats(b, "n", 0, NULL), "set_floats");
  ENDS_IN(tn_op_set_text(b, "n", "x"), "set_text");
  GIVES(tn_op_end(b), 11, "end");
  GIVES(tn_op_result(b, 11, 1), 12, "result");
  GIVES(tn_val_type(b, 11)->dtype, TN_F32, "type");
  GIVES(tn_build_n_in(b), 2, "n_in");
  GIVES(tn_build_in(b, 1), 21, "in");
  GIVES(tn_build_out(b, 1), 31, "out");
  GIVES(tn_build_out_grad(b, 1), 41, "dout");
  GIVES(tn_build_wants_grad(b, 1), 1, "want");
  ENDS_IN(tn_build_yield(b, 0, 1), "yield");
  GIVES(tn_build_param(b, "w", &scalar, "zeros"), 50, "param");
  GIVES(tn_build_state(b, "s", &scalar, "zeros"), 51, "state");
  ENDS_IN(tn_build_commit(b, 1, 2), "commit");
  GIVES(tn_build_layer(b, "fc", "linear(3)", values, 2), 62, "layer");
  GIVES(tn_build_option_value(b, "lr"), 70, "lr");
  GIVES(tn_build_counter(b, TN_UPDATES), 81, "counter");
  assert_true(tn_build_random_stream(b, "mask") == 1ull << 40);
  GIVES(tn_build_training(b), 1, "training");
  GIVES(tn_build_ranks(b), 8, "ranks");
  GIVES(tn_build_status(b), TN_EINVAL, "status");
  GIVES(tn_build_frozen(b, "weight"), 1, "weight");
  assert_int_equal(calls, (int)(sizeof(tn_build_ops) / sizeof(void (*)(void))));
}

static int variants;
static void on_variant(tn_query *q, const tn_variant *v) {
  (void)q;
  variants += v->id;
}

static void a_query_collects_variants(void **state) {
  (void)state;
  tn_query_host host = {.pub = {.env = B.env}, .variant = on_variant};
  const tn_variant variant = {.struct_size = sizeof(variant), .id = 5};
  variants = 0;
  tn_add_variant(&host.pub, &variant);
  tn_add_variant(&host.pub, &variant);
  assert_int_equal(variants, 10);
}

static void add_chunk(void *arg, int64_t chunk) { *(int64_t *)arg += chunk + 1; }
static void team(tn_env *env, void *device, int64_t chunks, void (*body)(void *arg, int64_t chunk),
                 void *arg) {
  (void)env;
  *(int *)device += 1;
  for (int64_t i = chunks; i-- > 0;) body(arg, i);
}

static void parallel_runs_in_order_without_a_team(void **state) {
  (void)state;
  tn_launch_host host = {.pub = {.env = B.env}};
  int64_t sum = 0;
  tn_parallel(&host.pub, 4, add_chunk, &sum);
  assert_int_equal(sum, 10);
  tn_parallel(&host.pub, 0, add_chunk, &sum);
  assert_int_equal(sum, 10);
}

static void parallel_goes_to_the_devices_team(void **state) {
  (void)state;
  int device = 0;
  tn_launch_host host = {.pub = {.env = B.env}, .parallel = team, .device = &device};
  int64_t sum = 0;
  tn_parallel(&host.pub, 4, add_chunk, &sum);
  assert_int_equal(sum, 10);
  assert_int_equal(device, 1);
}

static float place[4];
static void *on_field(tn_sample *s, int32_t field, const tn_type *type) {
  (void)s;
  (void)type;
  return &place[field];
}

static void a_sample_says_where_its_fields_go(void **state) {
  (void)state;
  tn_sample_host host = {.pub = {.env = B.env}, .field = on_field};
  assert_ptr_equal(tn_sample_field(&host.pub, 2, NULL), &place[2]);
}

static void no_entry_of_the_table_is_empty(void **state) {
  (void)state;
  assert_int_equal(tn_host_api.struct_size, sizeof(tn_api));
  assert_int_equal(tn_host_api.major, TN_ABI_MAJOR);
  assert_int_equal(tn_host_api.minor, TN_ABI_MINOR);
  for (size_t at = offsetof(tn_api, fail); at < sizeof(tn_api); at += sizeof(void *)) {
    const void *entry;
    memcpy(&entry, (const char *)&tn_host_api + at, sizeof(entry));
    assert_non_null(entry);
  }
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup(f, set_up)
  const struct CMUnitTest tests[] = {
      CASE(fail_leaves_code_option_and_text),
      CASE(fail_never_returns_success),
      CASE(log_reaches_the_sink),
      CASE(memory_is_zeroed_and_given_back),
      CASE(the_emitter_goes_to_the_table_of_its_builder),
      CASE(a_query_collects_variants),
      CASE(parallel_runs_in_order_without_a_team),
      CASE(parallel_goes_to_the_devices_team),
      CASE(a_sample_says_where_its_fields_go),
      CASE(no_entry_of_the_table_is_empty),
  };
  return cmocka_run_group_tests_name("api", tests, NULL, NULL);
}
