#include "tests/unit/backends/cpu/rig.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>

#include "backends/shared/half.h"

/* ---- the host's table ---- */

/* The host behind a handle. */
typedef struct rig_host {
  char text[512];
  rig_answer *answer;
  int32_t threads;
  int64_t kept;      /* bytes allocated */
  int64_t live;      /* blocks not yet freed */
  int32_t refuse_at; /* the allocation that fails, from 1; 0: no failure */
} rig_host;

static rig_host *host_of(const void *handle) { return (rig_host *)(void *)((const tn_env *)handle)->record; }

static tn_status rig_fail(const void *handle, tn_status code, const char *option, const char *format, ...) {
  (void)option;
  va_list args;
  va_start(args, format);
  vsnprintf(host_of(handle)->text, sizeof host_of(handle)->text, format, args);
  va_end(args);
  return code;
}

static void *rig_alloc(const void *handle, size_t bytes) {
  rig_host *host = host_of(handle);
  if (host->refuse_at > 0 && --host->refuse_at == 0) return NULL;
  host->kept += (int64_t)bytes;
  host->live++;
  return calloc(1, bytes > 0 ? bytes : 1);
}

static void rig_free(const void *handle, void *block) {
  if (block != NULL) host_of(handle)->live--;
  free(block);
}

static void rig_variant(tn_query *q, const tn_variant *v) {
  rig_answer *a = host_of(q)->answer;
  const tn_match *m = q->match;
  assert_int_equal(v->struct_size, sizeof *v);
  assert_true(v->n_inplace <= RIG_PAIRS);
  assert_true(v->cost_s >= 0);
  a->n_variants++;
  if (a->wanted != 0 && a->wanted != a->n_variants) return;
  a->id = v->id;
  a->n_inplace = v->n_inplace;
  if (v->n_inplace > 0) memcpy(a->inplace, v->inplace, (size_t)v->n_inplace * sizeof a->inplace[0]);
  if (v->in != NULL) memcpy(a->in, v->in, (size_t)m->n_in * sizeof *v->in);
  if (v->out != NULL) memcpy(a->out, v->out, (size_t)m->n_out * sizeof *v->out);
  a->workspace_bytes = v->workspace_bytes;
  a->prepared_bytes = v->prepared_bytes;
  a->folded_bytes = v->folded_bytes;
  a->deterministic = v->deterministic;
  a->capturable = v->capturable;
}

typedef struct rig_worker {
  pthread_t thread;
  int64_t first, step, chunks;
  void (*body)(void *arg, int64_t chunk);
  void *arg;
} rig_worker;

static void *work(void *arg) {
  rig_worker *w = arg;
  for (int64_t i = w->first; i < w->chunks; i += w->step) w->body(w->arg, i);
  return NULL;
}

/* Every thread runs fixed chunks. The last thread starts first, so that the order of chunks differs, too. */
static void rig_parallel(tn_launch *l, int64_t chunks, void (*body)(void *arg, int64_t chunk), void *arg) {
  int32_t n = host_of(l)->threads;
  rig_worker workers[8];
  for (int32_t i = n - 1; i >= 0; i--) {
    workers[i] = (rig_worker){.first = i, .step = n, .chunks = chunks, .body = body, .arg = arg};
    if (n == 1)
      work(&workers[i]);
    else
      assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  }
  for (int32_t i = 0; i < n && n > 1; i++) pthread_join(workers[i].thread, NULL);
}

static const tn_api table = {.struct_size = sizeof table,
                             .major = TN_ABI_MAJOR,
                             .minor = TN_ABI_MINOR,
                             .fail = rig_fail,
                             .alloc = rig_alloc,
                             .free = rig_free,
                             .variant = rig_variant,
                             .parallel = rig_parallel};

static tn_env env_of(rig_host *host) { return (tn_env){&table, (tn_error_record *)(void *)host}; }

static const tn_device_properties device = {
    .struct_size = sizeof device,
    .host_addressable = 1,
    .threads = 1,
    .name = "rig",
    .bytes_per_s = 1e10,
    .vector_flops_per_s = 1e11,
    .matrix_flops_per_s = {1e11, 1e11, 1e11, 1e11, 1e11, 1e11, 1e11, 1e11, 1e11},
    .launch_s = 1e-6};

/* ---- matches ---- */

void rig_start(rig_match *m) {
  memset(m, 0, sizeof *m);
  m->match = (tn_match){.struct_size = sizeof m->match,
                        .in = m->in,
                        .out = m->out,
                        .out_number = m->out_number,
                        .nodes = m->nodes,
                        .constant = m->constant,
                        .constant_node = m->constant_node};
}

void rig_is_constant(rig_match *m, int32_t operand) { m->constant[operand] = 1; }

void rig_is_zero(rig_match *m, int32_t operand) {
  static const tn_full_attributes zero = {.value = 0};
  static const tn_node full = {.struct_size = sizeof full, .op = "full", .attributes = &zero};
  m->constant_node[operand] = &full;
}

int32_t rig_in(rig_match *m, const tn_type *type) {
  int32_t number = m->match.n_in++;
  assert_int_equal(m->match.n_nodes, 0);
  if (type != NULL) {
    m->types[number] = *type;
    m->in[number] = &m->types[number];
  }
  return number;
}

static int32_t values_of(const rig_match *m) {
  int32_t n = m->match.n_in;
  for (int32_t i = 0; i < m->match.n_nodes; i++) n += m->nodes[i].node->n_out;
  return n;
}

int32_t rig_node(rig_match *m, const char *op, const void *attributes, const int32_t *in, int32_t n_in,
                 const tn_type *out, int32_t n_out) {
  int32_t first = values_of(m), k = m->match.n_nodes++;
  assert_true(k < RIG_NODES && n_in <= RIG_OPERANDS && n_out <= RIG_OPERANDS && first + n_out <= RIG_VALUES);
  for (int32_t i = 0; i < n_in; i++) {
    m->node_operands[k][i] = in[i];
    m->node_in[k][i] = in[i] < 0 || (in[i] < m->match.n_in && m->in[in[i]] == NULL) ? NULL : &m->types[in[i]];
  }
  for (int32_t i = 0; i < n_out; i++) m->types[first + i] = m->node_out[k][i] = out[i];
  m->described[k] = (tn_node){.struct_size = sizeof(tn_node),
                              .n_in = n_in,
                              .n_out = n_out,
                              .op = op,
                              .attributes = attributes,
                              .in = m->node_in[k],
                              .out = m->node_out[k]};
  m->nodes[k] = (tn_match_node){.node = &m->described[k], .in = m->node_operands[k], .first_out = first};
  return first;
}

void rig_out(rig_match *m, int32_t value) {
  int32_t k = m->match.n_out++;
  m->out_number[k] = value;
  m->out[k] = &m->types[value];
}

/* ---- running ---- */

rig_answer rig_query(const tn_kernel *kernel, const rig_match *m) { return rig_query_variant(kernel, m, 0); }

rig_answer rig_query_variant(const tn_kernel *kernel, const rig_match *m, int32_t variant) {
  rig_answer answer = {.status = TN_OK, .wanted = variant};
  rig_host host = {.answer = &answer, .threads = 1};
  tn_query q = {env_of(&host), sizeof q, &m->match, &device};
  answer.status = kernel->query(&q);
  memcpy(answer.text, host.text, sizeof answer.text);
  if (answer.status == TN_OK) {
    assert_true(answer.n_variants >= 1);
    assert_int_equal(answer.deterministic, 1);
    assert_int_equal(answer.capturable, 1);
  } else {
    assert_string_not_equal(answer.text, "");
  }
  return answer;
}

static void make_views(const rig_match *m, const rig_memory *memory, tn_view *in, tn_view *out) {
  for (int32_t i = 0; i < m->match.n_in; i++) {
    if (m->in[i] == NULL) continue;
    in[i].type = *m->in[i];
    in[i].layout = memory->in_layout ? memory->in_layout[i] : tn_layout_row_major(m->in[i]->rank);
    in[i].data = memory->in[i];
  }
  for (int32_t i = 0; i < m->match.n_out; i++) {
    out[i].type = *m->out[i];
    out[i].layout = memory->out_layout ? memory->out_layout[i] : tn_layout_row_major(m->out[i]->rank);
    out[i].data = memory->out[i];
  }
}

/* Memory of a launch, with bytes behind it that the kernel does not write. */
enum { BEHIND = 64 };

static void *guarded(int64_t bytes) {
  void *memory = NULL;
  assert_int_equal(posix_memalign(&memory, 64, (size_t)bytes + BEHIND), 0);
  return memset(memory, 0xa5, (size_t)bytes + BEHIND);
}

static void free_guarded(void *memory, int64_t bytes) {
  for (size_t i = 0; i < BEHIND; i++) assert_int_equal(((uint8_t *)memory)[(size_t)bytes + i], 0xa5);
  free(memory);
}

static tn_status run_prepared(const tn_kernel *kernel, const rig_match *m, const rig_answer *answer,
                              const rig_memory *memory, rig_host *host, tn_view *in, tn_view *out) {
  tn_layout in_layout[RIG_VALUES], out_layout[RIG_VALUES];
  for (int32_t i = 0; i < m->match.n_in; i++) in_layout[i] = in[i].layout;
  for (int32_t i = 0; i < m->match.n_out; i++) out_layout[i] = out[i].layout;
  void *prepared = NULL;
  tn_prepare p = {env_of(host), sizeof p,   &m->match, &device,        in_layout,
                  out_layout,   answer->id, NULL,      memory->backend};
  tn_status status = kernel->prepare == NULL ? TN_OK : kernel->prepare(&p, &prepared);
  if (status != TN_OK) return status;
  tn_launch l = {.env = env_of(host),
                 .struct_size = sizeof(tn_launch),
                 .n_in = m->match.n_in,
                 .n_out = m->match.n_out,
                 .in = in,
                 .out = out,
                 .prepared = prepared,
                 .workspace = guarded(answer->workspace_bytes),
                 .workspace_bytes = answer->workspace_bytes,
                 .name = "test",
                 .folded = guarded(answer->folded_bytes),
                 .folded_bytes = answer->folded_bytes};
  int64_t kept = host->kept;
  host->threads = memory->threads > 0 ? memory->threads : 1;
  if (l.folded_bytes > 0) status = kernel->fold(&l);
  if (status == TN_OK) status = kernel->launch(&l);
  assert_int_equal(host->kept, kept); /* a launch allocates nothing */
  if (kernel->release != NULL) kernel->release(&l.env, prepared);
  free_guarded(l.workspace, l.workspace_bytes);
  free_guarded(l.folded, l.folded_bytes);
  return status;
}

tn_status rig_run(const tn_kernel *kernel, const rig_match *m, const rig_memory *memory, char *text) {
  rig_answer answer = rig_query_variant(kernel, m, memory->variant);
  rig_host host = {.threads = 1};
  tn_view in[RIG_VALUES] = {0}, out[RIG_VALUES] = {0};
  tn_status status = answer.status;
  if (status == TN_OK) {
    make_views(m, memory, in, out);
    status = run_prepared(kernel, m, &answer, memory, &host, in, out);
  }
  if (text != NULL)
    snprintf(text, 512, "%s", answer.status == TN_OK ? host.text : answer.text);
  else if (status != TN_OK)
    print_error("%s: %s\n", kernel->item.name, answer.status ? answer.text : host.text);
  return status;
}

void rig_run_on_all(const tn_kernel *kernel, const rig_match *m, void *const *in, void *const *out) {
  void *first[RIG_VALUES];
  for (int32_t threads = 1; threads <= 4; threads *= 2) {
    rig_memory memory = {.in = in, .out = out, .threads = threads};
    for (int32_t i = 0; i < m->match.n_out; i++) memset(out[i], 0x5a, tn_type_bytes(m->out[i]));
    assert_int_equal(rig_run(kernel, m, &memory, NULL), TN_OK);
    for (int32_t i = 0; i < m->match.n_out; i++) {
      size_t bytes = tn_type_bytes(m->out[i]);
      if (threads == 1)
        first[i] = memcpy(rig_tensor(m->out[i]), out[i], bytes);
      else
        assert_memory_equal(first[i], out[i], bytes);
    }
  }
  for (int32_t i = 0; i < m->match.n_out; i++) free(first[i]);
}

/* Lets allocation k fail, for rising k, until query and prepare make fewer allocations. */
static void sweep_query(const tn_kernel *kernel, const rig_match *m) {
  for (int32_t k = 1;; k++) {
    rig_answer answer = {.status = TN_OK};
    rig_host host = {.answer = &answer, .threads = 1, .refuse_at = k};
    tn_query q = {env_of(&host), sizeof q, &m->match, &device};
    tn_status status = kernel->query(&q);
    assert_int_equal(host.live, 0);
    if (host.refuse_at > 0) {
      assert_int_equal(status, TN_OK);
      return;
    }
    assert_int_equal(status, TN_ENOMEM);
  }
}

void rig_sweep_allocations(const tn_kernel *kernel, const rig_match *m) {
  rig_answer answer = rig_query(kernel, m);
  sweep_query(kernel, m);
  for (int32_t k = 1; kernel->prepare != NULL; k++) {
    rig_host host = {.threads = 1, .refuse_at = k};
    void *prepared = NULL;
    tn_prepare p = {env_of(&host), sizeof p, &m->match, &device, NULL, NULL, answer.id, NULL};
    tn_status status = kernel->prepare(&p, &prepared);
    assert_int_equal(status, host.refuse_at > 0 ? TN_OK : TN_ENOMEM);
    if (status == TN_OK && kernel->release != NULL) kernel->release(&p.env, prepared);
    assert_int_equal(host.live, 0);
    if (status == TN_OK) return;
  }
}

/* ---- types and data ---- */

tn_type rig_type(int32_t dtype, int32_t rank, const int64_t *dims) {
  tn_type type = {dtype, rank, {0}};
  for (int32_t i = 0; i < rank; i++) type.dims[i] = dims[i];
  return type;
}

void *rig_tensor(const tn_type *type) { return calloc(1, tn_type_bytes(type) + 1); }

double rig_get(const tn_type *type, const void *data, int64_t at) {
  switch (type->dtype) {
  case TN_F64: return ((const double *)data)[at];
  case TN_F32: return (double)((const float *)data)[at];
  case TN_F16: return (double)tn_f32_of_f16(((const uint16_t *)data)[at]);
  case TN_BF16: return (double)tn_f32_of_bf16(((const uint16_t *)data)[at]);
  case TN_I64: return (double)((const int64_t *)data)[at];
  case TN_I32: return (double)((const int32_t *)data)[at];
  case TN_I8: return (double)((const int8_t *)data)[at];
  default: return (double)((const uint8_t *)data)[at];
  }
}

void rig_put(const tn_type *type, void *data, int64_t at, double value) {
  switch (type->dtype) {
  case TN_F64: ((double *)data)[at] = value; break;
  case TN_F32: ((float *)data)[at] = (float)value; break;
  case TN_F16: ((uint16_t *)data)[at] = tn_f16_of_f32((float)value); break;
  case TN_BF16: ((uint16_t *)data)[at] = tn_bf16_of_f32((float)value); break;
  case TN_I64: ((int64_t *)data)[at] = (int64_t)value; break;
  case TN_I32: ((int32_t *)data)[at] = (int32_t)value; break;
  default: ((uint8_t *)data)[at] = (uint8_t)(int64_t)value; break;
  }
}

double rig_rounded(int32_t dtype, double value) {
  tn_type type = {dtype, 0, {0}};
  uint64_t element = 0;
  rig_put(&type, &element, 0, value);
  return rig_get(&type, &element, 0);
}

double rig_ulp(int32_t dtype, double value) {
  static const int digits[TN_DTYPES] = {0, 0, 0, 0, 0, 11, 8, 24, 53};
  static const int least[TN_DTYPES] = {0, 0, 0, 0, 0, -24, -133, -149, -1074};
  int exponent;
  if (!tn_dtype_is_float(dtype)) return 1;
  frexp(value, &exponent);
  exponent -= digits[dtype];
  return ldexp(1, exponent > least[dtype] && value != 0 ? exponent : least[dtype]);
}

void *rig_drawn(const tn_type *type, tn_rng *rng) {
  void *data = rig_tensor(type);
  for (int64_t i = 0; i < tn_type_count(type); i++) {
    double value = tn_rng_between(rng, -4, 4);
    if (!tn_dtype_is_float(type->dtype)) value = (double)(tn_rng_below(rng, 19) - 9);
    if (tn_rng_below(rng, 16) == 0) value = 0;
    if (type->dtype == TN_U8) value = fabs(value);
    if (type->dtype == TN_BOOL) value = value > 0;
    rig_put(type, data, i, value);
  }
  return data;
}

void rig_coordinates(const tn_type *type, int64_t at, int64_t *coordinates) {
  for (int32_t i = type->rank - 1; i >= 0; i--) {
    coordinates[i] = at % type->dims[i];
    at /= type->dims[i];
  }
}

int64_t rig_broadcast_at(const tn_type *type, const tn_type *space, const int64_t *coordinates) {
  int64_t at = 0;
  for (int32_t i = 0; i < type->rank; i++) {
    int64_t c = coordinates[space->rank - type->rank + i];
    at = at * type->dims[i] + (type->dims[i] == 1 ? 0 : c);
  }
  return at;
}
