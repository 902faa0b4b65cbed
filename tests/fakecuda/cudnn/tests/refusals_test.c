/* tests/fakecuda/cudnn/tests/refusals_test.c: calls that the double refuses before anything runs, with the
 * reason; the order and the capture of its work; failures on request. contract_test.c has the calls that can
 * be made on the library as well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/fakecuda/cudnn/tests/patterns.h"

static void expect(cudnnStatus_t got, cudnnStatus_t expected, const char *reason) {
  const char *why = rig_double()->fakecudnn_why();
  if (got != expected || !strstr(why, reason))
    fail_msg("status %d for \"%s\"; expected status %d for \"%s\"", (int)got, why, (int)expected, reason);
}

/* A convolution with a bias and a ReLU, with memory. */
static rig_graph *ready(void) {
  static const rig_window window = {2, 8, 6, 16, 3, 1, 1};
  rig_graph *g = rig_new(rig_double(), rig_handle());
  pattern_bias_relu(g, CUDNN_DATA_FLOAT, &window, false);
  rig_close(g);
  rig_fill(g, 3);
  assert_int_equal(g->status, CUDNN_STATUS_SUCCESS);
  return g;
}

static void end(rig_graph *g) {
  rig_free_memory();
  rig_free(g);
}

enum { X = 0, W = 1, BIAS = 3, SUM = 4, Z = 5 };

/* A plan with a workspace: the second choice of the library's own engine. */
static cudnnBackendDescriptor_t plan_of(rig_graph *g) {
  cudnnBackendDescriptor_t configs[RIG_CONFIGS];
  int n = rig_ask(g, CUDNN_HEUR_MODE_A, NULL, configs);
  for (int i = 0; i < n; i++) {
    cudnnBackendDescriptor_t plan = rig_plan(g, configs[i], NULL);
    if (rig_workspace(g, plan) >= 4096) return plan;
  }
  fail_msg("no plan with a workspace, status %d", (int)g->status);
  return NULL;
}

static cudnnStatus_t execute(rig_graph *g, cudnnBackendDescriptor_t plan, void *workspace) {
  cudnnBackendDescriptor_t pack = rig_pack(g, workspace);
  assert_int_equal(g->status, CUDNN_STATUS_SUCCESS);
  g->dnn->cudnnSetStream(g->handle, (cudaStream_t)rig_cuda()->stream);
  cudnnStatus_t status = g->dnn->cudnnBackendExecute(g->handle, plan, pack);
  rig_cuda()->cuStreamSynchronize(rig_cuda()->stream);
  return status;
}

static void pointers(void **state) {
  (void)state;
  rig_graph *g = ready();
  cudnnBackendDescriptor_t plan = plan_of(g);
  char *workspace = rig_memory(rig_workspace(g, plan)), host[64] = {0};
  struct {
    int tensor;
    void *memory;
    cudnnStatus_t status;
    const char *reason;
  } cases[] = {
      {X, NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "the pointer of tensor 1 is NULL"},
      {W, (char *)g->tensors[W].memory + 4, CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
       "tensor 2 is not aligned"},
      {W, (char *)g->tensors[W].memory + 16, CUDNN_STATUS_BAD_PARAM, "are not in one allocation"},
      {BIAS, host + 16 - (uintptr_t)host % 16, CUDNN_STATUS_BAD_PARAM, "tensor 4: 64 bytes are not in one"},
      {Z, g->tensors[W].memory, CUDNN_STATUS_BAD_PARAM, "tensor 6, which is written, overlaps tensor 2"},
      {BIAS, workspace, CUDNN_STATUS_BAD_PARAM, "the workspace overlaps tensor 4"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    void *before = g->tensors[cases[i].tensor].memory;
    g->tensors[cases[i].tensor].memory = cases[i].memory;
    expect(execute(g, plan, workspace), cases[i].status, cases[i].reason);
    g->tensors[cases[i].tensor].memory = before;
  }
  expect(execute(g, plan, NULL), CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no workspace of 4096 bytes");
  expect(execute(g, plan, workspace + 16), CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
         "workspace 0 is not aligned");
  expect(execute(g, plan, workspace + 256), CUDNN_STATUS_BAD_PARAM, "are not in one allocation");
  g->tensors[Z].kind = RIG_VIRTUAL; /* leaves it out of the pack */
  expect(execute(g, plan, workspace), CUDNN_STATUS_BAD_PARAM, "the variant pack lacks tensor 6");
  g->tensors[Z].kind = RIG_MEMORY;
  assert_int_equal(execute(g, plan, workspace), CUDNN_STATUS_SUCCESS);
  end(g);
}

static void plans_and_handles(void **state) {
  (void)state;
  rig_graph *g = ready();
  const rig_library *dnn = g->dnn;
  cudnnBackendDescriptor_t plan = plan_of(g), pack = rig_pack(g, NULL), configs[RIG_CONFIGS];
  expect(dnn->cudnnBackendExecute(NULL, plan, pack), CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
         "the handle is NULL");
  expect(dnn->cudnnBackendExecute((cudnnHandle_t)g, plan, pack), CUDNN_STATUS_BAD_PARAM, "is no live handle");
  expect(dnn->cudnnBackendExecute(g->handle, pack, plan), CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
         "another type");
  cudnnBackendDescriptor_t raw = rig_create(g, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  expect(dnn->cudnnBackendExecute(g->handle, plan, raw), CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
         "is not finalized");
  cudnnBackendDescriptor_t device = rig_device(g, 80);
  rig_ask(g, CUDNN_HEUR_MODE_A, device, configs);
  plan = rig_plan(g, configs[0], device);
  expect(execute(g, plan, NULL), CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH, "for sm_80, the device is sm_90");
  int64_t uid = 4;
  cudnnBackendDescriptor_t gone = NULL;
  dnn->cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, &gone);
  assert_int_equal(dnn->cudnnBackendDestroyDescriptor(gone), CUDNN_STATUS_SUCCESS);
  expect(dnn->cudnnBackendDestroyDescriptor(gone), CUDNN_STATUS_BAD_PARAM, "is no live descriptor");
  expect(dnn->cudnnBackendSetAttribute(gone, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid),
         CUDNN_STATUS_BAD_PARAM, "is no live descriptor");
  end(g);
}

static void what_the_double_lacks(void **state) {
  (void)state;
  const rig_library *dnn = rig_double();
  cudnnBackendDescriptor_t d;
  expect(dnn->cudnnBackendCreateDescriptor(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR, &d),
         CUDNN_STATUS_NOT_SUPPORTED, "the double lacks descriptors of type 29");
  expect(dnn->cudnnBackendPopulateCudaGraph(NULL, NULL, NULL, NULL), CUDNN_STATUS_NOT_SUPPORTED,
         "cudnnBackendPopulateCudaGraph: the double lacks this entry point");
  rig_graph *g = rig_new(dnn, NULL);
  rig_image(g, CUDNN_DATA_DOUBLE, RIG_MEMORY, 1, 8, 4, 4);
  expect(g->status, CUDNN_STATUS_NOT_SUPPORTED, "the double lacks elements of the type 1");
  rig_free(g);
  g = rig_new(dnn, NULL);
  rig_pointwise(g, 999, -1, -1, -1, -1);
  expect(g->status, CUDNN_STATUS_NOT_SUPPORTED, "the double lacks the pointwise mode 999");
  rig_free(g);
}

/* Captured work does not run, and the graph reads the operands as they are when it is launched. */
static void captured(void **state) {
  (void)state;
  const rig_driver *cuda = rig_cuda();
  rig_graph *g = ready();
  cudnnBackendDescriptor_t plan = plan_of(g);
  cudnnBackendDescriptor_t pack = rig_pack(g, rig_memory(rig_workspace(g, plan)));
  CUgraph graph;
  CUgraphExec exec;
  double *before = rig_read(g, Z), *after, zero[8 * 2 * 6 * 6] = {0};
  g->dnn->cudnnSetStream(g->handle, (cudaStream_t)cuda->stream);
  assert_int_equal(cuda->cuStreamBeginCapture_v2(cuda->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                   CUDA_SUCCESS);
  assert_int_equal(g->dnn->cudnnBackendExecute(g->handle, plan, pack), CUDNN_STATUS_SUCCESS);
  assert_int_equal(cuda->cuStreamEndCapture(cuda->stream, &graph), CUDA_SUCCESS);
  assert_int_equal(cuda->cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
  after = rig_read(g, Z);
  assert_memory_equal(before, after, (size_t)rig_elements(g, Z) * sizeof *before);
  free(after);
  rig_write(g, X, zero);
  assert_int_equal(cuda->cuGraphLaunch(exec, cuda->stream), CUDA_SUCCESS);
  after = rig_read(g, Z);
  double *bias = rig_read(g, BIAS);
  for (int64_t i = 0; i < rig_elements(g, Z); i++) {
    double expected = bias[i / 36 % 16] > 0 ? bias[i / 36 % 16] : 0;
    if (after[i] != expected) fail_msg("element %lld: %g, expected %g", (long long)i, after[i], expected);
  }
  free(before), free(after), free(bias);
  cuda->cuGraphExecDestroy(exec);
  cuda->cuGraphDestroy(graph);
  end(g);
}

/* Heuristics name the engine in pieces first; it gives other bits when it runs again, the others do not. */
static bool repeats(int number, bool *deterministic) {
  static const rig_window window = {4, 8, 12, 8, 3, 1, 1};
  rig_graph *g = rig_new(rig_double(), rig_handle());
  cudnnBackendDescriptor_t configs[RIG_CONFIGS], engine;
  int x = rig_image(g, CUDNN_DATA_FLOAT, RIG_MEMORY, window.n, window.c, 12, 12);
  int w = rig_image(g, CUDNN_DATA_FLOAT, RIG_MEMORY, window.k, window.c, 3, 3);
  int y = rig_image(g, CUDNN_DATA_FLOAT, RIG_MEMORY, window.n, window.k, 12, 12);
  rig_convolve(g, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, x, w, y, 1, 1, 1);
  rig_close(g);
  rig_fill(g, 5);
  rig_ask(g, CUDNN_HEUR_MODE_A, NULL, configs);
  engine = rig_create(g, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  int64_t n = 0;
  int notes[8];
  g->dnn->cudnnBackendGetAttribute(configs[number], CUDNN_ATTR_ENGINECFG_ENGINE,
                                   CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine);
  g->dnn->cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, 8, &n,
                                   notes);
  *deterministic = true;
  for (int i = 0; i < n; i++) *deterministic &= notes[i] != CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
  cudnnBackendDescriptor_t plan = rig_plan(g, configs[number], NULL);
  int64_t bytes = rig_workspace(g, plan);
  void *workspace = bytes ? rig_memory(bytes) : NULL;
  double *runs[2];
  for (int i = 0; i < 2; i++) {
    assert_int_equal(execute(g, plan, workspace), CUDNN_STATUS_SUCCESS);
    runs[i] = rig_read(g, w);
  }
  bool same = memcmp(runs[0], runs[1], (size_t)rig_elements(g, w) * sizeof **runs) == 0;
  free(runs[0]), free(runs[1]);
  end(g);
  return same;
}

static void determinism(void **state) {
  (void)state;
  bool deterministic, same = repeats(0, &deterministic);
  assert_false(deterministic);
  assert_false(same);
  same = repeats(1, &deterministic);
  assert_true(deterministic);
  assert_true(same);
}

/* A plan's text makes a plan that needs no graph; one for another device or of another version is refused. */
static void plans_as_text(void **state) {
  (void)state;
  rig_graph *g = ready();
  cudnnBackendDescriptor_t plan = plan_of(g), again = rig_create(g, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  int64_t n = 0, bytes = rig_workspace(g, plan);
  const rig_library *dnn = g->dnn;
  void *workspace = rig_memory(bytes);
  assert_int_equal(dnn->cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                                 CUDNN_TYPE_CHAR, 0, &n, NULL),
                   CUDNN_STATUS_SUCCESS);
  char *text = calloc(1, (size_t)n + 1);
  dnn->cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, n, &n,
                                text);
  rig_set(g, again, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &g->handle);
  rig_set(g, again, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)strlen(text),
          text);
  rig_finalize(g, again);
  assert_int_equal(rig_workspace(g, again), bytes);
  assert_int_equal(execute(g, plan, workspace), CUDNN_STATUS_SUCCESS);
  double *first = rig_read(g, Z), *second;
  rig_write(g, Z, (double[2 * 16 * 6 * 6]){0});
  assert_int_equal(execute(g, again, workspace), CUDNN_STATUS_SUCCESS);
  second = rig_read(g, Z);
  assert_memory_equal(first, second, (size_t)rig_elements(g, Z) * sizeof *first);
  again = rig_create(g, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  rig_set(g, again, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &g->handle);
  rig_set(g, again, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
          (int64_t)strlen(text) - 40, text);
  expect(dnn->cudnnBackendFinalize(again), CUDNN_STATUS_BAD_PARAM, "the text of a plan is");
  rig_set(g, again, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, n, text);
  setenv("FAKECUDA_CUDNN_VERSION", "91800", 1);
  expect(dnn->cudnnBackendFinalize(again), CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH, "made by version");
  unsetenv("FAKECUDA_CUDNN_VERSION");
  free(first), free(second), free(text);
  end(g);
}

/* ---- failures on request ---- */

static cudnnStatus_t use_everything(rig_graph *g) {
  cudnnHandle_t h = NULL;
  cudaStream_t stream;
  int value;
  cudnnStatus_t status = g->dnn->cudnnCreate(&h);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  if ((status = g->dnn->cudnnSetStream(h, (cudaStream_t)rig_cuda()->stream)) == CUDNN_STATUS_SUCCESS)
    status = g->dnn->cudnnGetStream(h, &stream);
  if (status == CUDNN_STATUS_SUCCESS) status = g->dnn->cudnnGetProperty(MAJOR_VERSION, &value);
  if (status == CUDNN_STATUS_SUCCESS) {
    static const rig_window window = {1, 8, 4, 8, 1, 1, 0};
    g->handle = h;
    pattern_forward(g, CUDNN_DATA_HALF, &window, RIG_MEMORY);
    rig_close(g);
    if (g->status == CUDNN_STATUS_SUCCESS) rig_fill(g, 1), rig_execute(g, CUDNN_HEUR_MODE_A, 0);
    status = g->status;
  }
  while (g->n_owned > 0) {
    cudnnStatus_t freed = g->dnn->cudnnBackendDestroyDescriptor(g->owned[--g->n_owned]);
    if (status == CUDNN_STATUS_SUCCESS) status = freed;
  }
  cudnnStatus_t freed = g->dnn->cudnnDestroy(h);
  return status == CUDNN_STATUS_SUCCESS ? freed : status;
}

/* The double counts calls from the beginning of the process. */
static int fail_in_child(const char *call) {
  setenv("FAKECUDA_FAIL", call, 1);
  rig_graph *g = rig_new(rig_double(), NULL);
  rig_cuda();
  cudnnStatus_t status = use_everything(g);
  end(g);
  if (status != (*call ? CUDNN_STATUS_INTERNAL_ERROR : CUDNN_STATUS_SUCCESS)) return 1;
  return rig_double()->fakecudnn_live() == 0 ? 0 : 2;
}

static void failures(void **state) {
  (void)state;
  static const char *const calls[] = {"",
                                      "cudnnCreate:1",
                                      "cudnnDestroy:1",
                                      "cudnnSetStream:1",
                                      "cudnnGetStream:1",
                                      "cudnnGetProperty:1",
                                      "cudnnBackendCreateDescriptor:1",
                                      "cudnnBackendSetAttribute:4",
                                      "cudnnBackendGetAttribute:1",
                                      "cudnnBackendFinalize:3",
                                      "cudnnBackendExecute:1",
                                      "cudnnBackendDestroyDescriptor:2"};
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    int state_of_child;
    pid_t child = fork();
    if (child == 0) _exit(fail_in_child(calls[i]));
    assert_int_equal(waitpid(child, &state_of_child, 0), child);
    if (state_of_child != 0) fail_msg("%s: state %d", calls[i], state_of_child);
  }
}

/* A captured graph is launched after its plan was destroyed: the launch faults. */
static int launch_without_plan(void) {
  const rig_driver *cuda = rig_cuda();
  rig_graph *g = ready();
  CUgraph graph;
  CUgraphExec exec;
  cudnnBackendDescriptor_t plan = plan_of(g), pack = rig_pack(g, rig_memory(rig_workspace(g, plan)));
  g->dnn->cudnnSetStream(g->handle, (cudaStream_t)cuda->stream);
  cuda->cuStreamBeginCapture_v2(cuda->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  cudnnStatus_t status = g->dnn->cudnnBackendExecute(g->handle, plan, pack);
  cuda->cuStreamEndCapture(cuda->stream, &graph);
  cuda->cuGraphInstantiateWithFlags(&exec, graph, 0);
  cuda->cuGraphLaunch(exec, cuda->stream);
  if (status != CUDNN_STATUS_SUCCESS || cuda->cuStreamSynchronize(cuda->stream) != CUDA_SUCCESS) return 1;
  g->dnn->cudnnBackendDestroyDescriptor(plan);
  cuda->cuGraphLaunch(exec, cuda->stream);
  return cuda->cuStreamSynchronize(cuda->stream) == CUDA_SUCCESS ? 2 : 0;
}

static void plans_that_are_gone(void **state) {
  (void)state;
  int state_of_child;
  pid_t child = fork();
  if (child == 0) _exit(launch_without_plan());
  assert_int_equal(waitpid(child, &state_of_child, 0), child);
  assert_int_equal(state_of_child, 0);
}

/* Without libcuda.so.1 the library hides the engines that it compiles. */
static void engines_that_are_hidden(void **state) {
  (void)state;
  static const rig_window window = {2, 8, 6, 16, 3, 1, 1};
  cudnnBackendDescriptor_t configs[RIG_CONFIGS];
  rig_cuda();
  for (int hidden = 0; hidden < 2; hidden++) {
    rig_graph *g = rig_new(rig_double(), NULL);
    pattern_bias_relu(g, CUDNN_DATA_BFLOAT16, &window, true);
    rig_close(g);
    setenv("FAKECUDA_CUDNN_NO_JIT", hidden ? "1" : "0", 1);
    int n = rig_ask(g, CUDNN_HEUR_MODE_A, rig_device(g, 90), configs);
    unsetenv("FAKECUDA_CUDNN_NO_JIT");
    assert_int_equal(g->status, CUDNN_STATUS_SUCCESS);
    if (hidden) expect(g->status, CUDNN_STATUS_SUCCESS, "its engines are compiled at run time");
    assert_int_equal(n > 0, !hidden);
    rig_free(g);
  }
}

static void versions(void **state) {
  (void)state;
  const rig_library *dnn = rig_double();
  int value = 0;
  assert_int_equal(dnn->cudnnGetVersion(), CUDNN_VERSION);
  setenv("FAKECUDA_CUDNN_VERSION", "91001", 1);
  assert_int_equal(dnn->cudnnGetVersion(), 91001);
  assert_int_equal(dnn->cudnnGetProperty(MINOR_VERSION, &value), CUDNN_STATUS_SUCCESS);
  assert_int_equal(value, 10);
  unsetenv("FAKECUDA_CUDNN_VERSION");
  assert_string_equal(dnn->cudnnGetErrorString(CUDNN_STATUS_NOT_SUPPORTED_LAYOUT),
                      "CUDNN_STATUS_NOT_SUPPORTED_LAYOUT");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(failures), /* first: its processes open the driver themselves */
      cmocka_unit_test(plans_that_are_gone),
      cmocka_unit_test(engines_that_are_hidden),
      cmocka_unit_test(pointers),
      cmocka_unit_test(plans_and_handles),
      cmocka_unit_test(what_the_double_lacks),
      cmocka_unit_test(captured),
      cmocka_unit_test(determinism),
      cmocka_unit_test(versions),
      cmocka_unit_test(plans_as_text),
  };
  return cmocka_run_group_tests(tests, NULL, rig_leave);
}
