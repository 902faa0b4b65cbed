/* tests/fakecuda/cudnn/support.c: see support.h. The table is that of cuDNN 9.19 for the patterns that it was
 * asked for; tests/fakecuda/cudnn/tests/contract_test.c compares where the library is. */
#include <stdlib.h>
#include "tests/fakecuda/cudnn/support.h"
#include "tests/fakecuda/driver/find.h"

#define OP(kind) CUDNN_BACKEND_OPERATION_##kind##_DESCRIPTOR

/* The parts of a graph. */
typedef struct pattern {
  int forward, data, filter, matmuls, statistics, bn_backward, bn_finalize, pointwise, reductions, reshapes;
  int prologue, epilogue; /* pointwise operations before and behind the convolution */
  int32_t type;           /* of the largest tensor in memory */
  bool channels_last;     /* all tensors of 4 dimensions in memory have channels innermost */
  bool grouped;
  int64_t channels, rows; /* of the convolution's filters: channels, rows */
  const fakednn_node *convolution;
} pattern;

static void count_node(pattern *p, const fakednn_node *node) {
  switch (node->kind) {
  case OP(CONVOLUTION_FORWARD): p->forward++; break;
  case OP(CONVOLUTION_BACKWARD_DATA): p->data++; break;
  case OP(CONVOLUTION_BACKWARD_FILTER): p->filter++; break;
  case OP(MATMUL): p->matmuls++; return;
  case OP(GEN_STATS): p->statistics++; return;
  case OP(BN_BWD_WEIGHTS): p->bn_backward++; return;
  case OP(BN_FINALIZE_STATISTICS): p->bn_finalize++; return;
  case OP(REDUCTION): p->reductions++; return;
  case OP(RESHAPE): p->reshapes++; return;
  default: p->pointwise++; return;
  }
  p->convolution = node;
}

/* Whether a node needs, directly or through others, what the convolution writes. */
static bool is_behind(const fakednn_program *g, const fakednn_node *node, const fakednn_node *convolution) {
  int n;
  const fakednn_slot *slots = fakednn_slots(node->kind, &n);
  for (int i = 0; i < n; i++) {
    int32_t writer = slots[i].output || node->tensor[i] < 0 ? -1 : g->tensors[node->tensor[i]].writer;
    if (writer < 0) continue;
    if (&g->nodes[writer] == convolution || is_behind(g, &g->nodes[writer], convolution)) return true;
  }
  return false;
}

static bool has_channels_last(const fakednn_tensor *t) {
  return t->rank != 4 || t->is_virtual || t->by_value || t->dims[1] == 1 || t->strides[1] == 1;
}

static pattern read_pattern(const fakednn_program *g) {
  pattern p = {.type = CUDNN_DATA_FLOAT, .channels_last = true};
  int64_t largest = 0;
  for (int32_t i = 0; i < g->n_nodes; i++) count_node(&p, &g->nodes[i]);
  for (int32_t i = 0; i < g->n_tensors; i++) {
    const fakednn_tensor *t = &g->tensors[i];
    if (!has_channels_last(t)) p.channels_last = false;
    if (t->is_virtual || t->by_value || fakednn_elements(t) <= largest) continue;
    largest = fakednn_elements(t);
    p.type = t->type;
  }
  if (!p.convolution) return p;
  const int32_t *of = p.convolution->tensor;
  p.channels = g->tensors[of[FAKEDNN_CONV_W]].dims[1];
  p.rows = g->tensors[of[FAKEDNN_CONV_W]].dims[2];
  p.grouped = g->tensors[of[FAKEDNN_CONV_X]].dims[1] != g->tensors[of[FAKEDNN_CONV_W]].dims[1];
  for (int32_t i = 0; i < g->n_nodes; i++) {
    if (g->nodes[i].kind != OP(POINTWISE)) continue;
    if (is_behind(g, &g->nodes[i], p.convolution))
      p.epilogue++;
    else
      p.prologue++;
  }
  return p;
}

int32_t fakednn_main_type(const fakednn_program *program) { return read_pattern(program).type; }

bool fakednn_uses_tensor_cores(const fakednn_program *program, int32_t engine) {
  pattern p = read_pattern(program);
  return engine == FAKEDNN_ENGINE_COMPILED || (engine == FAKEDNN_ENGINE_OWN && p.convolution);
}

/* ---- the table ---- */

enum {
  OWN = 1 << FAKEDNN_ENGINE_OWN,
  COMPILED = 1 << FAKEDNN_ENGINE_COMPILED,
  PIECES = 1 << FAKEDNN_ENGINE_PIECES,
  PLAIN = 1 << FAKEDNN_ENGINE_PLAIN,
  EXACT = 1 << FAKEDNN_ENGINE_EXACT
};

static unsigned none(const char *why) {
  fakednn_refuse(CUDNN_STATUS_NOT_SUPPORTED, "no engine has this graph: %s", why);
  return 0;
}

/* Fusions with kernels of the library: for half, on Ampere and Hopper. */
static unsigned find_half(const pattern *p, int arch, unsigned engines) {
  if (p->type != CUDNN_DATA_HALF) return none("the fusion exists for half only");
  if (arch < 80 || arch > 90) return none("the fusion exists for sm_80 to sm_90");
  return engines;
}

/* Compiled kernels of 16 bits load 8 channels at once. */
static unsigned find_compiled(const pattern *p) {
  return p->type == CUDNN_DATA_FLOAT || p->grouped || p->channels % 8 == 0 ? COMPILED : 0;
}

static unsigned find_single(const pattern *p, int arch) {
  bool float_type = p->type == CUDNN_DATA_FLOAT;
  if (p->forward) return OWN | find_compiled(p) | PLAIN;
  if (p->data) return OWN | PLAIN;
  return OWN | PIECES | PLAIN | (!float_type && arch < 90 ? COMPILED : 0);
}

/* The library's own kernels with statistics. */
static unsigned find_statistics(const pattern *p) {
  return p->type == CUDNN_DATA_HALF && p->rows <= 5 && p->channels % 8 == 0 ? OWN : 0;
}

static unsigned find_prologue(const pattern *p, int arch) {
  bool half = p->type == CUDNN_DATA_HALF && arch < 90;
  if (p->data) return none("operations before a data gradient");
  if (p->filter && p->statistics + p->epilogue > 0)
    return none("operations on both sides of a weight gradient");
  if (p->filter) return find_half(p, arch, arch < 90 ? OWN | COMPILED : OWN);
  if (p->epilogue > 0) return none("operations on both sides of a convolution");
  return COMPILED | (p->statistics ? find_statistics(p) : half ? OWN : 0);
}

/* A bias and an activation have kernels of the library, longer chains do not. */
static unsigned find_epilogue(const pattern *p) {
  if (p->statistics) {
    if (p->epilogue > 0) return none("statistics behind other operations");
    return COMPILED | find_statistics(p);
  }
  if (p->forward && p->epilogue <= 2) return OWN | find_compiled(p) | PLAIN;
  return p->type == CUDNN_DATA_BFLOAT16 ? COMPILED : COMPILED | EXACT;
}

static unsigned find_convolution(const fakednn_program *g, const pattern *p, int arch) {
  if (p->forward + p->data + p->filter != 1) return none("more than one convolution");
  if (p->reductions + p->reshapes + p->matmuls + p->bn_finalize > 0)
    return none("operations beside a convolution");
  if (g->n_nodes == 1) return find_single(p, arch);
  if (!p->channels_last) return none("fusions exist for channels innermost only");
  if (p->grouped && p->prologue + p->statistics + p->bn_backward > 0) return none("the fusion has no groups");
  if (p->bn_backward)
    return p->data ? find_half(p, arch, OWN) : none("BN_BWD_WEIGHTS without a data gradient");
  return p->prologue ? find_prologue(p, arch) : find_epilogue(p);
}

static unsigned find_pattern(const fakednn_program *g, const pattern *p, int arch) {
  if (p->convolution) return find_convolution(g, p, arch);
  if (p->bn_backward) return none("BN_BWD_WEIGHTS without a data gradient");
  if (p->bn_finalize) return g->n_nodes == 1 ? OWN : none("BN_FINALIZE with other operations");
  if (p->statistics) return none("statistics without a convolution");
  if (p->matmuls > 1 && arch < 80) return none("attention exists from sm_80 on");
  if (p->matmuls > 2 && p->type == CUDNN_DATA_FLOAT)
    return none("gradients of attention exist for 16 bits only");
  return COMPILED;
}

/* The library compiles code where it can open the driver's library, or one of its name. */
static bool is_compiler_missing(void) {
  const char *no_jit = getenv("FAKECUDA_CUDNN_NO_JIT");
  return (no_jit && *no_jit == '1') || !fakecuda_is_loaded();
}

unsigned fakednn_find_engines(const fakednn_program *program, int arch) {
  pattern p = read_pattern(program);
  unsigned engines = find_pattern(program, &p, arch);
  if (!engines || !is_compiler_missing()) return engines;
  engines &= ~(unsigned)(COMPILED | EXACT);
  return engines ? engines : none("its engines are compiled at run time");
}

int64_t fakednn_workspace(const fakednn_program *program, int32_t engine, int64_t knob) {
  pattern p = read_pattern(program);
  int64_t bytes = 0;
  if (p.filter) bytes = 4 * fakednn_elements(&program->tensors[p.convolution->tensor[FAKEDNN_CONV_W]]);
  switch (engine) {
  case FAKEDNN_ENGINE_OWN: return bytes + 4096 * knob;
  case FAKEDNN_ENGINE_PLAIN: return bytes + 65536 * (knob + 1);
  default: return p.matmuls > 1 ? 1024 * (knob + 1) : 256 * knob;
  }
}
