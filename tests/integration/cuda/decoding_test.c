/* `tenon generate` on the double of CUDA: the text that the cpu gives, captured and not, in each precision,
 * and what a token costs: the kernel of cached_attention, no slice and no copy of a cache. */
#include "double.h"

#include "texts.h"

#define GENERATE "generate text.ini --temperature 0 --quiet "
#define ON_CUDA  ON_DOUBLE "--set backend.fallback=error "

/* A folder with a trained model. */
static int text_open(void **state) {
  int code = double_open(state);
  write_pattern();
  file_write("text.ini", TEXT_INI("characters", "9", "yes"));
  assert_int_equal(program_run("train text.ini --set backend.use=cpu"), 0);
  return code;
}

/* The result is in program_out. */
static void generate(const char *options) {
  if (program_run(GENERATE "%s", options) != 0) fail_msg("%s: %s", options, program_err);
  double_is_content_after(options);
}

/* Tokens that are no part of the text, so that little is certain, on past the window: PREFILL and DECODE. */
static void tokens_are_those_of_the_cpu(void **state) {
  static const char *const orders[] = {"eager", "lazy", "random"};
  char expected[256], options[512];
  (void)state;
  generate("--prompt-tokens 3,3,8,1,0 --tokens 40 --set backend.use=cpu");
  assert_true(strlen(program_out) < sizeof expected);
  memcpy(expected, program_out, strlen(program_out) + 1);
  for (int i = 0; i < 6; i++) {
    setenv("FAKECUDA_ORDER", orders[i / 2], 1);
    snprintf(options, sizeof options,
             "--prompt-tokens 3,3,8,1,0 --tokens 40 " ON_CUDA "--set backend.capture=%s",
             i % 2 ? "no" : "yes");
    generate(options);
    assert_string_equal(program_out, expected);
  }
}

static void the_learned_line_is_continued_in_each_precision(void **state) {
  static const char *const policies[] = {"fp32", "bf16", "fp16", "tf32"};
  char options[512];
  (void)state;
  for (int i = 0; i < 8; i++) {
    snprintf(options, sizeof options,
             "--prompt To --tokens 24 " ON_CUDA "--set precision.policy=%s --set backend.capture=%s",
             policies[i / 2], i % 2 ? "no" : "yes");
    generate(options);
    assert_string_equal(program_out, "To be or not\nTo be or not\n");
  }
}

/* ---- what a token costs ---- */

/* Without measurements, which replay captures and copy, too. */
static void count_calls(int tokens, const char *capture) {
  char options[512];
  snprintf(options, sizeof options,
           "--prompt T --tokens %d " ON_CUDA "--set backend.autotune=no --set backend.capture=%s", tokens,
           capture);
  setenv("FAKECUDA_COUNTS", "counts", 1);
  generate(options);
  unsetenv("FAKECUDA_COUNTS");
}

static void a_token_is_one_launch_of_a_graph(void **state) {
  (void)state;
  count_calls(4, "yes");
  int few = double_calls("cuGraphLaunch"), copies = double_calls("cuMemcpyDtoDAsync_v2");
  count_calls(14, "yes");
  assert_int_equal(double_calls("cuGraphLaunch"), few + 10);
  assert_int_equal(double_calls("cuMemcpyDtoDAsync_v2"), copies);
}

/* Caches are written where they are. */
static void no_token_copies_a_cache(void **state) {
  (void)state;
  count_calls(4, "no");
  int kernels = double_calls("kernel"), copies = double_calls("cuMemcpyDtoDAsync_v2");
  count_calls(14, "no");
  assert_int_equal(double_calls("cuMemcpyDtoDAsync_v2"), copies);
  assert_in_range(double_calls("kernel"), kernels + 1, kernels + 10 * 12);
}

/* The op of the kernel that is launched as number n, or "". */
static const char *op_of_kernel(int n) {
  static char op[64];
  char failure[32];
  snprintf(failure, sizeof failure, "kernel:%d", n);
  setenv("FAKECUDA_FAIL", failure, 1);
  int code = program_run(GENERATE "--prompt T --tokens 2 " ON_CUDA
                                  "--set backend.capture=no --set backend.cuda.check=yes");
  unsetenv("FAKECUDA_FAIL");
  assert_int_not_equal(code, 0);
  const char *found = strstr(program_err, "op '");
  snprintf(op, sizeof op, "%s", found != NULL ? found + 4 : "");
  op[strcspn(op, "'")] = '\0';
  return op;
}

/* The last layers of DECODE are its last kernels, beside those of cuBLASLt. The launch of the attention
 * begins with the slices that split queries, keys and values, and is named by them; its decomposition would
 * be many. */
static void attention_to_a_cache_is_one_launch_with_its_slices(void **state) {
  char list[512] = "";
  (void)state;
  count_calls(2, "no");
  int last = double_calls("kernel");
  for (int n = last - 5; n <= last; n++) {
    size_t at = strlen(list);
    snprintf(list + at, sizeof list - at, "%s ", op_of_kernel(n));
  }
  assert_string_equal(list, "layer_norm slice affine layer_norm slice affine ");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, text_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(tokens_are_those_of_the_cpu),
      TEST(the_learned_line_is_continued_in_each_precision),
      TEST(a_token_is_one_launch_of_a_graph),
      TEST(no_token_copies_a_cache),
      TEST(attention_to_a_cache_is_one_launch_with_its_slices),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
