/* Each function of the driver, of NVRTC and of cuBLASLt fails once, at each of its calls in a training: the
 * run ends with a message that names it, or goes on to the same result; no checkpoint is lost, and the run
 * can be resumed. */
#include "double.h"

#include <math.h>
#include <stdbool.h>

/* Writes a checkpoint after each step, and a learning rate that changes, so that a lost step shows. */
static const char model_ini[] =
    "[run]\nname = run\nepochs = 1\nsave_every = 1\nseed = 5\ndeterministic = yes\n"
    "[data]\nsource = digits\nepoch = 32\nbatch = 8\nworkers = 0\n"
    "transforms = to_float, normalize(mean=0.13, std=0.31)\n"
    "[data.valid]\nbatch = 8\nepoch = 16\n"
    "[model]\ninputs = image: f32[1, 28, 28]\nlayers =\n"
    "         flatten\n    fc1: linear(16)\n         relu\n    fc2: linear(10)\n"
    "loss = cross_entropy\nmetrics = accuracy\n"
    "[optimizer]\ntype = adamw\nlr = 0.01\nclip = 1\n"
    "[schedule]\ntype = cosine\n";
#define TRAIN "train model.ini --output runs --resume auto --json " ON_DOUBLE

enum { MOST_POINTS = 200, SPREAD = 4 };

typedef struct entry_point {
  char name[64];
  int calls;
} entry_point;

static entry_point points[MOST_POINTS];
static int n_points;

/* The calls of a training without failures; returns its loss. */
static double count_calls(void) {
  char *line, *rest;
  setenv("FAKECUDA_COUNTS", "counts", 1);
  const json_t *result = program_json(0, "train model.ini --output whole " ON_DOUBLE);
  unsetenv("FAKECUDA_COUNTS");
  double_is_content();
  double loss = program_number(result, "train.loss");
  n_points = 0;
  for (rest = file_read("counts", NULL); (line = strsep(&rest, "\n")) != NULL && n_points < MOST_POINTS;) {
    entry_point *p = &points[n_points];
    if (sscanf(line, "%63s %d", p->name, &p->calls) == 2 && p->calls > 0) n_points++;
  }
  assert_true(n_points > 40);
  return loss;
}

/* [backend.cuda] check = yes: the message has the op whose kernel has the fault. */
static void a_checked_fault_names_its_op(void **state) {
  (void)state;
  file_write("model.ini", model_ini);
  setenv("FAKECUDA_FAIL", "kernel:40", 1);
  assert_int_not_equal(program_run(TRAIN "--set backend.cuda.check=yes"), 0);
  unsetenv("FAKECUDA_FAIL");
  if (strstr(program_err, ": the launch failed: cuStreamSynchronize: CUDA_ERROR_") == NULL ||
      strstr(program_err, "op '") == NULL)
    fail_msg("%s", program_err);
}

/* The call to fail: each one where TENON_ALL_CALLS is set, else the first, the last and some between. */
static int next_call(int calls, int call) {
  int step = getenv("TENON_ALL_CALLS") ? 1 : calls / SPREAD + 1;
  if (call == 0) return 1;
  return call == calls ? 0 : call + step < calls ? call + step : calls;
}

static bool is_clean_up(const char *name) {
  return strstr(name, "Destroy") || strstr(name, "Free") || strstr(name, "Unload") || strstr(name, "Release");
}

/* A fault in a kernel is reported by a later call. The double calls it `kernel`. */
static void names_the_failure(const char *name, const char *failure, int code) {
  char plain[64]; /* the message has the name of the header: cuMemAlloc for cuMemAlloc_v2 */
  const char *version = strstr(name, "_v2");
  if (strcmp(name, "kernel") == 0) name = "backend.cuda.check=yes";
  snprintf(plain, sizeof plain, "%.*s", (int)(version ? version - name : 63), name);
  if (strstr(program_err, plain) == NULL)
    fail_msg("%s: exit %d, and the message is: %s", failure, code, program_err);
}

static void fails_at(const char *name, int call, double loss, int *refused) {
  char failure[128];
  assert_int_equal(system("rm -rf runs fakecuda.log"), 0);
  snprintf(failure, sizeof failure, "%.63s:%d", name, call);
  setenv("FAKECUDA_FAIL", failure, 1);
  int code = program_run(TRAIN);
  unsetenv("FAKECUDA_FAIL");
  if (code != 0) {
    ++*refused;
    names_the_failure(name, failure, code);
  }
  if (!is_clean_up(name)) double_is_content_after(failure);
  const json_t *resumed = program_json(0, TRAIN);
  if (fabs(program_number(resumed, "train.loss") - loss) > 1e-12)
    fail_msg("%s: the resumed training has the loss %.9g, expected %.9g", failure,
             program_number(resumed, "train.loss"), loss);
}

static void every_call_may_fail(void **state) {
  int refused = 0, failures = 0;
  (void)state;
  file_write("model.ini", model_ini);
  double loss = count_calls();
  for (int i = 0; i < n_points; i++)
    for (int call = next_call(points[i].calls, 0); call > 0; call = next_call(points[i].calls, call)) {
      fails_at(points[i].name, call, loss, &refused);
      failures++;
    }
  print_message("%d failures of %d functions: %d ended the run\n", failures, n_points, refused);
  assert_true(refused > n_points / 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, double_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {TEST(every_call_may_fail), TEST(a_checked_fault_names_its_op)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
