/* Elementary functions of a region, over floats. Products and sums fuse where the instruction set can, which
 * rounds less; simd/vector_math.h states the errors. */
#include "backends/onednn/pointwise/loops.h"
#include "backends/onednn/simd/vector_math.h"

LOOP(exp, 1, v_exp(x))
LOOP(log, 1, v_log(x))
LOOP(tanh, 1, v_tanh(x))
LOOP(sigmoid, 1, v_sigmoid(x))
LOOP(erf, 1, v_erf(x))

/* libm's, one by one. */
#define LANES(name, value)                                                                                   \
  static void TN_LOOP(name)(const tn_tile_insn *insn, const tn_tile_run *run, int64_t n) {                   \
    float *d = run->reg[insn->out];                                                                          \
    const float *a = run->reg[insn->in[0]], *b = run->reg[insn->in[1] < 0 ? insn->in[0] : insn->in[1]];      \
    for (int64_t k = 0; k < n; k++) {                                                                        \
      float x = a[insn->step[0] ? k : k % V_GROUP], y = b[insn->step[1] ? k : k % V_GROUP];                  \
      (void)y;                                                                                               \
      d[k] = value;                                                                                          \
    }                                                                                                        \
  }
#define OF_ONE(op, function, ...) LANES(fn_##op, function##f(x))
#define OF_TWO(op, function, ...) LANES(fn_##op, function##f(x, y))
#define ENTRY(op, ...)            [TN_PW_FN_##op] = TN_LOOP(fn_##op),
TN_FUNCTIONS_OF_ONE(OF_ONE)
TN_FUNCTIONS_OF_TWO(OF_TWO)
LANES(fmod, fmodf(x, y))

const tn_tile_math_loops TN_LOOP(tn_tile_math) = {.f32 = {[TN_PW_EXP] = TN_LOOP(exp),
                                                          [TN_PW_LOG] = TN_LOOP(log),
                                                          [TN_PW_TANH] = TN_LOOP(tanh),
                                                          [TN_PW_SIGMOID] = TN_LOOP(sigmoid),
                                                          [TN_PW_ERF] = TN_LOOP(erf),
                                                          [TN_PW_FMOD] = TN_LOOP(fmod),
                                                          TN_FUNCTIONS_OF_ONE(ENTRY)
                                                              TN_FUNCTIONS_OF_TWO(ENTRY)}};
