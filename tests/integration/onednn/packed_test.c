/* Weights that are packed once: linear layers and transposed convolutions give what the reference gives, also
 * after a weight was written. */
#include <jansson.h>

#include "session_rig.h"

/* Transposed convolutions, the last of which has three channels, as a generator of pictures has them. */
static const char turned[] = "[run]\nname = turned\nseed = 5\n"
                             "[model]\ninputs = image: f32[3, 20, 20]\n"
                             "layers =\n"
                             "    stem:  conv2d(32, kernel=4, stride=4)\n"
                             "    up1:   conv_transpose2d(32, kernel=4, stride=2, padding=1, bias=no)\n"
                             "    bn:    batch_norm, relu\n"
                             "    up2:   conv_transpose2d(32, kernel=3, padding=1, groups=2)\n"
                             "           relu\n"
                             "    up3:   conv_transpose2d(3, kernel=4, stride=2, padding=1)\n"
                             "           tanh, flatten\n"
                             "    fc:    linear(6)\n";

/* Linear layers over the rows of a sample, and one over their mean. */
#define ROWS(shape)                                                                                          \
  "[run]\nname = rows\nseed = 5\n"                                                                           \
  "[model]\ninputs = image: f32[" shape "]\n"                                                                \
  "layers =\n"                                                                                               \
  "    up:    linear(600)\n"                                                                                 \
  "    q, k, v: split(3, axis=-1)\n"                                                                         \
  "    mixed: attention(4) <- q, k, v\n"                                                                     \
  "    wide:  linear(200)\n"                                                                                 \
  "           gelu\n"                                                                                        \
  "    down:  linear(200, bias=no)\n"                                                                        \
  "           add <- mixed, down\n"                                                                          \
  "           mean(axis=1)\n"                                                                                \
  "    fc:    linear(6)\n"
static const char rows[] = ROWS("24, 50");
/* 900 rows of a batch: several blocks of rows, the last of which ends within a tile of eight. */
static const char many_rows[] = ROWS("300, 4");

static model_file file;

static int write_turned(void **state) {
  (void)state;
  return model_file_write(&file, turned);
}
static int write_rows(void **state) {
  (void)state;
  return model_file_write(&file, rows);
}

static int write_many_rows(void **state) {
  (void)state;
  return model_file_write(&file, many_rows);
}

static int remove_model(void **state) {
  (void)state;
  return model_file_remove(&file);
}

/* The numbers of a weight, other ones in each round. */
static void write_weight(rig *r, const char *name, int32_t n, int32_t round) {
  float *values = malloc((size_t)n * sizeof *values);
  assert_non_null(values);
  for (int32_t i = 0; i < n; i++) values[i] = 0.1f * sinf((float)(i * (round + 1)));
  ok(tn_session_write(r->session, name, values, (size_t)n * sizeof *values), r->session);
  free(values);
}

typedef struct written {
  const char *name;
  int32_t n;
} written;

static void compare_written(const written *weights, int32_t n, const char *const *more, int32_t n_more) {
  rig *cpu = start(&file, "backend.use=cpu", NULL, 0),
      *fast = start(&file, "backend.use=onednn", more, n_more);
  float before = 0;
  for (int32_t round = 0; round < 3; round++) {
    for (int32_t i = 0; i < n && round > 0; i++) {
      write_weight(cpu, weights[i].name, weights[i].n, round);
      write_weight(fast, weights[i].name, weights[i].n, round);
    }
    for (int32_t again = 0; again < 2; again++) {
      ok(tn_session_infer(cpu->session, BATCH), cpu->session);
      ok(tn_session_infer(fast->session, BATCH), fast->session);
      assert_true(difference(cpu, fast) <= 2e-5);
    }
    assert_true(before != cpu->scores[0]); /* the write has an effect */
    before = cpu->scores[0];
  }
  stop(cpu);
  stop(fast);
}

/* How many launches of the plan have a kernel with `kernel` in its name, of variant `variant` where it is not
 * NULL. */
static int32_t count_launches(const char *option, const char *kernel, const char *variant) {
  const char *set[] = {"backend.use=onednn", "backend.autotune=no", option};
  const tn_run_options options = {.struct_size = sizeof options, .set = set, .n_set = 3};
  tn_context *context;
  tn_run *run;
  char *text;
  ok(tn_context_open(NULL, &context), context);
  ok(tn_run_open(context, file.path, &options, &run), context);
  ok(tn_run_plan(run, NULL, &text, NULL), run);
  json_t *plan = json_loads(text, 0, NULL), *op;
  size_t i;
  int32_t n = 0;
  json_array_foreach(json_object_get(plan, "ops"), i, op) {
    n += strstr(json_string_value(json_object_get(op, "kernel")), kernel) != NULL &&
         (variant == NULL || strcmp(json_string_value(json_object_get(op, "variant")), variant) == 0);
  }
  json_decref(plan);
  tn_string_free(run, text);
  tn_run_close(run);
  tn_context_close(context);
  return n;
}

static const written of_rows[] = {
    {"up.weight", 600 * 50}, {"wide.weight", 200 * 200}, {"down.weight", 200 * 200}};

static void packed_weights_of_linear_layers_give_what_the_reference_gives(void **state) {
  static const char *const off[] = {"backend.onednn.pack_weights=off"};
  (void)state;
  compare_written(of_rows, 3, NULL, 0);
  compare_written(of_rows, 3, off, 1);
}

static void packed_weights_of_many_rows_give_what_the_reference_gives(void **state) {
  static const written weights[] = {{"wide.weight", 200 * 200}, {"down.weight", 200 * 200}};
  (void)state;
  compare_written(weights, 2, NULL, 0);
}

/* Of a sample alone, which has 24 rows. */
static void weights_of_linear_layers_are_packed_once_unless_told_otherwise(void **state) {
  (void)state;
  assert_int_equal(count_launches("backend.onednn.pack_weights=auto", "onednn_matmul", "folded"), 3);
  assert_int_equal(count_launches("backend.onednn.pack_weights=off", "onednn_matmul", "folded"), 0);
  assert_int_equal(count_launches("backend.onednn.pack_weights=off", "onednn_matmul", NULL), 4);
}

static void transposed_convolutions_give_what_the_reference_gives(void **state) {
  static const written weights[] = {{"up1.weight", 32 * 32 * 16}, {"up3.weight", 32 * 3 * 16}};
  (void)state;
  compare_written(weights, 2, NULL, 0);
}

/* Also the one with three channels, which the library lacks in blocks. */
static void weights_of_transposed_convolutions_are_packed_once(void **state) {
  (void)state;
  assert_int_equal(count_launches("run.threads=2", "conv2d_grad_input_folded", NULL), 3);
}

int main(void) {
  const struct CMUnitTest of_turned[] = {
      cmocka_unit_test(transposed_convolutions_give_what_the_reference_gives),
      cmocka_unit_test(weights_of_transposed_convolutions_are_packed_once)};
  const struct CMUnitTest of_rows_of_samples[] = {
      cmocka_unit_test(packed_weights_of_linear_layers_give_what_the_reference_gives),
      cmocka_unit_test(weights_of_linear_layers_are_packed_once_unless_told_otherwise)};
  const struct CMUnitTest of_many_rows[] = {
      cmocka_unit_test(packed_weights_of_many_rows_give_what_the_reference_gives)};
  return cmocka_run_group_tests(of_turned, write_turned, remove_model) +
         cmocka_run_group_tests(of_rows_of_samples, write_rows, remove_model) +
         cmocka_run_group_tests(of_many_rows, write_many_rows, remove_model);
}
