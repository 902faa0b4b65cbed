/* tests/fakecuda/cudnn/support.c: see support.h. The table is that of cuDNN 9.19 for the patterns that it was
 * asked for; tests/fakecuda/cudnn/library_test.c compares where the library is. */
#include <stdlib.h>
#include "tests/fakecuda/cudnn/support.h"

#define OP(kind) CUDNN_BACKEND_OPERATION_##kind##_DESCRIPTOR

/* What a graph consists of. */
typedef struct pattern {
  int forward, data, filter, matmuls, statistics, bn_backward, bn_finalize, pointwise, reductions, reshapes;
  int prologue, epilogue; /* pointwise operations before and behind the convolution */
  int32_t type;           /* of the largest tensor in memory */
  bool channels_last;     /* all tensors of 4 dimensions in memory have channels innermost */
  bool grouped;
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

bool fakednn_is_16_bit(const fakednn_program *program) {
  int32_t type = read_pattern(program).type;
  return type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16;
}

/* ---- the table ---- */

enum {
  OWN = 1 << FAKEDNN_ENGINE_OWN,
  COMPILED = 1 << FAKEDNN_ENGINE_COMPILED,
  PIECES = 1 << FAKEDNN_ENGINE_PIECES,
  PLAIN = 1 << FAKEDNN_ENGINE_PLAIN
};

#define NO_PATTERN CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN
#define NO_TYPE    CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE
#define NO_LAYOUT  CUDNN_STATUS_NOT_SUPPORTED_LAYOUT

/* Fusions that are kernels of the library, for f16 and channels innermost, on Ampere and Hopper. */
static cudnnStatus_t find_own_fusion(const pattern *p, int arch, unsigned *engines) {
  FAKEDNN_REQUIRE(p->type == CUDNN_DATA_HALF, NO_TYPE, "this fusion exists for half only");
  FAKEDNN_REQUIRE(p->channels_last, NO_LAYOUT, "this fusion exists for channels innermost only");
  FAKEDNN_REQUIRE(!p->grouped, NO_PATTERN, "this fusion has no groups");
  FAKEDNN_REQUIRE(arch >= 80 && arch <= 90, CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH,
                  "this fusion exists for sm_80 to sm_90");
  *engines = OWN;
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t find_convolution(const fakednn_program *g, const pattern *p, int arch,
                                      unsigned *engines) {
  int others = p->reductions + p->reshapes + p->matmuls + p->bn_finalize;
  FAKEDNN_REQUIRE(p->forward + p->data + p->filter == 1 && others == 0, NO_PATTERN,
                  "no engine has these operations beside a convolution");
  if (g->n_nodes == 1) {
    *engines = p->filter ? OWN | COMPILED | PIECES | PLAIN : OWN | COMPILED | PLAIN;
    return CUDNN_STATUS_SUCCESS;
  }
  if (p->data && p->bn_backward) return find_own_fusion(p, arch, engines);
  if (p->filter && p->prologue && !p->epilogue && !p->statistics) return find_own_fusion(p, arch, engines);
  if (p->forward && p->prologue && p->statistics) return find_own_fusion(p, arch, engines);
  FAKEDNN_REQUIRE(!p->prologue && !p->bn_backward, NO_PATTERN,
                  "no engine has operations before a convolution without statistics behind it");
  FAKEDNN_REQUIRE(p->channels_last, NO_LAYOUT, "fusions exist for channels innermost only");
  FAKEDNN_REQUIRE(!p->grouped || !p->statistics, NO_PATTERN, "statistics behind groups");
  bool half = p->type == CUDNN_DATA_HALF;
  *engines = p->filter || (p->statistics && !half) ? COMPILED : OWN | COMPILED;
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t find_pattern(const fakednn_program *g, const pattern *p, int arch, unsigned *engines) {
  if (p->convolution) return find_convolution(g, p, arch, engines);
  FAKEDNN_REQUIRE(!p->bn_backward, NO_PATTERN, "BN_BWD_WEIGHTS without a data gradient before it");
  if (p->statistics + p->bn_finalize > 0) {
    FAKEDNN_REQUIRE(g->n_nodes == 1, NO_PATTERN, "statistics with other operations and no convolution");
    *engines = OWN;
    return CUDNN_STATUS_SUCCESS;
  }
  if (p->matmuls > 1) {
    FAKEDNN_REQUIRE(p->type == CUDNN_DATA_HALF || p->type == CUDNN_DATA_BFLOAT16, NO_TYPE,
                    "attention exists for half and bfloat16 only");
    FAKEDNN_REQUIRE(arch >= 80, CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH, "attention exists from sm_80 on");
  }
  *engines = COMPILED;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t fakednn_find_engines(const fakednn_program *program, int arch, unsigned *engines) {
  pattern p = read_pattern(program);
  const char *no_jit = getenv("FAKECUDA_CUDNN_NO_JIT");
  *engines = 0;
  FAKEDNN_TRY(find_pattern(program, &p, arch, engines));
  if (no_jit && *no_jit == '1') *engines &= ~(unsigned)COMPILED;
  FAKEDNN_REQUIRE(*engines, CUDNN_STATUS_NOT_SUPPORTED, "the engines of this graph are compiled at run time");
  return CUDNN_STATUS_SUCCESS;
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
