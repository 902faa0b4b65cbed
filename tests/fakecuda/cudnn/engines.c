/* tests/fakecuda/cudnn/engines.c: see engines.h. */
#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "tests/fakecuda/cudnn/engines.h"
#include "tests/fakecuda/cudnn/graph.h"
#include "tests/fakecuda/cudnn/json.h"
#include "tests/fakecuda/cudnn/support.h"

#define BAD CUDNN_STATUS_BAD_PARAM

/* An engine has one knob; a configuration without a choice has the first. */
enum { KNOB = CUDNN_KNOB_TYPE_KERNEL_CFG, KNOB_MOST = 1, MOST_RESULTS = FAKEDNN_ENGINES * (KNOB_MOST + 1) };

static bool store_integer(fakednn_body *body, int32_t name, int64_t value) {
  return fakednn_store(body, name, CUDNN_TYPE_INT64, 1, &value);
}

static cudnnStatus_t no_memory(void) {
  return fakednn_refuse(CUDNN_STATUS_ALLOC_FAILED, "out of host memory");
}

/* ---- devices ---- */

/* The number behind "key":, -1: the text has no such key. */
static int64_t find_number(const char *json, const char *key) {
  const char *at = strstr(json, key);
  if (!at || at == json || at[-1] != '"' || at[strlen(key)] != '"') return -1;
  at += strlen(key) + 1;
  while (isspace((unsigned char)*at) || *at == ':') at++;
  return isdigit((unsigned char)*at) ? strtoll(at, NULL, 10) : -1;
}

/* cuDNN refuses a description that lacks a key. */
cudnnStatus_t fakednn_finalize_device(fakednn_body *body) {
  static const char *const keys[] = {"multiProcessorCount",
                                     "regsPerBlock",
                                     "warpSize",
                                     "maxSharedMemoryPerBlock",
                                     "maxSharedMemoryPerBlockOptin",
                                     "reservedSharedMemoryPerBlock",
                                     "maxRegistersPerSM",
                                     "maxCtasPerSM",
                                     "maxThreadsPerBlock",
                                     "maxThreadsPerSM",
                                     "pciDeviceId",
                                     "cudaDeviceId",
                                     "isTccDriver",
                                     "supportCoopLaunch",
                                     "smClockRateKHz",
                                     "memClockRateKHz",
                                     "l2CacheSize",
                                     "totalGlobalMem",
                                     "driverVer",
                                     "deviceVer"};
  const char *json = fakednn_pointer(body, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, 0);
  int64_t n = fakednn_count_of(body, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION), arch = 0;
  if (!json) return fakednn_lacks("a DEVICEPROP that is not made from JSON");
  FAKEDNN_REQUIRE(memchr(json, '\0', (size_t)n), BAD, "the JSON of a device does not end with a zero");
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    arch = find_number(json, keys[i]);
    FAKEDNN_REQUIRE(arch >= 0, BAD, "the JSON of a device has no number \"%s\"", keys[i]);
  }
  return store_integer(body, -1, arch / 10) ? CUDNN_STATUS_SUCCESS : no_memory();
}

/* The architecture of a DEVICEPROP, else that of a handle; 0: neither is there. */
static int arch_of(const fakednn_body *device, const void *handle) {
  if (device) return (int)fakednn_integer(device, -1, 0, 0);
  bool live = handle && fakednn_check_handle((cudnnHandle_t)handle) == CUDNN_STATUS_SUCCESS;
  return live ? ((const struct cudnnContext *)handle)->arch : 0;
}

/* ---- engines ---- */

static bool store_notes(fakednn_body *body, int32_t engine, const fakednn_program *program) {
  int32_t numerical[2], behavior[2];
  int n = 0, b = 0;
  if (fakednn_uses_tensor_cores(program, engine)) numerical[n++] = CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
  if (engine == FAKEDNN_ENGINE_PIECES) numerical[n++] = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
  if (engine == FAKEDNN_ENGINE_COMPILED || engine == FAKEDNN_ENGINE_EXACT) {
    behavior[b++] = CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
    behavior[b++] = CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API;
  }
  return fakednn_store(body, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, n, numerical) &&
         fakednn_store(body, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, b, behavior);
}

static bool store_knob_info(fakednn_body *body) {
  fakednn_body *info = fakednn_body_new(CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR);
  int32_t type = KNOB;
  bool stored =
      info && fakednn_store(info, CUDNN_ATTR_KNOB_INFO_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type) &&
      store_integer(info, CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE, KNOB_MOST) &&
      store_integer(info, CUDNN_ATTR_KNOB_INFO_MINIMUM_VALUE, 0) &&
      store_integer(info, CUDNN_ATTR_KNOB_INFO_STRIDE, 1) &&
      fakednn_store(body, CUDNN_ATTR_ENGINE_KNOB_INFO, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, (const void *)&info);
  if (info) info->finalized = true;
  fakednn_body_drop(info);
  return stored;
}

cudnnStatus_t fakednn_finalize_engine(fakednn_body *body) {
  const fakednn_body *graph = fakednn_part(body, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, 0);
  const fakednn_program *program = fakednn_program_of(graph);
  int64_t index = fakednn_integer(body, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 0, 0);
  int arch = arch_of(fakednn_part(body, CUDNN_ATTR_ENGINE_DEVICEPROP, 0),
                     fakednn_pointer(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, 0));
  FAKEDNN_REQUIRE(index >= 0 && index < FAKEDNN_ENGINES, CUDNN_STATUS_NOT_SUPPORTED,
                  "there is no engine %lld", (long long)index);
  FAKEDNN_REQUIRE(arch, BAD, "neither a DEVICEPROP nor the graph's handle says which device it is for");
  unsigned engines = fakednn_find_engines(program, arch);
  FAKEDNN_REQUIRE(engines >> index & 1, CUDNN_STATUS_NOT_SUPPORTED, "engine %lld does not have this graph",
                  (long long)index);
  return store_notes(body, (int32_t)index, program) && store_knob_info(body) ? CUDNN_STATUS_SUCCESS
                                                                             : no_memory();
}

/* ---- configurations ---- */

static int64_t knob_of(const fakednn_body *configuration) {
  const fakednn_body *choice = fakednn_part(configuration, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, 0);
  return choice ? fakednn_integer(choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, 0, 0) : 0;
}

static const fakednn_program *program_of_engine(const fakednn_body *engine) {
  return fakednn_program_of(fakednn_part(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, 0));
}

cudnnStatus_t fakednn_finalize_configuration(fakednn_body *body) {
  const fakednn_body *engine = fakednn_part(body, CUDNN_ATTR_ENGINECFG_ENGINE, 0);
  int64_t choices = fakednn_count_of(body, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES), knob = knob_of(body);
  FAKEDNN_REQUIRE(choices <= 1, BAD, "%lld choices for an engine with one knob", (long long)choices);
  for (int64_t i = 0; i < choices; i++) {
    int64_t type = fakednn_integer(fakednn_part(body, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, i),
                                   CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, 0, 0);
    FAKEDNN_REQUIRE(type == KNOB, BAD, "the engine has no knob %lld", (long long)type);
  }
  FAKEDNN_REQUIRE(knob >= 0 && knob <= KNOB_MOST, BAD, "the knob's choice is %lld", (long long)knob);
  int64_t bytes =
      fakednn_workspace(program_of_engine(engine),
                        (int32_t)fakednn_integer(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 0, 0), knob);
  return store_integer(body, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, bytes) ? CUDNN_STATUS_SUCCESS : no_memory();
}

/* ---- heuristics ---- */

static fakednn_body *new_engine(const fakednn_body *heuristics, int64_t index) {
  fakednn_body *engine = fakednn_body_new(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  const fakednn_body *graph = fakednn_part(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 0);
  const fakednn_body *device = fakednn_part(heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, 0);
  bool made = engine &&
              fakednn_store(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                            (const void *)&graph) &&
              store_integer(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, index) &&
              (!device || fakednn_store(engine, CUDNN_ATTR_ENGINE_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                        1, (const void *)&device)) &&
              fakednn_finalize_engine(engine) == CUDNN_STATUS_SUCCESS;
  if (!made) return fakednn_body_drop(engine), NULL;
  engine->finalized = true;
  return engine;
}

static fakednn_body *new_choice(int64_t value) {
  fakednn_body *choice = fakednn_body_new(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
  int32_t type = KNOB;
  bool made = choice &&
              fakednn_store(choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type) &&
              store_integer(choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, value);
  if (!made) return fakednn_body_drop(choice), NULL;
  choice->finalized = true;
  return choice;
}

static fakednn_body *new_configuration(const fakednn_body *heuristics, int64_t index, int64_t knob) {
  fakednn_body *made = fakednn_body_new(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  fakednn_body *engine = new_engine(heuristics, index), *choice = new_choice(knob);
  bool good = made && engine && choice &&
              fakednn_store(made, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                            (const void *)&engine) &&
              fakednn_store(made, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                            (const void *)&choice) &&
              fakednn_finalize_configuration(made) == CUDNN_STATUS_SUCCESS;
  fakednn_body_drop(engine);
  fakednn_body_drop(choice);
  if (!good) return fakednn_body_drop(made), NULL;
  made->finalized = true;
  return made;
}

/* The order of preference: A puts weight gradients in pieces first, B the engines that are compiled at run
 * time. */
static int list_engines(int64_t mode, unsigned engines, int32_t order[FAKEDNN_ENGINES]) {
  static const int32_t a[] = {FAKEDNN_ENGINE_PIECES, FAKEDNN_ENGINE_OWN, FAKEDNN_ENGINE_COMPILED};
  static const int32_t b[] = {FAKEDNN_ENGINE_COMPILED, FAKEDNN_ENGINE_PIECES, FAKEDNN_ENGINE_OWN};
  const int32_t *from = mode == CUDNN_HEUR_MODE_B ? b : a;
  int n = 0;
  if (mode == CUDNN_HEUR_MODE_FALLBACK) {
    for (int32_t i = FAKEDNN_ENGINE_PLAIN; i < FAKEDNN_ENGINES; i++) {
      if (engines >> i & 1) order[n++] = i;
    }
    return n;
  }
  for (int i = 0; i < 3; i++) {
    if (engines >> from[i] & 1) order[n++] = from[i];
  }
  return n;
}

static cudnnStatus_t store_results(fakednn_body *body, const int32_t *order, int n) {
  fakednn_body *results[MOST_RESULTS];
  int made = 0, wanted = n * (KNOB_MOST + 1);
  for (; made < wanted; made++) {
    /* Every engine with its first choice, then every engine with its second. */
    if (!(results[made] = new_configuration(body, order[made % n], made / n))) break;
  }
  bool stored = made == wanted && fakednn_store(body, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                CUDNN_TYPE_BACKEND_DESCRIPTOR, made, results);
  for (int i = 0; i < made; i++) fakednn_body_drop(results[i]);
  return stored ? CUDNN_STATUS_SUCCESS : no_memory();
}

cudnnStatus_t fakednn_finalize_heuristics(fakednn_body *body) {
  const fakednn_body *graph = fakednn_part(body, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 0);
  int64_t mode = fakednn_integer(body, CUDNN_ATTR_ENGINEHEUR_MODE, 0, 0);
  int32_t order[FAKEDNN_ENGINES];
  int arch = arch_of(fakednn_part(body, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, 0),
                     fakednn_pointer(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, 0));
  FAKEDNN_REQUIRE(mode >= 0 && mode < CUDNN_HEUR_MODES_COUNT, BAD, "there is no mode %lld", (long long)mode);
  FAKEDNN_REQUIRE(arch, BAD, "neither a DEVICEPROP nor the graph's handle says which device it is for");
  int n = list_engines(mode, fakednn_find_engines(fakednn_program_of(graph), arch), order);
  return store_results(body, order, n);
}

/* ---- plans ---- */

static fakednn_plan *plans;
static pthread_mutex_t plans_lock = PTHREAD_MUTEX_INITIALIZER;

static void wait_for_compilation(void) {
  const char *text = getenv("FAKECUDA_CUDNN_COMPILE_MS");
  long ms = text ? strtol(text, NULL, 10) : 0;
  const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  if (ms > 0) nanosleep(&time, NULL);
}

/* The library loads the code that it has compiled, and the driver gives its function for the current context
 * (cuKernelGetFunction). Where no driver has been initialized, a plan is made for a description of a device.
 */
static cudnnStatus_t compile_for_context(const fakednn_body *plan) {
  fakednn_driver driver = fakednn_find_driver();
  CUcontext context = NULL;
  FAKEDNN_REQUIRE(!driver.current || driver.current(&context) != CUDA_SUCCESS || context,
                  CUDNN_STATUS_INTERNAL_ERROR, "the thread that compiles has no current context");
  FAKEDNN_REQUIRE(!getenv("FAKECUDA_CUDNN_NEEDS_HANDLE") ||
                      fakednn_pointer(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, 0),
                  CUDNN_STATUS_INTERNAL_ERROR, "a test asked for plans with a handle alone");
  wait_for_compilation();
  return CUDNN_STATUS_SUCCESS;
}

static void release_plan(const fakednn_body *body) {
  atomic_store(&((fakednn_plan *)body->made)->destroyed, true);
}

/* Whether a test asked for no plan of an engine. */
static bool is_unbuilt(int32_t engine) {
  for (const char *at = getenv("FAKECUDA_CUDNN_UNBUILT"); at && *at;) {
    char *rest = NULL;
    if (strtol(at, &rest, 10) == engine) return true;
    at = *rest ? rest + 1 : rest;
  }
  return false;
}

static cudnnStatus_t plan_from_configuration(const fakednn_body *body, fakednn_plan *plan) {
  const fakednn_body *configuration = fakednn_part(body, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 0);
  FAKEDNN_REQUIRE(configuration, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "the plan has no configuration");
  const fakednn_body *engine = fakednn_part(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, 0);
  plan->program = program_of_engine(engine);
  plan->engine = (int32_t)fakednn_integer(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 0, 0);
  plan->workspace = fakednn_integer(configuration, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, 0, 0);
  if (plan->engine == FAKEDNN_ENGINE_COMPILED || plan->engine == FAKEDNN_ENGINE_EXACT)
    FAKEDNN_TRY(compile_for_context(body));
  FAKEDNN_REQUIRE(!is_unbuilt(plan->engine), CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED,
                  "a test asked for no plan of engine %d", (int)plan->engine);
  return CUDNN_STATUS_SUCCESS;
}

/* From a configuration, or from the text of a plan, which contains compiled code and needs no compiler. */
static cudnnStatus_t make_plan(fakednn_body *body, fakednn_plan *plan) {
  const char *text = fakednn_pointer(body, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, 0);
  int64_t bytes = fakednn_count_of(body, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
  int arch = arch_of(fakednn_part(body, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, 0),
                     fakednn_pointer(body, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, 0));
  FAKEDNN_TRY(text ? fakednn_plan_from_json(text, bytes, plan) : plan_from_configuration(body, plan));
  FAKEDNN_REQUIRE(arch, BAD, "neither a DEVICEPROP nor a handle says which device the plan is for");
  FAKEDNN_REQUIRE(!text || plan->arch == arch, CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH,
                  "the plan was made for sm_%d, the device is sm_%d", plan->arch, arch);
  plan->arch = arch;
  return CUDNN_STATUS_SUCCESS;
}

static bool store_plan(fakednn_body *body, const fakednn_plan *plan) {
  char *text = fakednn_plan_to_json(plan);
  bool stored = text &&
                fakednn_store(body, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                              (int64_t)strlen(text) + 1, text) &&
                store_integer(body, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, plan->workspace);
  free(text);
  return stored;
}

cudnnStatus_t fakednn_finalize_plan(fakednn_body *body) {
  fakednn_plan *plan = calloc(1, sizeof *plan);
  if (!plan) return no_memory();
  cudnnStatus_t status = make_plan(body, plan);
  if (status == CUDNN_STATUS_SUCCESS && !store_plan(body, plan)) status = no_memory();
  if (status != CUDNN_STATUS_SUCCESS) return free(plan), status;
  pthread_mutex_lock(&plans_lock);
  plan->next = plans;
  plans = plan;
  pthread_mutex_unlock(&plans_lock);
  body->made = plan;
  body->release = release_plan;
  return CUDNN_STATUS_SUCCESS;
}
