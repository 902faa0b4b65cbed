/* Instructions between values: each is a call of a function of device/pointwise.cuh, or of CUDA C. */
#include "backends/cuda/pointwise/printer.h"

/* The function, and its work in operations of f32. */
typedef struct compute_rule {
  const char *function;
  double work;
} compute_rule;

/* A function of CUDA C: the printer adds the f of those for f32. */
#define FUNCTION(op, function, work, ...) [TN_PW_FN_##op] = {#function, work},
static const compute_rule compute_rules[TN_PW_CAST] = {
    [TN_PW_NEG] = {"op_neg", 1},
    [TN_PW_ABS] = {"op_abs", 1},
    [TN_PW_SIGN] = {"op_sign", 4},
    [TN_PW_SQRT] = {"op_sqrt", 16},
    [TN_PW_RSQRT] = {"op_rsqrt", 32},
    [TN_PW_RECIPROCAL] = {"op_reciprocal", 16},
    [TN_PW_FLOOR] = {"op_floor", 1},
    [TN_PW_EXP] = {"op_exp", 16},
    [TN_PW_LOG] = {"op_log", 24},
    [TN_PW_TANH] = {"op_tanh", 32},
    [TN_PW_SIGMOID] = {"op_sigmoid", 40},
    [TN_PW_ERF] = {"op_erf", 40},
    [TN_PW_FMOD] = {"op_fmod", 60},
    TN_FUNCTIONS_OF_ONE(FUNCTION) TN_FUNCTIONS_OF_TWO(FUNCTION)[TN_PW_ADD] = {"op_add", 1},
    [TN_PW_SUB] = {"op_sub", 1},
    [TN_PW_MUL] = {"op_mul", 1},
    [TN_PW_MAXIMUM] = {"op_maximum", 3},
    [TN_PW_MINIMUM] = {"op_minimum", 3},
    [TN_PW_DIV] = {"op_div", 16},
    [TN_PW_AFFINE] = {"op_affine", 2},
    [TN_PW_EQ] = {"op_eq", 1},
    [TN_PW_NE] = {"op_ne", 1},
    [TN_PW_LT] = {"op_lt", 1},
    [TN_PW_LE] = {"op_le", 1},
    [TN_PW_GT] = {"op_gt", 1},
    [TN_PW_GE] = {"op_ge", 1},
    [TN_PW_IS_FINITE] = {"op_is_finite", 2},
    [TN_PW_AND] = {"op_and", 1},
    [TN_PW_OR] = {"op_or", 1},
    [TN_PW_XOR] = {"op_xor", 1},
    [TN_PW_NOT] = {"op_not", 1},
    [TN_PW_SHIFT_LEFT] = {"op_shift_left", 2},
    [TN_PW_SHIFT_RIGHT] = {"op_shift_right", 2},
    [TN_PW_WHERE] = {"op_where", 1},
};

/* Graphics processors have fewer units for f64 than for f32, most of them by far. */
double tn_cuda_work_of(const tn_pw_insn *insn) {
  double slow = insn->lane == TN_LANE_F64 ? 8 : 1;
  switch (insn->op) {
  case TN_PW_CAST: return 2 * slow;
  case TN_PW_ROUND: return 2;
  case TN_PW_CONSTANT: return 0;
  case TN_PW_UNIFORM: return 24 * slow;
  case TN_PW_NORMAL: return 60 * slow;
  case TN_PW_LOAD:
  case TN_PW_STORE: return 1;
  case TN_PW_INDEX:
  case TN_PW_SPREAD: return 4;
  default: return compute_rules[insn->op].work * slow;
  }
}

/* 0 and 1 stand in the text, since the compiler makes less of a comparison with them. */
static void compute_put_constant(tn_cuda_printer *p, const tn_pw_insn *insn) {
  const char *lane = tn_cuda_lane_name(insn->lane);
  uint64_t one = tn_pw_bits_of(1, insn->lane == TN_LANE_F32   ? TN_F32
                                  : insn->lane == TN_LANE_F64 ? TN_F64
                                                              : TN_I64);
  if (insn->bits == 0 || insn->bits == one)
    tn_cuda_put(p, "(%s)%d", lane, insn->bits != 0);
  else
    tn_cuda_put_number(p, insn->lane, insn->bits);
}

static void compute_put_operands(tn_cuda_printer *p, const tn_pw_insn *insn) {
  for (int32_t k = 0; k < TN_PW_INPUTS && insn->in[k] != TN_PW_NONE; k++)
    tn_cuda_put(p, "%sv%d", k > 0 ? ", " : "", (int)insn->in[k]);
  if (insn->op != TN_PW_AFFINE) return;
  int32_t dtype = insn->lane == TN_LANE_F64 ? TN_F64 : TN_F32;
  tn_cuda_put(p, ", ");
  tn_cuda_put_number(p, insn->lane, tn_pw_bits_of(insn->a, dtype));
  tn_cuda_put(p, ", ");
  tn_cuda_put_number(p, insn->lane, tn_pw_bits_of(insn->b, dtype));
}

static void compute_put_function(tn_cuda_printer *p, const tn_pw_insn *insn) {
  switch (insn->op) {
  case TN_PW_ROUND: tn_cuda_put(p, "round_%s", tn_cuda_element_name(insn->dtype)); break;
  case TN_PW_CAST:
    tn_cuda_put(p, "to_%s", insn->dtype == TN_BOOL ? "bool" : tn_cuda_lane_name(tn_lane_of(insn->dtype)));
    break;
  default:
    tn_cuda_put(p, "%s", compute_rules[insn->op].function);
    if (tn_pw_is_function(insn->op) && insn->lane == TN_LANE_F32) tn_cuda_put(p, "f");
    break;
  }
}

void tn_cuda_put_compute(tn_cuda_printer *p, const tn_pw_insn *insn) {
  tn_cuda_put(p, "const %s v%d = ", tn_cuda_lane_name(p->region->values[insn->out].lane), (int)insn->out);
  if (insn->op == TN_PW_CONSTANT) {
    compute_put_constant(p, insn);
  } else {
    compute_put_function(p, insn);
    tn_cuda_put(p, "(");
    compute_put_operands(p, insn);
    tn_cuda_put(p, ")");
  }
  tn_cuda_put(p, ";\n");
}
