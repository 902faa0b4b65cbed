/* The functions of tenon/op_functions.h, which are written by rule from the ops' descriptors, and of
 * tenon/ops.h: the text of the node that each makes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tenon/ops.h"
#include "tests/unit/ops/graph_text.h"

typedef struct example {
  const char *inputs; /* v[0], v[1] ... in this order */
  tn_val (*emit)(tn_build *b, const tn_val *v);
  const char *node;
} example;

#define I2(x, y) ((const int64_t[]){x, y})
#define FLOATS   "x: f32[2, 3]; y: f32[2, 3]"
#define BOOLS    "x: bool[2]; y: bool[2]"
#define IMAGE    "x: f32[2, 4, 8, 8]; w: f32[6, 2, 3, 3]; d: f32[2, 6, 8, 8]; m: f32[4]; v: f32[4]"
#define POOL     "x: f32[2, 4, 8, 8]; d: f32[2, 4, 4, 4]; i: i32[2, 4, 4, 4]"
#define ROWS     "x: f32[4, 6]; t: i32[4]; w: f32[6]; r: f32[4]; d: f32[4, 6]"
#define TOKENS   "q: f32[2, 5, 8]; k: f32[2, 5, 8]; v: f32[2, 5, 8]; l: f32[2, 2, 5]"
#define COUNTERS "i: i64[]; b: i64[]; x: f32[2, 3]"

static const tn_type vector = {TN_F32, 2, {2, 3}};
static const int64_t square[] = {2, 2}, one[] = {1, 1}, image[] = {2, 4, 8, 8}, weight[] = {6, 2, 3, 3};

#define CASES(X)                                                                                             \
  X(neg, FLOATS, tn_neg(b, v[0]), "%3: f32[2, 3] = neg(x)")                                                  \
  X(abs, FLOATS, tn_abs(b, v[0]), "%3: f32[2, 3] = abs(x)")                                                  \
  X(sign, FLOATS, tn_sign(b, v[0]), "%3: f32[2, 3] = sign(x)")                                               \
  X(exp, FLOATS, tn_exp(b, v[0]), "%3: f32[2, 3] = exp(x)")                                                  \
  X(log, FLOATS, tn_log(b, v[0]), "%3: f32[2, 3] = log(x)")                                                  \
  X(sqrt, FLOATS, tn_sqrt(b, v[0]), "%3: f32[2, 3] = sqrt(x)")                                               \
  X(rsqrt, FLOATS, tn_rsqrt(b, v[0]), "%3: f32[2, 3] = rsqrt(x)")                                            \
  X(reciprocal, FLOATS, tn_reciprocal(b, v[0]), "%3: f32[2, 3] = reciprocal(x)")                             \
  X(tanh, FLOATS, tn_tanh(b, v[0]), "%3: f32[2, 3] = tanh(x)")                                               \
  X(sigmoid, FLOATS, tn_sigmoid(b, v[0]), "%3: f32[2, 3] = sigmoid(x)")                                      \
  X(erf, FLOATS, tn_erf(b, v[0]), "%3: f32[2, 3] = erf(x)")                                                  \
  X(sin, FLOATS, tn_sin(b, v[0]), "%3: f32[2, 3] = sin(x)")                                                  \
  X(cos, FLOATS, tn_cos(b, v[0]), "%3: f32[2, 3] = cos(x)")                                                  \
  X(floor, FLOATS, tn_floor(b, v[0]), "%3: f32[2, 3] = floor(x)")                                            \
  X(relu, FLOATS, tn_relu(b, v[0]), "%3: f32[2, 3] = relu(x)")                                               \
  X(silu, FLOATS, tn_silu(b, v[0]), "%3: f32[2, 3] = silu(x)")                                               \
  X(add, FLOATS, tn_add(b, v[0], v[1]), "%3: f32[2, 3] = add(x, y)")                                         \
  X(sub, FLOATS, tn_sub(b, v[0], v[1]), "%3: f32[2, 3] = sub(x, y)")                                         \
  X(mul, FLOATS, tn_mul(b, v[0], v[1]), "%3: f32[2, 3] = mul(x, y)")                                         \
  X(div, FLOATS, tn_div(b, v[0], v[1]), "%3: f32[2, 3] = div(x, y)")                                         \
  X(maximum, FLOATS, tn_maximum(b, v[0], v[1]), "%3: f32[2, 3] = maximum(x, y)")                             \
  X(minimum, FLOATS, tn_minimum(b, v[0], v[1]), "%3: f32[2, 3] = minimum(x, y)")                             \
  X(pow, FLOATS, tn_pow(b, v[0], v[1]), "%3: f32[2, 3] = pow(x, y)")                                         \
  X(eq, FLOATS, tn_eq(b, v[0], v[1]), "%3: bool[2, 3] = eq(x, y)")                                           \
  X(ne, FLOATS, tn_ne(b, v[0], v[1]), "%3: bool[2, 3] = ne(x, y)")                                           \
  X(lt, FLOATS, tn_lt(b, v[0], v[1]), "%3: bool[2, 3] = lt(x, y)")                                           \
  X(le, FLOATS, tn_le(b, v[0], v[1]), "%3: bool[2, 3] = le(x, y)")                                           \
  X(gt, FLOATS, tn_gt(b, v[0], v[1]), "%3: bool[2, 3] = gt(x, y)")                                           \
  X(ge, FLOATS, tn_ge(b, v[0], v[1]), "%3: bool[2, 3] = ge(x, y)")                                           \
  X(and, BOOLS, tn_and(b, v[0], v[1]), "%3: bool[2] = and(x, y)")                                            \
  X(or, BOOLS, tn_or(b, v[0], v[1]), "%3: bool[2] = or(x, y)")                                               \
  X(not, BOOLS, tn_not(b, v[0]), "%3: bool[2] = not(x)")                                                     \
  X(is_finite, FLOATS, tn_is_finite(b, v[0]), "%3: bool[2, 3] = is_finite(x)")                               \
  X(where, "c: bool[2, 3]; " FLOATS, tn_where(b, v[0], v[1], v[2]), "%4: f32[2, 3] = where(c, x, y)")        \
  X(affine, FLOATS, tn_affine(b, v[0], 2, 0.5), "%3: f32[2, 3] = affine(x, scale=2, shift=0.5)")             \
  X(cast, FLOATS, tn_cast(b, v[0], TN_BF16), "%3: bf16[2, 3] = cast(x, to=bf16)")                            \
  X(leaky_relu, FLOATS, tn_leaky_relu(b, v[0], 0.125), "%3: f32[2, 3] = leaky_relu(x, slope=0.125)")         \
  X(gelu, FLOATS, tn_gelu(b, v[0], 1), "%3: f32[2, 3] = gelu(x, approximate=tanh)")                          \
  X(gelu_exact, FLOATS, tn_gelu(b, v[0], 0), "%3: f32[2, 3] = gelu(x)")                                      \
  X(gelu_grad, FLOATS, tn_gelu_grad(b, v[0], v[1], 1), "%3: f32[2, 3] = gelu_grad(x, y, approximate=tanh)")  \
  X(full, FLOATS, tn_full(b, &vector, 1.5), "%3: f32[2, 3] = full(dims=[2, 3], value=1.5)")                  \
  X(scalar, FLOATS, tn_scalar(b, TN_F64, 2), "%3: f64[] = full(value=2, dtype=f64)")                         \
  X(iota, FLOATS, tn_iota(b, &vector, 1), "%3: f32[2, 3] = iota(dims=[2, 3], axis=1, dtype=f32)")            \
  X(triangular_mask, FLOATS, tn_triangular_mask(b, 3, 4, 1),                                                 \
    "%3: bool[3, 4] = triangular_mask(rows=3, columns=4, diagonal=1)")                                       \
  X(spread, "x: f32[2]",                                                                                     \
    tn_spread(b, v[0], 3, ((const int64_t[]){0, 2, 5}), 3, ((const int64_t[]){1, 0, 1}), 8),                 \
    "%2: f32[8] = spread(x, starts=[0, 2, 5], index=[1, 0, 1], count=8)")                                    \
  X(random_uniform, COUNTERS, tn_random_uniform(b, v[0], v[1], &vector, 7, -1, 2),                           \
    "%4: f32[2, 3] = random_uniform(i, b, dims=[2, 3], stream=7, a=-1, b=2)")                                \
  X(random_normal, COUNTERS, tn_random_normal(b, v[0], 0, &vector, 7, 0.5, 2),                               \
    "%4: f32[2, 3] = random_normal(i, dims=[2, 3], stream=7, a=0.5, b=2)")                                   \
  X(dropout, COUNTERS, tn_dropout(b, v[2], v[0], v[1], 0.25, 9),                                             \
    "%4: f32[2, 3] = dropout(x, i, b, p=0.25, stream=9)")                                                    \
  X(reduce_all, FLOATS, tn_reduce_sum(b, v[0], 0, NULL, 0), "%3: f32[] = reduce_sum(x)")                     \
  X(reduce_sum, FLOATS, tn_reduce_sum(b, v[0], 1, one, 1),                                                   \
    "%3: f32[2, 1] = reduce_sum(x, axes=[1], keep=yes)")                                                     \
  X(reduce_mean, FLOATS, tn_reduce_mean(b, v[0], 1, one, 0), "%3: f32[2] = reduce_mean(x, axes=[1])")        \
  X(reduce_max, FLOATS, tn_reduce_max(b, v[0], 1, one, 0), "%3: f32[2] = reduce_max(x, axes=[1])")           \
  X(reduce_min, FLOATS, tn_reduce_min(b, v[0], 1, one, 0), "%3: f32[2] = reduce_min(x, axes=[1])")           \
  X(argmax, FLOATS, tn_argmax(b, v[0], 0), "%3: i32[3] = argmax(x, axis=0)")                                 \
  X(moments, IMAGE, tn_moments(b, v[0], 3, ((const int64_t[]){0, 2, 3})),                                    \
    "%6: f32[4], %7: f32[4] = moments(x, axes=[0, 2, 3])")                                                   \
  X(norm_grad_sums, IMAGE, tn_norm_grad_sums(b, v[0], v[0], v[3], v[4], 3, ((const int64_t[]){0, 2, 3})),    \
    "%6: f32[4], %7: f32[4] = norm_grad_sums(x, x, m, v, axes=[0, 2, 3])")                                   \
  X(all_finite, FLOATS, tn_all_finite(b, v[0]), "%3: bool[] = all_finite(x)")                                \
  X(all_reduce, FLOATS, tn_all_reduce(b, v[0], TN_REDUCTION_SUM), "%3: f32[2, 3] = all_reduce(x)")           \
  X(all_reduce_min, FLOATS, tn_all_reduce(b, v[0], TN_REDUCTION_MIN),                                        \
    "%3: f32[2, 3] = all_reduce(x, reduction=min)")                                                          \
  X(all_reduce_max, FLOATS, tn_all_reduce(b, v[0], TN_REDUCTION_MAX),                                        \
    "%3: f32[2, 3] = all_reduce(x, reduction=max)")                                                          \
  X(all_reduce_mean, FLOATS, tn_all_reduce(b, v[0], TN_REDUCTION_MEAN),                                      \
    "%3: f32[2, 3] = all_reduce(x, reduction=mean)")                                                         \
  X(reduce_scatter, FLOATS, tn_reduce_scatter(b, v[0], 2, TN_REDUCTION_SUM),                                 \
    "%3: f32[1, 3] = reduce_scatter(x, ranks=2)")                                                            \
  X(reduce_scatter_max, FLOATS, tn_reduce_scatter(b, v[0], 1, TN_REDUCTION_MAX),                             \
    "%3: f32[2, 3] = reduce_scatter(x, reduction=max)")                                                      \
  X(all_gather, FLOATS, tn_all_gather(b, v[0], 4), "%3: f32[8, 3] = all_gather(x, ranks=4)")                 \
  X(matmul, FLOATS, tn_matmul(b, v[0], v[1], 0, 0, 1, TN_MATH_TF32),                                         \
    "%3: f32[2, 2] = matmul(x, y, transpose_b=yes, math=tf32)")                                              \
  X(conv2d, IMAGE, tn_conv2d(b, v[0], v[1], 0, 2, I2(2, 1), 2, I2(1, 0), 2, I2(1, 2), 2, 0),                 \
    "%6: f32[2, 6, 4, 4] = conv2d(x, w, stride=[2, 1], padding=[1, 0], dilation=[1, 2], groups=2)")          \
  X(conv2d_plain, IMAGE, tn_conv2d(b, v[0], v[1], 0, 0, NULL, 0, NULL, 0, NULL, 2, 0),                       \
    "%6: f32[2, 6, 6, 6] = conv2d(x, w, groups=2)")                                                          \
  X(conv2d_grad_input, IMAGE, tn_conv2d_grad_input(b, v[2], v[1], 0, NULL, 2, one, 0, NULL, 2, 0, 4, image), \
    "%6: f32[2, 4, 8, 8] = conv2d_grad_input(d, w, padding=[1, 1], groups=2, dims=[2, 4, 8, 8])")            \
  X(conv2d_grad_weight, IMAGE,                                                                               \
    tn_conv2d_grad_weight(b, v[0], v[2], 0, NULL, 2, one, 0, NULL, 2, 0, 4, weight),                         \
    "%6: f32[6, 2, 3, 3] = conv2d_grad_weight(x, d, padding=[1, 1], groups=2, dims=[6, 2, 3, 3])")           \
  X(max_pool2d, POOL, tn_max_pool2d(b, v[0], 2, square, 0, NULL, 0, NULL, 0),                                \
    "%4: f32[2, 4, 4, 4], %5: i32[2, 4, 4, 4] = max_pool2d(x, kernel=[2, 2])")                               \
  X(max_pool2d_grad, POOL, tn_max_pool2d_grad(b, v[1], v[2], 2, square, 2, square, 0, NULL, 0, 4, image),    \
    "%4: f32[2, 4, 8, 8] = max_pool2d_grad(d, i, kernel=[2, 2], stride=[2, 2], dims=[2, 4, 8, 8])")          \
  X(avg_pool2d, POOL, tn_avg_pool2d(b, v[0], 2, square, 2, square, 2, one, 1, 0),                            \
    "%4: f32[2, 4, 5, 5] = avg_pool2d(x, kernel=[2, 2], stride=[2, 2], padding=[1, 1], ceil=yes, "           \
    "include_pad=no)")                                                                                       \
  X(avg_pool2d_grad, POOL, tn_avg_pool2d_grad(b, v[1], 2, square, 0, NULL, 0, NULL, 0, 1, 4, image),         \
    "%4: f32[2, 4, 8, 8] = avg_pool2d_grad(d, kernel=[2, 2], dims=[2, 4, 8, 8])")                            \
  X(global_avg_pool, POOL, tn_global_avg_pool(b, v[0]), "%4: f32[2, 4] = global_avg_pool(x)")                \
  X(batch_norm, IMAGE, tn_batch_norm(b, v[0], v[3], v[4], 0.001, 2),                                         \
    "%6: f32[2, 4, 8, 8], %7: f32[4], %8: f32[4] = batch_norm(x, m, v, epsilon=0.001, ranks=2)")             \
  X(batch_norm_apply, IMAGE, tn_batch_norm_apply(b, v[0], v[3], v[4], 0, 0, 0.001),                          \
    "%6: f32[2, 4, 8, 8] = batch_norm_apply(x, m, v, epsilon=0.001)")                                        \
  X(layer_norm, ROWS, tn_layer_norm(b, v[0], 0, 0, 0.001, 2),                                                \
    "%6: f32[4, 6], %7: f32[], %8: f32[] = layer_norm(x, epsilon=0.001, trailing=2)")                        \
  X(layer_norm_grad, ROWS, tn_layer_norm_grad(b, v[4], v[0], v[3], v[3], v[2], 1),                           \
    "%6: f32[4, 6], %7: f32[6], %8: f32[6] = layer_norm_grad(d, x, r, r, w)")                                \
  X(rms_norm, ROWS, tn_rms_norm(b, v[0], v[2], 0.001, 1), "%6: f32[4, 6] = rms_norm(x, w, epsilon=0.001)")   \
  X(group_norm, IMAGE, tn_group_norm(b, v[0], v[3], v[4], 0.001, 2),                                         \
    "%6: f32[2, 4, 8, 8] = group_norm(x, m, v, epsilon=0.001, groups=2)")                                    \
  X(local_response_norm, IMAGE, tn_local_response_norm(b, v[0], 5, 0.5, 0.75, 2),                            \
    "%6: f32[2, 4, 8, 8] = local_response_norm(x, size=5, alpha=0.5, k=2)")                                  \
  X(softmax, ROWS, tn_softmax(b, v[0], 0), "%6: f32[4, 6] = softmax(x, axis=0)")                             \
  X(log_softmax, ROWS, tn_log_softmax(b, v[0], 1), "%6: f32[4, 6] = log_softmax(x, axis=1)")                 \
  X(cross_entropy, ROWS, tn_cross_entropy(b, v[0], v[1], 1, 0, 0.125),                                       \
    "%6: f32[4], %7: f32[4] = cross_entropy(x, t, axis=1, ignore=0, smoothing=0.125)")                       \
  X(attention, TOKENS, tn_attention(b, v[0], v[1], v[2], 1, 0.5, 0, 2),                                      \
    "%5: f32[2, 5, 8], %6: f32[2, 2, 5] = attention(q, k, v, causal=yes, scale=0.5, heads=2)")               \
  X(attention_grad, TOKENS, tn_attention_grad(b, v[0], v[1], v[2], v[0], v[3], v[0], 1, 0, 0, 2),            \
    "%5: f32[2, 5, 8], %6: f32[2, 5, 8], %7: f32[2, 5, 8] = attention_grad(q, k, v, q, l, q, causal=yes, "   \
    "heads=2)")                                                                                              \
  X(general_attention, TOKENS, tn_general_attention(b, v[0], v[1], v[2], 0, 1, 0.5, 0, 2, 3, 4, 1),          \
    "%5: f32[2, 5, 8] = general_attention(q, k, v, causal=yes, scale=0.5, heads=2, window=3, "               \
    "softcap=4, alibi=yes)")                                                                                 \
  X(rotary, TOKENS, tn_rotary(b, v[0], 0, 2, 500, 1, 1),                                                     \
    "%5: f32[2, 5, 8] = rotary(q, heads=2, base=500, interleaved=yes, inverse=yes)")                         \
  X(cached_attention, TOKENS "; p: i64[]",                                                                   \
    tn_cached_attention(b, v[0], v[1], v[2], v[1], v[2], v[4], 0.5, 0, 2),                                   \
    "%6: f32[2, 5, 8], %7: f32[2, 5, 8], %8: f32[2, 5, 8] = cached_attention(q, k, v, k, v, p, scale=0.5, "  \
    "heads=2)")                                                                                              \
  X(embedding, ROWS, tn_embedding(b, v[1], v[0]), "%6: f32[4, 6] = embedding(t, x)")                         \
  X(embedding_grad, ROWS, tn_embedding_grad(b, v[1], v[4], 9),                                               \
    "%6: f32[9, 6] = embedding_grad(t, d, rows=9)")                                                          \
  X(reshape, ROWS, tn_reshape(b, v[0], 2, I2(-1, 3)), "%6: f32[8, 3] = reshape(x, dims=[-1, 3])")            \
  X(transpose, ROWS, tn_transpose(b, v[0], 2, I2(1, 0)), "%6: f32[6, 4] = transpose(x, order=[1, 0])")       \
  X(broadcast, ROWS, tn_broadcast(b, v[2], 2, I2(4, 6)), "%6: f32[4, 6] = broadcast(w, dims=[4, 6])")        \
  X(slice, ROWS, tn_slice(b, v[0], 2, I2(0, 1), 2, I2(4, 5), 2, square),                                     \
    "%6: f32[2, 2] = slice(x, starts=[0, 1], stops=[4, 5], steps=[2, 2])")                                   \
  X(slice_axis, ROWS, tn_slice_axis(b, v[0], 1, 2, 5),                                                       \
    "%6: f32[4, 3] = slice(x, starts=[0, 2], stops=[4, 5])")                                                 \
  X(crop, "x: u8[2, 3, 8, 8]; s: i32[2, 2]; m: i32[2, 2]", tn_crop(b, v[0], v[1], v[2], 2, I2(4, 5)),        \
    "%4: u8[2, 3, 4, 5] = crop(x, s, m, size=[4, 5])")                                                       \
  X(pad, ROWS, tn_pad(b, v[0], 2, I2(1, 0), 2, I2(0, 2), 2, one),                                            \
    "%6: f32[8, 13] = pad(x, low=[1, 0], high=[0, 2], inner=[1, 1])")                                        \
  X(concat, ROWS, tn_concat(b, 2, ((const tn_val[]){v[0], v[4]}), 1),                                        \
    "%6: f32[4, 12] = concat(x, d, axis=1)")                                                                 \
  X(pack, ROWS, tn_pack(b, 2, ((const tn_val[]){v[2], v[3]}), 2, I2(0, 8), 16, NULL, 0),                     \
    "%6: f32[16] = pack(w, r, offsets=[0, 8], count=16)")                                                    \
  X(pack_region, ROWS, tn_pack(b, 1, v + 2, 1, ((const int64_t[]){0}), 8, "@param.f32", 4),                  \
    "%6: f32[8] = pack(w, offsets=[0], count=8, region=@param.f32, start=4)")                                \
  X(copy, ROWS, tn_copy(b, v[0]), "%6: f32[4, 6] = copy(x)")                                                 \
  X(reorder, ROWS, tn_reorder(b, v[0]), "%6: f32[4, 6] = reorder(x)")

#define EMIT(name, inputs, call, text)                                                                       \
  static tn_val emit_##name(tn_build *b, const tn_val *v) {                                                  \
    (void)v;                                                                                                 \
    return call;                                                                                             \
  }
CASES(EMIT)

#define EXAMPLE(name, inputs, call, text) {inputs, emit_##name, text},
static const example examples[] = {CASES(EXAMPLE)};

/* The last line of a graph's text. */
static const char *last_line(char *text) {
  size_t n = strlen(text);
  while (n > 0 && text[n - 1] == '\n') text[--n] = '\0';
  const char *line = strrchr(text, '\n');
  return line != NULL ? line + 1 : text;
}

static int check(fixture *f, const example *e) {
  tn_graph *g = NULL;
  tn_builder *builder = NULL;
  if (graph_of(f, e->inputs, "", &g) != TN_OK) fail_msg("%s: %s", e->inputs, tn_error_text(&f->env));
  assert_int_equal(tn_builder_create(g, &builder), TN_OK);
  tn_build *b = tn_builder_handle(builder);
  tn_val result = e->emit(b, g->inputs.v);
  if (tn_build_status(b) != TN_OK || result == 0) fail_msg("%s: %s", e->node, tn_error_text(b));
  tn_text text = tn_text_new(&f->env);
  assert_int_equal(tn_graph_print(g, &text), TN_OK);
  const char *line = last_line(text.v);
  int same = strcmp(line, e->node) == 0;
  if (!same) print_error("%s\n  expected %s\n", line, e->node);
  tn_text_free(&text);
  tn_builder_destroy(builder);
  tn_graph_destroy(g);
  return same;
}

static void every_function_emits_its_op(void **state) {
  int wrong = 0;
  for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) wrong += !check(*state, &examples[i]);
  assert_int_equal(wrong, 0);
}

/* A cast to the type that a value has, and a sum to the dims that it has, emit nothing. */
static void nothing_is_emitted_where_nothing_changes(void **state) {
  fixture *f = *state;
  tn_graph *g = NULL;
  tn_builder *builder = NULL;
  assert_int_equal(graph_of(f, FLOATS, "", &g), TN_OK);
  assert_int_equal(tn_builder_create(g, &builder), TN_OK);
  tn_build *b = tn_builder_handle(builder);
  tn_val x = g->inputs.v[0];
  size_t nodes = g->nodes.n;
  assert_int_equal(tn_to_dtype(b, x, TN_F32), x);
  assert_int_equal(tn_sum_to(b, x, &vector), x);
  assert_int_equal(g->nodes.n, nodes);
  tn_type row = {TN_F32, 1, {3}};
  tn_val sum = tn_sum_to(b, x, &row);
  assert_true(tn_type_equal(tn_val_type(b, sum), &row));
  assert_int_equal(tn_build_status(b), TN_OK);
  tn_builder_destroy(builder);
  tn_graph_destroy(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_function_emits_its_op),
                                     cmocka_unit_test(nothing_is_emitted_where_nothing_changes)};
  return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
