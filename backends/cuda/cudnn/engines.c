/* backends/cuda/cudnn/engines.c: see engines.h. */
#include "backends/cuda/cudnn/engines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/cudnn/descriptors.h"
#include "backends/cuda/objects.h"

enum { MOST_CONFIGURATIONS = 40, MOST_NOTES = 16, HOST_ALIGNMENT = 64 /* of the workspace of a launch */ };
static const int64_t usual_workspace = 256 << 20; /* at most */

/* ---- remembered answers ---- */

typedef struct tn_cudnn_answer {
  struct tn_cudnn_answer *next;
  uint64_t hash;
  bool exact;
  tn_cudnn_engines engines;
  char text[]; /* of the device, a line break, of the graph */
} tn_cudnn_answer;

static uint64_t engines_hash(const char *text, bool exact) {
  uint64_t hash = exact ? 1469598103934665603u : 1469598103934665604u;
  for (; *text != '\0'; text++) hash = (hash ^ (uint8_t)*text) * 1099511628211u;
  return hash;
}

static tn_cudnn_answer *engines_find_answer(const tn_cudnn_library *l, const char *text, bool exact) {
  uint64_t hash = engines_hash(text, exact);
  for (tn_cudnn_answer *a = l->answers; a != NULL; a = a->next)
    if (a->hash == hash && a->exact == exact && strcmp(a->text, text) == 0) return a;
  return NULL;
}

static tn_cudnn_answer *engines_add_answer(tn_cudnn_library *l, const char *text, bool exact) {
  tn_cudnn_answer *a = calloc(1, sizeof *a + strlen(text) + 1);
  if (a == NULL) return NULL;
  a->hash = engines_hash(text, exact);
  a->exact = exact;
  strcpy(a->text, text);
  a->next = l->answers;
  l->answers = a;
  return a;
}

void tn_cudnn_forget_engines(tn_cudnn_library *library) {
  for (tn_cudnn_answer *a = library->answers, *next; a != NULL; a = next) {
    next = a->next;
    free(a);
  }
  library->answers = NULL;
}

/* A search, with the engines found: those to be loaded, and the best one to be compiled. */
typedef struct engines_search {
  const tn_cudnn_library *library;
  cudnnBackendDescriptor_t graph, device;
  bool exact;
  bool matrix; /* cuDNN gives fused engines for f16 no notes, but all of them use matrix units */
  int64_t most_workspace;
  int32_t n_seen;
  tn_cudnn_engines found, compiled;
  char failure[TN_CUDNN_REASON]; /* of a call that cuDNN should have answered; "": none */
} engines_search;

static void engines_note_failure(engines_search *s, const tn_cudnn_calls *c) {
  if (tn_cudnn_broke(c) && *s->failure == '\0') snprintf(s->failure, sizeof s->failure, "%s", c->why);
}

/* ---- one configuration ---- */

static bool engines_has_note(const int32_t *notes, int64_t n, int32_t note) {
  for (int64_t i = 0; i < n; i++)
    if (notes[i] == note) return true;
  return false;
}

/* Sums in f16 lose digits, and so do transformed products. */
static bool engines_is_inaccurate(const int32_t *notes, int64_t n) {
  static const int32_t refused[] = {CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION,
                                    CUDNN_NUMERICAL_NOTE_FFT,
                                    CUDNN_NUMERICAL_NOTE_WINOGRAD,
                                    CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4,
                                    CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6,
                                    CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
    if (engines_has_note(notes, n, refused[i])) return true;
  return false;
}

/* Notes that this version of the library does not know are ignored. */
static bool engines_read_notes(tn_cudnn_calls *c, cudnnBackendDescriptor_t engine, const engines_search *s,
                               tn_cudnn_engine *e) {
  int32_t notes[MOST_NOTES], behaviour[MOST_NOTES];
  int64_t n =
      tn_cudnn_get(c, engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, MOST_NOTES, notes);
  int64_t m = tn_cudnn_get(c, engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, MOST_NOTES,
                           behaviour);
  e->compiled = engines_has_note(behaviour, m, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION);
  e->deterministic = !engines_has_note(notes, n, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
  e->matrix = s->matrix || engines_has_note(notes, n, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  bool rounds = e->matrix || engines_has_note(notes, n, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
  return tn_cudnn_ok(c) && !engines_is_inaccurate(notes, n) && !(s->exact && rounds);
}

/* Without a place for them, cuDNN does not say how many there are. */
static void engines_read_knobs(tn_cudnn_calls *c, cudnnBackendDescriptor_t configuration,
                               tn_cudnn_engine *e) {
  cudnnBackendDescriptor_t choices[TN_CUDNN_KNOBS];
  for (int32_t i = 0; i < TN_CUDNN_KNOBS; i++)
    choices[i] = tn_cudnn_create(c, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
  int64_t n = tn_cudnn_get(c, configuration, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                           TN_CUDNN_KNOBS, choices);
  for (int64_t i = 0; i < n && i < TN_CUDNN_KNOBS; i++) {
    tn_cudnn_get(c, choices[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &e->knob[i]);
    tn_cudnn_get(c, choices[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &e->knob_value[i]);
  }
  e->n_knobs = n < TN_CUDNN_KNOBS ? (int32_t)n : TN_CUDNN_KNOBS;
}

/* false: the engine is not wanted, or a call has failed. */
static bool engines_read(engines_search *s, cudnnBackendDescriptor_t configuration, tn_cudnn_engine *e) {
  tn_cudnn_calls c;
  tn_cudnn_calls_init(&c, s->library);
  *e = (tn_cudnn_engine){.index = -1};
  cudnnBackendDescriptor_t engine = tn_cudnn_create(&c, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  tn_cudnn_get(&c, configuration, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine);
  tn_cudnn_get(&c, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &e->index);
  tn_cudnn_get(&c, configuration, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
               &e->workspace_bytes);
  bool wanted = engines_read_notes(&c, engine, s, e) && e->workspace_bytes <= s->most_workspace;
  if (wanted) engines_read_knobs(&c, configuration, e);
  wanted = wanted && tn_cudnn_ok(&c);
  engines_note_failure(s, &c);
  tn_cudnn_calls_free(&c);
  return wanted;
}

/* ---- choosing ---- */

static bool engines_are_equal(const tn_cudnn_engine *a, const tn_cudnn_engine *b) {
  if (a->index != b->index || a->n_knobs != b->n_knobs) return false;
  for (int32_t i = 0; i < a->n_knobs; i++)
    if (a->knob[i] != b->knob[i] || a->knob_value[i] != b->knob_value[i]) return false;
  return true;
}

static bool engines_have_deterministic(const tn_cudnn_engines *e) {
  for (int32_t i = 0; i < e->n; i++)
    if (e->engine[i].deterministic) return true;
  return false;
}

/* The last place is kept for an engine whose sums have a fixed order, if none of the others has. One engine
 * that is compiled at run time is enough: compiling takes longer than what a better one saves. */
static void engines_take(tn_cudnn_engines *e, const tn_cudnn_engine *found) {
  bool last = e->n == TN_CUDNN_ENGINES - 1 && !engines_have_deterministic(e);
  if (e->n == TN_CUDNN_ENGINES || (last && !found->deterministic)) return;
  for (int32_t i = 0; i < e->n; i++)
    if (engines_are_equal(&e->engine[i], found)) return;
  e->engine[e->n] = *found;
  snprintf(e->engine[e->n].name, sizeof found->name, "engine %d.%d%s", (int)found->index, (int)e->n,
           found->compiled ? " compiled" : "");
  e->n++;
}

static bool engines_are_enough(const tn_cudnn_engines *e) {
  return e->n == TN_CUDNN_ENGINES && engines_have_deterministic(e);
}

static void engines_ask(engines_search *s, tn_cudnn_calls *c, cudnnBackendHeurMode_t mode) {
  cudnnBackendDescriptor_t list[MOST_CONFIGURATIONS];
  cudnnBackendDescriptor_t h = tn_cudnn_create(c, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  tn_cudnn_set_descriptor(c, h, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, s->graph);
  tn_cudnn_set(c, h, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  tn_cudnn_set_descriptor(c, h, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, s->device);
  tn_cudnn_finalize(c, h);
  int64_t n = tn_cudnn_get_descriptors(c, h, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                       CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, MOST_CONFIGURATIONS, list);
  for (int64_t i = 0; i < n && i < MOST_CONFIGURATIONS && !engines_are_enough(&s->found); i++) {
    tn_cudnn_engine e;
    s->n_seen++;
    if (engines_read(s, list[i], &e)) engines_take(e.compiled ? &s->compiled : &s->found, &e);
  }
}

/* A mode that has no answer is no failure where the other one has. */
static void engines_ask_modes(engines_search *s, const tn_cudnn_calls *base, char reason[TN_CUDNN_REASON]) {
  static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
  for (size_t i = 0; i < 2 && !engines_are_enough(&s->found); i++) {
    tn_cudnn_calls c;
    tn_cudnn_calls_init(&c, base->library);
    engines_ask(s, &c, modes[i]);
    engines_note_failure(s, &c);
    if (!tn_cudnn_ok(&c) && *reason == '\0') snprintf(reason, TN_CUDNN_REASON, "%s", c.why);
    tn_cudnn_calls_free(&c);
  }
}

/* The one compiled engine stands where there are no others; a second one only if it alone is deterministic.
 */
static void engines_use_compiled(engines_search *s) {
  for (int32_t i = 0; i < s->compiled.n; i++) {
    const tn_cudnn_engine *e = &s->compiled.engine[i];
    if (s->found.n == 0 || (e->deterministic && !engines_have_deterministic(&s->found)))
      engines_take(&s->found, e);
  }
}

static void engines_explain_none(const tn_cudnn_library *l, tn_cudnn_engines *engines) {
  static const char none[] = "cuDNN has no engine for this graph on this device";
  if (*l->driverless == '\0')
    snprintf(engines->reason, sizeof engines->reason, "%s", none);
  else
    snprintf(engines->reason, sizeof engines->reason,
             "%s; those that are compiled at run time are missing: %.300s", none, l->driverless);
}

/* A failure leaves the graph without engines: fewer of them would change which variant is which. */
static void engines_explain(const engines_search *s, const char *reason, tn_cudnn_engines *engines) {
  engines->broken = *s->failure != '\0';
  if (engines->broken) {
    engines->n = 0;
    reason = s->failure;
  }
  if (engines->n > 0) return;
  if (*reason != '\0')
    snprintf(engines->reason, sizeof engines->reason, "%s", reason);
  else if (s->n_seen == 0)
    engines_explain_none(s->library, engines);
  else
    snprintf(engines->reason, sizeof engines->reason,
             "cuDNN's %d engines for this graph round more than asked for, or need more than %lld MiB of "
             "workspace",
             (int)s->n_seen, (long long)(s->most_workspace >> 20));
}

static void engines_search_graph(const tn_cudnn_library *l, const tn_cudnn_graph *g, const char *details,
                                 bool exact, tn_cudnn_engines *engines) {
  engines_search s = {.library = l, .exact = exact, .most_workspace = g->most_workspace};
  s.matrix = g->n_operations > 1 && (g->tensors[0].dtype == TN_F16 || g->tensors[1].dtype == TN_F16);
  char reason[TN_CUDNN_REASON] = "";
  tn_cudnn_calls c;
  if (s.most_workspace == 0) s.most_workspace = usual_workspace;
  tn_cudnn_calls_init(&c, l);
  s.device = tn_cudnn_describe_device(&c, details);
  if (!tn_cudnn_ok(&c))
    snprintf(reason, sizeof reason, "the description of the device is not what cuDNN reads: %.400s", c.why);
  s.graph = tn_cudnn_describe_graph(&c, g, NULL);
  if (tn_cudnn_ok(&c))
    engines_ask_modes(&s, &c, reason);
  else if (*reason == '\0')
    snprintf(reason, sizeof reason, "%s", c.why);
  engines_note_failure(&s, &c);
  tn_cudnn_calls_free(&c);
  engines_use_compiled(&s);
  *engines = s.found;
  engines_explain(&s, reason, engines);
}

/* ---- asking ---- */

static tn_cudnn_answer *engines_make_answer(tn_cudnn_library *l, const tn_cudnn_graph *g, const char *details,
                                            const char *text, bool exact) {
  tn_cudnn_answer *a = engines_add_answer(l, text, exact);
  if (a == NULL) return NULL;
  engines_search_graph(l, g, details, exact, &a->engines);
  l->n_broken += a->engines.broken;
  return a;
}

static tn_status engines_remember(tn_env *env, tn_cudnn_library *l, const tn_cudnn_graph *g,
                                  const char *details, const char *text, bool exact,
                                  tn_cudnn_engines *engines) {
  pthread_mutex_lock(&l->lock);
  bool was_whole = l->n_broken == 0;
  tn_cudnn_answer *a = engines_find_answer(l, text, exact);
  if (a == NULL) a = engines_make_answer(l, g, details, text, exact);
  bool broke = was_whole && l->n_broken > 0;
  pthread_mutex_unlock(&l->lock);
  if (a == NULL) return tn_fail(env, TN_ENOMEM, NULL, "no memory for %zu bytes", strlen(text));
  if (broke)
    tn_env_log(env, TN_LOG_WARN, "cuda: cuDNN failed, so other kernels run in its place: %s",
               a->engines.reason);
  *engines = a->engines;
  return engines->n > 0 ? TN_OK : tn_fail(env, TN_EUNSUPPORTED, NULL, "%s", engines->reason);
}

tn_status tn_cudnn_find_engines(tn_env *env, const void *backend, const tn_device_properties *device,
                                const tn_cudnn_graph *g, bool exact, tn_cudnn_engines *engines) {
  engines->n = 0;
  if (backend == NULL) return tn_fail(env, TN_EUNSUPPORTED, NULL, "the backend cuda is not open");
  tn_cudnn_library *l = ((const tn_cuda_backend_object *)backend)->cudnn;
  if (l == NULL) return tn_fail(env, TN_EUNSUPPORTED, NULL, "[backend.cuda] cudnn = no");
  if (*l->absent) return tn_fail(env, TN_EUNSUPPORTED, NULL, "%s", l->absent);
  if (device->details == NULL)
    return tn_fail(env, TN_EUNSUPPORTED, NULL, "the device has no description that cuDNN reads");
  size_t head = strlen(device->details) + 1;
  char *text = tn_new(env, head + TN_CUDNN_TEXT);
  if (text == NULL) return TN_ENOMEM;
  snprintf(text, head + 1, "%s\n", device->details);
  tn_status status =
      tn_cudnn_graph_text(g, text + head)
          ? engines_remember(env, l, g, device->details, text, exact, engines)
          : tn_fail(env, TN_EUNSUPPORTED, NULL, "the graph has too many tensors or operations");
  tn_delete(env, text);
  return status;
}

int64_t tn_cudnn_version_of(const void *backend) {
  const tn_cudnn_library *l = backend != NULL ? ((const tn_cuda_backend_object *)backend)->cudnn : NULL;
  return l == NULL || *l->absent ? 0 : l->version;
}

/* ---- offering ---- */

int64_t tn_cudnn_engine_workspace(const tn_cudnn_engine *engine) {
  return (engine->workspace_bytes + TN_CUDNN_WORKSPACE_ROUND - 1) / TN_CUDNN_WORKSPACE_ROUND *
         TN_CUDNN_WORKSPACE_ROUND;
}

/* With room to begin at a multiple of TN_CUDNN_WORKSPACE_ROUND. */
static int64_t engines_workspace(const tn_cudnn_engine *e, const tn_cudnn_offer *offer) {
  int64_t bytes = tn_cudnn_engine_workspace(e) + offer->workspace_bytes;
  return bytes > 0 ? bytes + TN_CUDNN_WORKSPACE_ROUND - HOST_ALIGNMENT : 0;
}

enum { VARIANT_NAME = 64 };

/* On sm_90 cuDNN compiles convolutions with code for sm_80. */
static tn_cuda_kind engines_kind(const tn_query *q, const tn_cudnn_engine *e, const tn_cudnn_offer *offer) {
  if (!e->matrix) return TN_CUDA_PLAIN_CONVOLUTION;
  bool older = offer->kind == TN_CUDA_CONVOLUTION && e->compiled && q->device->arch >= 90;
  return older ? TN_CUDA_OLDER_CONVOLUTION : offer->kind;
}

/* The order of the engines is cuDNN's. */
static double engines_cost(const tn_query *q, const tn_cudnn_engine *e, const tn_cudnn_offer *offer,
                           int32_t rank) {
  const tn_device_properties *d = q->device;
  double rate = !e->matrix               ? d->vector_flops_per_s
                : offer->dtype == TN_F32 ? 0.5 * d->matrix_flops_per_s[TN_F16]
                                         : d->matrix_flops_per_s[offer->dtype];
  double cost_s = tn_cuda_estimate_s(d, engines_kind(q, e, offer), offer->bytes, offer->flops, rate);
  return cost_s * (1 + 0.02 * rank) + offer->other_s;
}

tn_status tn_cudnn_offer_engines(tn_query *q, const tn_cudnn_graph *g, const tn_cudnn_offer *offer) {
  tn_cudnn_engines engines;
  tn_status status = tn_cudnn_find_engines(&q->env, q->backend, q->device, g, offer->exact, &engines);
  for (int32_t i = 0; status == TN_OK && i < engines.n; i++) {
    const tn_cudnn_engine *e = &engines.engine[i];
    char name[VARIANT_NAME];
    snprintf(name, sizeof name, "%s%s%s", e->name, offer->form != NULL ? " " : "",
             offer->form != NULL ? offer->form : "");
    tn_variant v = {.struct_size = sizeof v,
                    .id = offer->first_id + i,
                    .name = name,
                    .in = offer->in,
                    .out = offer->out,
                    .workspace_bytes = engines_workspace(e, offer),
                    .prepared_bytes = offer->prepared_bytes,
                    .n_inplace = offer->n_inplace,
                    .inplace = offer->inplace,
                    .folded_bytes = offer->folded_bytes,
                    .cost_s = engines_cost(q, e, offer, i),
                    .deterministic = e->deterministic && !offer->varies,
                    .capturable = 1,
                    .plain_sums = offer->plain_sums};
    tn_add_variant(q, &v);
  }
  return status;
}
