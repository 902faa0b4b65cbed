/* Each function of the driver, of NVRTC, of cuBLASLt and of cuDNN fails once, at calls spread over trainings:
 * the run ends with a message that names it, or goes on: to the same result, or, where cuBLASLt
 * or cuDNN declines after the failure, with a warning that names it and the rounding of another kernel.
 * Memory and files are given back, no checkpoint is lost, and the run can be resumed.
 *
 * TENON_ALL_CALLS=FILE: at each of their calls, in two processes; FILE gets a table of the results. */
#include "double.h"
#include "tests/support/whole.h"

#include "backends/cuda/driver/entry_points.h"
#ifdef TN_CUDA_CUDNN
#include "backends/cuda/cudnn/library.h"
#else
#define TN_CUDNN_POINTS(X)
#endif

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { MOST_POINTS = 200, PARTS = 2 };

typedef struct training {
  const char *title, *ini;
  double tolerance;  /* of the loss; 0: the checkpoints have the same bits */
  bool measured;     /* the number of calls differs from run to run */
  const char *arch;  /* the device's */
  bool others_alone; /* only functions that the trainings before it do not call */
  int spread;        /* about so many calls of each function, where not all are asked for */
} training;

#define SMALL_INI                                                                                            \
  "[run]\nname = run\nepochs = 1\nsave_every = 1\nseed = 5\nsteps_per_launch = 1\n"                          \
  "[data]\nsource = digits\nepoch = 16\nbatch = 8\nworkers = 0\ntransforms = to_float\n"                     \
  "[data.valid]\nbatch = 8\nepoch = 8\n"                                                                     \
  "[model]\ninputs = image: f32[1, 28, 28]\nlayers =\n    flatten\n    fc: linear(10)\n"                     \
  "loss = cross_entropy\n[optimizer]\ntype = sgd\nlr = 0.01\n"

/* A checkpoint is written after each step, and the learning rate changes, so that a lost step shows. */
static const training trainings[] = {
    {"captured: clip, AdamW, two steps a launch, validation",
     "[run]\nname = run\nepochs = 1\nsave_every = 1\nseed = 5\ndeterministic = yes\nsteps_per_launch = 2\n"
     "[data]\nsource = digits\nepoch = 16\nbatch = 8\nworkers = 0\n"
     "transforms = to_float, normalize(mean=0.13, std=0.31)\n"
     "[data.valid]\nbatch = 8\nepoch = 8\n"
     "[model]\ninputs = image: f32[1, 28, 28]\nlayers =\n"
     "         flatten\n    fc1: linear(16)\n         relu\n    fc2: linear(10)\n"
     "loss = cross_entropy\nmetrics = accuracy\n"
     "[optimizer]\ntype = adamw\nlr = 0.01\nclip = 1\n"
     "[schedule]\ntype = cosine\n",
     0, false, "90", false, 2},
    {"measured: autotune times the algorithms of cuBLASLt", SMALL_INI, 1e-6, true, "90", false, 2},
    {"a device newer than NVRTC: PTX", SMALL_INI, 1e-6, true, "130", true, 2},
#ifdef TN_CUDA_CUDNN
    /* Images have 3 channels, for which cuDNN compiles an engine. */
    {"fp16: convolutions, batch norm and their gradients by cuDNN",
     "[run]\nname = run\nepochs = 1\nsave_every = 1\nseed = 5\n"
     "[data]\nsource = random\nshape = 3, 6, 6\nclasses = 4\nsamples = 8\nbatch = 4\nworkers = 0\n"
     "[model]\ninputs = image: f32[3, 6, 6]\nlayers =\n"
     "    conv1: conv2d(8, kernel=3, padding=1, bias=no)\n    bn1:   batch_norm\n           relu\n"
     "    conv2: conv2d(8, kernel=3, padding=1, bias=no)\n"
     "           global_avg_pool\n    fc:    linear(4)\n"
     "loss = cross_entropy\n[optimizer]\ntype = sgd\nlr = 0.1\n"
     "[precision]\npolicy = fp16\n[backend]\nautotune = no\n",
     2e-3, false, "90", true, 8},
#endif
};
enum { TRAININGS = sizeof trainings / sizeof *trainings, CUDNN_TRAINING = TRAININGS - 1 };
#define TRAIN "train model.ini --output runs --resume auto " ON_DOUBLE

/* A function, and its results. not_reached: autotune makes fewer calls on some days. */
typedef struct entry_point {
  char name[64];
  int calls, refused, went_on, not_reached;
} entry_point;

typedef struct tally {
  entry_point points[MOST_POINTS];
  int n;
} tally;

static tally (*tallies)[TRAININGS]; /* of each part; shared by the processes */
static int part, n_parts = 1;

/* The training without failures. */
static double whole_loss;
static char *whole_files;

/* Something that a failure left wrong; the other failures are tried all the same. */
static int n_wrong;
__attribute__((format(printf, 1, 2))) static void complain(const char *format, ...) {
  va_list args;
  va_start(args, format);
  vprint_error(format, args);
  va_end(args);
  n_wrong++;
}

/* ---- counts ---- */

/* The functions that the backend calls. */
#define SYMBOL(function, symbol) symbol,
#define NAME(function)           #function,
static const char *const functions[] = {TN_CUDA_DRIVER_POINTS(SYMBOL) TN_CUDA_NVRTC_POINTS(SYMBOL)
                                            TN_CUDA_LT_POINTS(SYMBOL) TN_CUDNN_POINTS(NAME)};
#undef NAME
#undef SYMBOL

/* The doubles call some others. */
static bool is_of_backend(const char *name) {
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (strcmp(functions[i], name) == 0) return true;
  return strcmp(name, "kernel") == 0;
}

/* Returns the list of the files that are open at the end. */
static char *read_counts(tally *t) {
  char *line, *rest = file_read("counts", NULL), *files = strstr(rest, "file ");
  *t = (tally){0};
  assert_non_null(files);
  files[-1] = '\0';
  while ((line = strsep(&rest, "\n")) != NULL && t->n < MOST_POINTS) {
    entry_point *p = &t->points[t->n];
    if (sscanf(line, "%63s %d", p->name, &p->calls) == 2 && is_of_backend(p->name)) t->n++;
  }
  return files;
}

static int calls_of(const tally *t, const char *name) {
  for (int i = 0; i < t->n; i++)
    if (strcmp(t->points[i].name, name) == 0) return t->points[i].calls;
  return 0;
}

/* Whether one of the first n trainings calls a function. */
static bool is_called(int n, const char *name) {
  for (int i = 0; i < n; i++)
    if (calls_of(&tallies[part][i], name) > 0) return true;
  return false;
}

/* Those of cuDNN are of the training that has convolutions. */
static void keep_others(tally *t, int n_before) {
  int n = 0;
  for (int i = 0; i < t->n; i++)
    if (!is_called(n_before, t->points[i].name) || strncmp(t->points[i].name, "cudnn", 5) == 0)
      t->points[n++] = t->points[i];
  t->n = n;
}

/* The calls of a training without failures, that finds no compiled code and no measurements. */
static void count_calls(const training *of, tally *t) {
  file_write("model.ini", of->ini);
  setenv("FAKECUDA_ARCH", of->arch, 1);
  assert_int_equal(system("rm -rf tenon runs whole"), 0);
  const json_t *result = program_json(0, TRAIN);
  double_is_content();
  whole_loss = program_number(result, "train.loss");
  whole_files = read_counts(t);
  assert_null(strstr(whole_files, "/tenon/")); /* compiled code and measurements */
  assert_true(t->n > 40);
  assert_int_equal(rename("runs", "whole"), 0);
}

/* The call to fail: each one where all are asked for, else the first, the last and some between. */
static int next_call(const training *of, int calls, int call) {
  int spread = whole_or(of->spread, of->spread / 2), step = n_parts > 1 ? 1 : calls / spread + 1;
  if (call == 0) return 1;
  return call == calls ? 0 : call + step < calls ? call + step : calls;
}

/* ---- one failure ---- */

/* A fault in a kernel is reported by a later call. The double calls it `kernel`. */
static void names_the_failure(const char *name, const char *failure, int code) {
  char plain[64]; /* the message has the name of the header: cuMemAlloc for cuMemAlloc_v2 */
  const char *version = strstr(name, "_v2");
  if (strcmp(name, "kernel") == 0) name = "backend.cuda.check=yes";
  snprintf(plain, sizeof plain, "%.*s", (int)(version ? version - name : 63), name);
  if (strstr(program_err, plain) == NULL)
    complain("%s: exit %d, and the message is: %s\n", failure, code, program_err);
}

/* Objects of NVRTC, cuBLASLt and cuDNN are destroyed. The double's log has the leaks of the driver's objects.
 */
static void destroys_what_it_created(const char *failure, const tally *counts) {
  static const char *const pairs[][2] = {
      {"nvrtcCreateProgram", "nvrtcDestroyProgram"},
      {"cublasLtCreate", "cublasLtDestroy"},
      {"cublasLtMatmulDescCreate", "cublasLtMatmulDescDestroy"},
      {"cublasLtMatrixLayoutCreate", "cublasLtMatrixLayoutDestroy"},
      {"cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceDestroy"},
      {"cudnnCreate", "cudnnDestroy"},
      {"cudnnBackendCreateDescriptor", "cudnnBackendDestroyDescriptor"}};
  const char *log = file_exists("fakecuda.log") ? file_read("fakecuda.log", NULL) : "";
  if (*log != '\0') complain("%s: the double of CUDA says: %s\n", failure, log);
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    size_t n = strlen(pairs[i][0]);
    int failed = strncmp(failure, pairs[i][0], n) == 0 && failure[n] == ':';
    int created = calls_of(counts, pairs[i][0]) - failed, destroyed = calls_of(counts, pairs[i][1]);
    if (created != destroyed)
      complain("%s: %d by %s, %d by %s\n", failure, created, pairs[i][0], destroyed, pairs[i][1]);
  }
}

/* At the end no file is open that is not open without a failure. */
static void closes_its_files(const char *failure, char *files) {
  for (char *line; (line = strsep(&files, "\n")) != NULL;)
    if (strstr(whole_files, line) == NULL) complain("%s: a file is left open: %s\n", failure, line);
}

#define OTHER_ROUNDING 1e-6 /* of the loss in f32 */

static void has_the_result(const training *of, const char *failure, bool other_kernels) {
  double tolerance = of->tolerance == 0 && other_kernels ? OTHER_ROUNDING : of->tolerance;
  const json_t *result = program_json(0, TRAIN);
  double loss = program_number(result, "train.loss");
  if (!(fabs(loss - whole_loss) <= tolerance))
    complain("%s: the resumed training has the loss %.9g, expected %.9g\n", failure, loss, whole_loss);
  if (tolerance == 0) checkpoints_equal("whole", "runs");
}

static int n_warned; /* failures after which the run went on, with a warning that names the function */

/* The run went on: to the same result, or with such a warning, which it returns. */
static bool went_on_openly(const training *of, const char *name, const char *failure) {
  bool warned = strstr(program_err, name) != NULL;
  n_warned += warned;
  bool same = system("cmp -s whole/run/checkpoints/last/model.safetensors "
                     "runs/run/checkpoints/last/model.safetensors") == 0;
  if (!same && !warned && !of->measured) complain("%s: another result, and no warning\n", failure);
  return warned;
}

static void fails_at(const training *of, entry_point *p, int call) {
  char failure[128];
  tally counts;
  assert_int_equal(system("rm -rf runs tenon fakecuda.log"), 0);
  snprintf(failure, sizeof failure, "%.63s:%d", p->name, call);
  setenv("FAKECUDA_FAIL", failure, 1);
  int code = program_run(TRAIN);
  unsetenv("FAKECUDA_FAIL");
  char *files = read_counts(&counts);
  bool reached = calls_of(&counts, p->name) >= call, other_kernels = false;
  if (code != 0)
    names_the_failure(p->name, failure, code);
  else
    other_kernels =
        went_on_openly(of, p->name, failure) && strcmp(p->name, "cublasLtMatmulAlgoGetHeuristic") == 0;
  destroys_what_it_created(failure, &counts);
  closes_its_files(failure, files);
  has_the_result(of, failure, other_kernels);
  if (!of->measured) assert_true(reached);
  ++*(!reached ? &p->not_reached : code != 0 ? &p->refused : &p->went_on);
}

static void fail_calls(int which) {
  const training *of = &trainings[which];
  tally *t = &tallies[part][which];
  int refused = 0, failures = 0, warned_before = n_warned;
  count_calls(of, t);
  if (of->others_alone) keep_others(t, which);
  assert_true(t->n > 0);
  for (int i = 0; i < t->n; i++) {
    const int calls = t->points[i].calls;
    for (int call = next_call(of, calls, 0); call > 0; call = next_call(of, calls, call)) {
      if (call % n_parts != part) continue;
      fails_at(of, &t->points[i], call);
      failures++;
    }
    refused += t->points[i].refused;
  }
  int warned = n_warned - warned_before;
  print_message("%s: %d failures of %d functions: %d ended the run, %d gave a warning\n", of->title, failures,
                t->n, refused, warned);
  assert_true(refused + warned > failures / 8); /* of measurements and destructions, most change nothing */
}

static void every_call_may_fail(void **state) {
  (void)state;
  setenv("FAKECUDA_COUNTS", "counts", 1);
  for (int i = 0; i < TRAININGS; i++) fail_calls(i);
  unsetenv("FAKECUDA_ARCH");
  assert_int_equal(n_wrong, 0);
}

/* The last calls that make a context current come before something is freed: it is freed all the same.
 */
static void freeing_needs_no_context(void **state) {
  entry_point current = {.name = "cuCtxSetCurrent"};
  (void)state;
  setenv("FAKECUDA_COUNTS", "counts", 1);
  tally *counts = &tallies[0][0];
  count_calls(&trainings[0], counts);
  current.calls = calls_of(counts, current.name);
  for (int call = current.calls - 60; call < current.calls; call += 7)
    fails_at(&trainings[0], &current, call);
  unsetenv("FAKECUDA_ARCH");
  assert_int_equal(n_wrong, 0);
  assert_true(current.went_on > 4);
}

/* ---- other ways to fail ---- */

/* [backend.cuda] check = yes: the message has the op whose kernel has the fault. */
static void a_checked_fault_names_its_op(void **state) {
  (void)state;
  file_write("model.ini", trainings[0].ini);
  setenv("FAKECUDA_FAIL", "kernel:40", 1);
  assert_int_not_equal(program_run(TRAIN "--set backend.cuda.check=yes"), 0);
  unsetenv("FAKECUDA_FAIL");
  if (strstr(program_err, ": the launch failed: cuStreamSynchronize: CUDA_ERROR_") == NULL ||
      strstr(program_err, "op '") == NULL)
    fail_msg("%s", program_err);
}

/* The call that meets the fault of a kernel first may be one of cuBLASLt. */
static void a_fault_is_named_whatever_call_meets_it(void **state) {
  (void)state;
  file_write("model.ini", trainings[0].ini);
  for (int kernel = 1; kernel <= 12; kernel++) {
    char failure[32];
    snprintf(failure, sizeof failure, "kernel:%d", kernel);
    assert_int_equal(system("rm -rf runs"), 0);
    setenv("FAKECUDA_FAIL", failure, 1);
    assert_int_equal(program_run(TRAIN), 69);
    unsetenv("FAKECUDA_FAIL");
    names_the_failure("kernel", failure, 69);
  }
  assert_int_equal(n_wrong, 0);
}

/* Functions that are called after a failure fail, too: the message names the first one. */
static void hide_nothing(const training *of, const char *const failures[][2], size_t n) {
  file_write("model.ini", of->ini);
  for (size_t i = 0; i < n; i++) {
    assert_int_equal(system("rm -rf runs tenon fakecuda.log"), 0);
    setenv("FAKECUDA_FAIL", failures[i][1], 1);
    assert_int_equal(program_run(TRAIN), 69);
    unsetenv("FAKECUDA_FAIL");
    names_the_failure(failures[i][0], failures[i][1], 69);
  }
  assert_int_equal(n_wrong, 0);
}

static void failures_of_a_report_hide_nothing(void **state) {
  static const char *const failures[][2] = {
      {"cuMemAlloc", "cuMemAlloc_v2:1,cuGetErrorName:1,cuGetErrorString:1"},
      {"cuStreamEndCapture", "cuStreamEndCapture:1,cuStreamIsCapturing:1"},
      {"nvrtcCompileProgram", "nvrtcCompileProgram:1,nvrtcGetProgramLogSize:1,nvrtcGetErrorString:1"},
      {"nvrtcCompileProgram", "nvrtcCompileProgram:1,nvrtcGetProgramLog:1"},
      {"cublasLtMatmul", "cublasLtMatmul:1,cublasLtGetStatusString:1"}};
  (void)state;
  hide_nothing(&trainings[0], failures, sizeof failures / sizeof *failures);
#ifdef TN_CUDA_CUDNN
  static const char *const of_cudnn[][2] = {
      {"cudnnBackendExecute", "cudnnBackendExecute:1,cudnnGetErrorString:1"},
      {"cudnnBackendExecute", "cudnnBackendExecute:1,cudnnGetErrorString:1,cudnnGetLastErrorString:1"}};
  hide_nothing(&trainings[CUDNN_TRAINING], of_cudnn, sizeof of_cudnn / sizeof *of_cudnn);
#endif
}

/* A library may refuse, by a code of its own, a call that it accepts outside of a capture. */
static void a_refusal_inside_a_capture_costs_the_capture(void **state) {
  static const char *const failures[] = {"cublasLtMatmul:captured", "cuLaunchKernel:captured=906",
                                         "cuLaunchKernel:captured=902"};
  (void)state;
  file_write("model.ini", trainings[0].ini);
  assert_int_equal(system("rm -rf runs whole tenon"), 0);
  program_json(0, TRAIN);
  assert_int_equal(rename("runs", "whole"), 0);
  for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
    assert_int_equal(system("rm -rf runs"), 0);
    setenv("FAKECUDA_FAIL", failures[i], 1);
    program_json(0, TRAIN);
    unsetenv("FAKECUDA_FAIL");
    assert_non_null(strstr(program_err, "are enqueued one by one: "));
    checkpoints_equal("whole", "runs");
  }
}

/* The first product that runs is one that autotune measures. */
static void a_variant_that_faults_is_left_out_by_the_next_start(void **state) {
  static const char left_out[] = "is not measured, and not chosen where there is another: the device failed";
  (void)state;
  file_write("model.ini", SMALL_INI);
  setenv("FAKECUDA_FAIL", "task:1", 1);
  assert_int_equal(program_run(TRAIN), 69);
  unsetenv("FAKECUDA_FAIL");
  assert_non_null(strstr(program_err, "autotune: the device has failed while kernel "));
  assert_non_null(strstr(program_err, "backend.cuda.check=yes"));
  assert_non_null(strstr(program_err, "start again: this variant will then be left out"));
  program_json(0, TRAIN);
  const char *first = strstr(program_err, left_out);
  if (first == NULL) fail_msg("%s", program_err);
  assert_null(strstr(first + 1, left_out));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, double_open, program_close)

/* ---- all calls, in several processes ---- */

static int run_part(void) {
  const struct CMUnitTest all[] = {TEST(every_call_may_fail)};
  return cmocka_run_group_tests(all, NULL, NULL);
}

static int run_parts(void) {
  pid_t parts[PARTS];
  int failed = 0, status;
  n_parts = PARTS;
  fflush(NULL);
  for (part = 0; part < PARTS; part++)
    if ((parts[part] = fork()) == 0) exit(run_part());
  for (part = 0; part < PARTS; part++)
    failed |= parts[part] < 0 || waitpid(parts[part], &status, 0) < 0 || status != 0;
  return failed;
}

static void add_part(entry_point *p, const tally *t) {
  for (int i = 0; i < t->n; i++) {
    const entry_point *q = &t->points[i];
    if (strcmp(p->name, q->name) != 0) continue;
    p->refused += q->refused;
    p->went_on += q->went_on;
    p->not_reached += q->not_reached;
  }
}

static int by_name(const void *a, const void *b) { return strcmp(a, b); }

static void write_training(FILE *file, int which) {
  tally *t = &tallies[0][which];
  int all = 0, refused = 0;
  for (int other = 1; other < PARTS; other++)
    for (int i = 0; i < t->n; i++) add_part(&t->points[i], &tallies[other][which]);
  qsort(t->points, (size_t)t->n, sizeof *t->points, by_name);
  fprintf(file, "\n%s\n%-40s %8s %12s %8s %12s\n", trainings[which].title, "function", "failures",
          "clean error", "went on", "not reached");
  for (int i = 0; i < t->n; i++) {
    const entry_point *p = &t->points[i];
    int n = p->refused + p->went_on + p->not_reached;
    fprintf(file, "%-40s %8d %12d %8d %12d\n", p->name, n, p->refused, p->went_on, p->not_reached);
    all += n;
    refused += p->refused;
  }
  fprintf(file, "%-40s %8d %12d\n", "together", all, refused);
}

static void write_uncalled(FILE *file) {
  part = 0;
  fprintf(file, "\nnot called in these trainings without a failure\n");
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (!is_called(TRAININGS, functions[i])) fprintf(file, "%s\n", functions[i]);
}

static int write_table(const char *path) {
  FILE *file = fopen(path, "w");
  if (file == NULL) return perror(path), 1;
  fprintf(file,
          "Each call of the CUDA driver, of NVRTC, of cuBLASLt and of cuDNN in trainings on the doubles\n"
          "fails once (tests/integration/cuda/failures_test.c with TENON_ALL_CALLS). Clean error: the run\n"
          "ended with a message that names the function. Went on: the failure changed no result, or other\n"
          "kernels ran in cuDNN's place, with a warning that names it. Each time the memory and the files\n"
          "were given back, and the run was resumed to the result without failures. `kernel` is a fault\n"
          "while a kernel runs.\n");
  for (int i = 0; i < TRAININGS; i++) write_training(file, i);
  write_uncalled(file);
  return fclose(file) != 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(every_call_may_fail),
                                     TEST(freeing_needs_no_context),
                                     TEST(a_checked_fault_names_its_op),
                                     TEST(a_fault_is_named_whatever_call_meets_it),
                                     TEST(a_variant_that_faults_is_left_out_by_the_next_start),
                                     TEST(failures_of_a_report_hide_nothing),
                                     TEST(a_refusal_inside_a_capture_costs_the_capture)};
  const char *table = getenv("TENON_ALL_CALLS");
  tallies = mmap(NULL, PARTS * sizeof *tallies, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (tallies == MAP_FAILED) return 1;
  if (table == NULL) return cmocka_run_group_tests(tests, NULL, NULL);
  return run_parts() != 0 || write_table(table) != 0;
}
