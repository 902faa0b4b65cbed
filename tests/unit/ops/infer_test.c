/* Tests of type inference: the types of results, or the error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/ops/ops.h"
#include "tests/unit/ops/graph_text.h"

typedef struct example {
  const char *inputs, *statement;
  const char *says; /* the results' types, or a part of the message */
} example;

/* ---- valid operands ---- */

static void accept(fixture *f, const example *e) {
  char text[TN_TYPE_TEXT], all[512] = "";
  tn_graph *g = NULL;
  if (graph_of(f, e->inputs, e->statement, &g) != TN_OK)
    fail_msg("%s: %s", e->statement, tn_error_text(&f->env));
  const tn_gnode *node = &g->nodes.v[g->nodes.n - 1];
  for (int32_t i = 0; i < node->n_out; i++) {
    strcat(all, i > 0 ? " " : "");
    strcat(all, tn_type_format(tn_graph_type(g, node->first_out + (tn_val)i), text));
  }
  if (strcmp(all, e->says) != 0) fail_msg("%s gives %s, expected %s", e->statement, all, e->says);
  tn_graph_destroy(g);
}

static const example fitting[] = {
    {"x: f32[2, 1, 4]; y: f32[3, 1]", "z = add(x, y)", "f32[2, 3, 4]"},
    {"x: i64[0]; y: i64[]", "z = mul(x, y)", "i64[0]"},
    {"x: bf16[2]; y: bf16[2]", "z = lt(x, y)", "bool[2]"},
    {"c: bool[2]; x: u8[2, 2]; y: u8[]", "z = where(c, x, y)", "u8[2, 2]"},
    {"x: u8[3]", "y = cast(x, to=f16)", "f16[3]"},
    {NULL, "y = full(dims=[2, 0])", "f32[2, 0]"},
    {NULL, "y = iota(dims=[2, 3], axis=-1, dtype=i32)", "i32[2, 3]"},
    {"x: f32[3, 1]", "y = broadcast(x, dims=[2, 3, 4])", "f32[2, 3, 4]"},
    {"v: f32[2]", "y = spread(v, starts=[0, 4], index=[1, 0], count=9)", "f32[9]"},
    {NULL, "y = triangular_mask(rows=3, columns=5)", "bool[3, 5]"},
    {"t: i64[]", "y = random_normal(t, dims=[4], dtype=f16)", "f16[4]"},
    {"x: f16[3]; t: i64[]", "y = dropout(x, t)", "f16[3]"},
    {"x: f16[3]; t: i64[]; b: i64[]", "y = dropout(x, t, b)", "f16[3]"},
    {"x: bf16[3, 2]", "y = all_reduce(x, reduction=max)", "bf16[3, 2]"},
    {"x: f32[1, 2, 8]; w: f32[3, 2, 3]", "y = conv1d(x, w, stride=[2], padding=[0, 1])", "f32[1, 3, 4]"},
    {"x: f32[1, 2, 4, 5, 6]; w: f32[4, 1, 2, 3, 1]", "y = conv3d(x, w, groups=2, padding=[0, 1, 0])",
     "f32[1, 4, 3, 5, 6]"},
    {"x: f32[1, 2, 3, 3]; w: f32[2, 3, 4, 2]",
     "y = conv_transpose2d(x, w, stride=[2, 3], output_padding=[0, 2])", "f32[1, 3, 8, 10]"},
    {"x: f32[1, 2, 4, 5, 6]", "y, i = max_pool3d(x, kernel=[2, 2, 3])",
     "f32[1, 2, 2, 2, 2] i32[1, 2, 2, 2, 2]"},
    {"x: f32[1, 2, 7]", "y = adaptive_avg_pool(x, size=[3])", "f32[1, 2, 3]"},
    {"x: f32[1, 2, 3, 5]", "y = interpolate(x, scale=[2, 1.5])", "f32[1, 2, 6, 7]"},
    {"x: f32[2, 3]", "y = extend(x, low=[1, 0], high=[0, 2], mode=circular)", "f32[3, 5]"},
    {"x: f32[2, 3, 4, 5]; g: f32[2, 6, 7, 2]", "y = grid_sample(x, g)", "f32[2, 3, 6, 7]"},
    {"x: f32[1, 1, 2, 3]; i: i32[1, 1, 2, 3]", "y = max_unpool2d(x, i, kernel=[2, 2])", "f32[1, 1, 4, 6]"},
    {"x: f32[6, 2]", "y = reduce_scatter(x, ranks=3)", "f32[2, 2]"},
    {"x: i32[0, 2]", "y = reduce_scatter(x, ranks=4, reduction=min)", "i32[0, 2]"},
    {"x: f16[6, 2]", "y = all_gather(x, ranks=3)", "f16[18, 2]"},
    {"x: f32[2, 3]; i: i64[4, 3]", "y = gather(x, i)", "f32[4, 3]"},
    {"x: f16[2, 3]; i: i32[5]", "y = gather(x, i, axis=-1)", "f16[2, 5]"},
    {"x: i32[2, 3]; i: i64[2, 1]; u: i32[2, 1]", "y = scatter(x, i, u, axis=1, mode=set)", "i32[2, 3]"},
    {"x: f32[2, 3]", "y, i = sort(x, axis=0)", "f32[2, 3] i32[2, 3]"},
    {"x: f32[2, 3]", "y, i = topk(x, k=2)", "f32[2, 2] i32[2, 2]"},
    {"x: i64[2, 3]", "y = cumulative(x, mode=prod, exclusive=yes)", "i64[2, 3]"},
    {"x: f32[2, 3, 4]; i: i64[5, 6]", "y = index_select(x, i, axis=1)", "f32[2, 5, 6, 4]"},
    {"x: f32[2, 3, 4]", "y = diagonal(x, axis1=1, axis2=-1)", "f32[2, 3]"},
    {"x: f32[2, 3, 4]", "y = std(x, axes=[0], keep=yes)", "f32[1, 3, 4]"},
    {"x: f32[2, 3]; y: f32[3, 4]", "z = einsum(x, y, equation=\"ij,jk\")", "f32[2, 4]"},
    {"x: f32[5]", "y = all_gather(x)", "f32[5]"},
    {"x: f32[2, 3, 4]", "y = reduce_sum(x, axes=[-1, 0])", "f32[3]"},
    {"x: f32[2, 3, 4]", "y = reduce_max(x, axes=[1], keep=yes)", "f32[2, 1, 4]"},
    {"x: u8[2]; y: u8[2]", "z = add(x, y)", "u8[2]"},
    {"x: i8[2, 3]", "y = reduce_max(x, axes=[1])", "i8[2]"},
    {"x: i8[2, 3]", "y = reduce_sum(x, axes=[1])", "i64[2]"},
    {"x: bool[2, 3]", "y = reduce_sum(x)", "i64[]"},
    {"x: i32[2, 3]", "y = reduce_sum(x)", "i32[]"},
    {"x: u8[2, 3]", "y = cumprod(x)", "i64[2, 3]"},
    {"x: u8[2, 3]", "y = prod(x)", "i64[]"},
    {"x: u8[2, 3]", "y, i = sort(x)", "u8[2, 3] i32[2, 3]"},
    {"x: u8[1, 1, 4, 4]", "y, i = max_pool2d(x, kernel=[2, 2])", "u8[1, 1, 2, 2] i32[1, 1, 2, 2]"},
    {"ids: u8[5]; t: f16[9, 4]", "y = embedding(ids, t)", "f16[5, 4]"},
    {"i: i8[3]", "y = one_hot(i, classes=4)", "i64[3, 4]"},
    {"x: f32[2, 3, 4]", "y = reduce_mean(x)", "f32[]"},
    {"x: f32[0, 3]", "y = reduce_max(x, axes=[1])", "f32[0]"},
    {"x: f32[2, 3]", "y = argmax(x)", "i32[2]"},
    {"x: f16[2, 3, 4]", "m, v = moments(x, axes=[0, 2])", "f32[3] f32[3]"},
    {"x: f64[2, 3]", "m, v = moments(x)", "f64[] f64[]"},
    {"d: f16[2, 3]; x: f16[2, 3]; m: f32[3]; r: f32[3]", "s, q = norm_grad_sums(d, x, m, r, axes=[0])",
     "f32[3] f32[3]"},
    {"x: bf16[7]", "y = all_finite(x)", "bool[]"},
    {"a: f32[5, 1, 2, 3]; b: f32[4, 3, 6]; c: f32[6]", "y = matmul(a, b, c)", "f32[5, 4, 2, 6]"},
    {"a: f32[3, 2]; b: f32[6, 3]", "y = matmul(a, b, transpose_a=yes, transpose_b=yes)", "f32[2, 6]"},
    {"x: f32[8, 3, 224, 224]; w: f32[64, 3, 7, 7]", "y = conv2d(x, w, stride=[2, 2], padding=[3, 3])",
     "f32[8, 64, 112, 112]"},
    {"x: f32[1, 4, 9, 9]; w: f32[6, 2, 3, 3]; b: f32[6]", "y = conv2d(x, w, b, dilation=[2, 4], groups=2)",
     "f32[1, 6, 5, 1]"},
    {"d: f32[1, 6, 5, 1]; w: f32[6, 2, 3, 3]",
     "y = conv2d_grad_input(d, w, dilation=[2, 4], groups=2, dims=[1, 4, 9, 9])", "f32[1, 4, 9, 9]"},
    {"x: f32[8, 64, 112, 112]", "y, i = max_pool2d(x, kernel=[3, 3], stride=[2, 2], padding=[1, 1])",
     "f32[8, 64, 56, 56] i32[8, 64, 56, 56]"},
    {"x: f32[1, 1, 5, 6]", "y = avg_pool2d(x, kernel=[2, 2], ceil=yes)", "f32[1, 1, 3, 3]"},
    {"x: f32[1, 1, 4, 4]", "y = avg_pool2d(x, kernel=[1, 1], stride=[3, 9], ceil=yes)", "f32[1, 1, 2, 1]"},
    {"x: f32[2, 3, 4, 4]", "y = global_avg_pool(x)", "f32[2, 3]"},
    {"x: f16[4, 3, 2]; w: f32[3]", "y, m, v = batch_norm(x, w)", "f16[4, 3, 2] f32[3] f32[3]"},
    {"x: f16[4, 3]", "y, m, v = batch_norm(x)", "f16[4, 3] f32[3] f32[3]"},
    {"x: f32[2, 3, 4]; w: f32[3, 4]", "y, m, r = layer_norm(x, w, trailing=2)", "f32[2, 3, 4] f32[2] f32[2]"},
    {"d: f16[2, 3, 4]; x: f16[2, 3, 4]; m: f32[2, 3]; r: f32[2, 3]; w: f32[4]",
     "dx, dw, db = layer_norm_grad(d, x, m, r, w)", "f16[2, 3, 4] f32[4] f32[4]"},
    {"x: f16[2, 5, 3]; t: i32[2, 3]", "y, z = cross_entropy(x, t, axis=1)", "f32[2, 3] f32[2, 3]"},
    {"q: f16[2, 3, 4, 8]; k: f16[2, 3, 6, 8]; v: f16[2, 3, 6, 5]", "y, z = attention(q, k, v)",
     "f16[2, 3, 4, 5] f32[2, 3, 4]"},
    {"q: f16[2, 4, 24]; k: f16[2, 6, 24]; v: f16[2, 6, 15]", "y, z = attention(q, k, v, heads=3)",
     "f16[2, 4, 15] f32[2, 3, 4]"},
    {"q: f32[2, 4, 6]; k: f32[2, 5, 6]; v: f32[2, 5, 8]; y: f32[2, 4, 8]; l: f32[2, 2, 4]",
     "a, b, c = attention_grad(q, k, v, y, l, y, heads=2)", "f32[2, 4, 6] f32[2, 5, 6] f32[2, 5, 8]"},
    {"q: f16[1, 2, 3, 4]; v: f16[1, 2, 3, 5]; c: f16[1, 2, 9, 4]; d: f16[1, 2, 9, 5]; p: i64[]",
     "a, b, e = cached_attention(q, q, v, c, d, p)", "f16[1, 2, 3, 5] f16[1, 2, 9, 4] f16[1, 2, 9, 5]"},
    {"q: f32[1, 1, 6]; c: f32[1, 9, 6]; p: i64[]", "a, b, e = cached_attention(q, q, q, c, c, p, heads=2)",
     "f32[1, 1, 6] f32[1, 9, 6] f32[1, 9, 6]"},
    {"i: i32[2, 3]; t: f32[9, 4]", "y = embedding(i, t)", "f32[2, 3, 4]"},
    {"i: i32[2, 3]; d: f32[2, 3, 4]", "y = embedding_grad(i, d, rows=9)", "f32[9, 4]"},
    {"x: f32[2, 6]", "y = reshape(x, dims=[3, -1])", "f32[3, 4]"},
    {"x: f32[1, 1]", "y = reshape(x, dims=[])", "f32[]"},
    {"x: u8[2, 3, 4]", "y = transpose(x, order=[2, 0, 1])", "u8[4, 2, 3]"},
    {"x: f32[7, 3]", "y = slice(x, starts=[1, 3], stops=[7, 3], steps=[4, 1])", "f32[2, 0]"},
    {"x: u8[2, 3, 8, 9]; s: i32[2, 2]; m: i32[2, 2]", "y = crop(x, s, m, size=[4, 11])", "u8[2, 3, 4, 11]"},
    {"x: f32[2, 8, 9]", "y = crop(x, size=[0, 3])", "f32[2, 0, 3]"},
    {"x: f32[3, 0]", "y = pad(x, low=[1, 2], high=[0, 1], inner=[2, 5])", "f32[8, 3]"},
    {"a: f32[2, 1]; b: f32[2, 4]", "y = concat(a, b, axis=-1)", "f32[2, 5]"},
    {"a: f32[2, 2]; b: f32[3]", "y = pack(a, b, offsets=[0, 16], count=32)", "f32[32]"},
};

static void results_have_the_types_that_follow(void **state) {
  for (size_t i = 0; i < sizeof fitting / sizeof *fitting; i++) accept(*state, &fitting[i]);
}

/* ---- invalid operands ---- */

static void refuse(fixture *f, const example *e) {
  tn_graph *g = NULL;
  if (graph_of(f, e->inputs, e->statement, &g) == TN_OK) fail_msg("%s was accepted", e->statement);
  if (strstr(tn_error_text(&f->env), e->says) == NULL)
    fail_msg("%s says\n  %s\nexpected\n  %s", e->statement, tn_error_text(&f->env), e->says);
  tn_graph_destroy(g);
}

static const example wrong[] = {
    {"x: f32[2]; y: f32[3]", "z = add(x, y)", "does not broadcast"},
    {"x: f32[2]; y: i32[2]", "z = add(x, y)", "f32 like x"},
    {"x: i32[2]", "y = exp(x)", "f16, bf16, f32 or f64"},
    {"x: f32[2]", "y = cast(x, to=any)", "to is any, expected an element type such as f32"},
    {NULL, "y = full(dims=[2, -1])", "entry 1 of dims is -1, expected >= 0"},
    {NULL, "y = full(dims=[4294967296, 4294967296])", "more bytes than can be addressed"},
    {NULL, "y = full(dims=[1, 1, 1, 1, 1, 1, 1, 1, 1])", "dims has 9 entries, the highest rank is 8"},
    {NULL, "y = iota(dims=[2], axis=1)", "axis is 1, expected -1 .. 0 for an operand of rank 1"},
    {NULL, "y = iota(dims=[], dtype=i32)", "axis is 0, but a scalar has no axes"},
    {NULL, "y = iota(dims=[2], dtype=bool)", "dtype is bool, expected a number type"},
    {"x: f32[3]", "y = broadcast(x, dims=[2])", "x is f32[3] and cannot be repeated to f32[2]"},
    {"x: f32[2, 2]", "y = broadcast(x, dims=[2])", "cannot be repeated"},
    {"v: f32[2]", "y = spread(v, starts=[0], index=[2], count=1)", "index has 2, but there are 2 values"},
    {"v: f32[2]", "y = spread(v, starts=[1], index=[0], count=1)", "starts must begin with 0"},
    {"v: f32[2]", "y = spread(v, starts=[0, 3, 2], index=[0, 1, 0], count=9)", "starts falls from 3 to 2"},
    {"t: i64[]", "y = random_uniform(t, dims=[2], a=1, b=0)", "b is 0 and a is 1, expected a <= b"},
    {"t: i64[]", "y = random_normal(t, dims=[2], b=-1)", "b, the standard deviation, is -1, expected >= 0"},
    {"t: i64[1]", "y = random_normal(t, dims=[2])",
     "iteration is i64[1] of rank 1, expected rank 0: a scalar"},
    {"t: i64[]", "y = random_normal(t, dims=[2], dtype=i32)", "dtype is i32, expected f16, bf16, f32 or f64"},
    {"x: i8[2]", "y = exp(x)", "operand x is i8[2], expected f16, bf16, f32 or f64"},
    {"x: bool[2]; y: bool[2]", "z = add(x, y)",
     "operand x is bool[2], expected u8, i8, i32, i64, f16, bf16, f32 or f64"},
    {"x: u8[2]; y: i8[2]", "z = add(x, y)", "operand y is i8[2], expected u8 like x"},
    {"x: f32[2, 3]", "y = reduce_sum(x, axes=[2])", "axes has 2, expected -2 .. 1 for an operand of rank 2"},
    {"x: f32[2, 3]", "y = reduce_sum(x, axes=[1, -1])", "axes names dimension 1 twice"},
    {"x: f32[2, 0]", "y = reduce_max(x, axes=[1])", "an extreme over no elements is not defined"},
    {"x: f32[2, 0]", "y = argmax(x)", "dimension 1 has 0 elements"},
    {"d: f16[2, 3]; x: f16[2, 3]; m: f32[2]; r: f32[2]", "s, q = norm_grad_sums(d, x, m, r, axes=[0])",
     "mean is f32[2], expected f32[3]"},
    {"d: f16[2]; x: f16[2]; m: f64[]; r: f64[]", "s, q = norm_grad_sums(d, x, m, r)",
     "expected f32 for x of f16"},
    {"a: f32[3]; b: f32[3, 2]", "y = matmul(a, b)", "a is f32[3], expected rank 2 or more: reshape"},
    {"a: f32[2, 3]; b: f32[4, 5]", "y = matmul(a, b)",
     "a is f32[2, 3] and b is f32[4, 5]: the inner dimensions 3 and 4 differ"},
    {"a: f32[2, 3]; b: f32[3, 5]", "y = matmul(a, b, transpose_a=yes)", "a is f32[2, 3] transposed and b"},
    {"a: f32[2, 2, 3]; b: f32[5, 3, 4]", "y = matmul(a, b)",
     "batch dimensions 2 and 5 differ and neither is 1"},
    {"a: f32[2, 3]; b: f32[3, 4]; c: f32[3]", "y = matmul(a, b, c)", "bias is f32[3], expected [4]"},
    {"x: f32[3, 8, 8]; w: f32[4, 3, 3, 3]", "y = conv2d(x, w)",
     "x is f32[3, 8, 8] of rank 3, expected rank 4"},
    {"x: f32[1, 3, 8, 8]; w: f32[4, 2, 3, 3]", "y = conv2d(x, w)",
     "w is f32[4, 2, 3, 3], expected 3 as its second dimension: 3 input channels in 1 group"},
    {"x: f32[1, 3, 8, 8]; w: f32[4, 1, 3, 3]", "y = conv2d(x, w, groups=3)",
     "3 groups must divide the 3 input and"},
    {"x: f32[1, 3, 2, 8]; w: f32[4, 3, 3, 3]", "y = conv2d(x, w)",
     "the kernel of 3 with dilation 1 is larger than the input's height of 2 with padding 0"},
    {"x: f32[1, 3, 8, 8]; w: f32[4, 3, 3, 3]", "y = conv2d(x, w, stride=[0, 1])",
     "entry 0 of stride is 0, expected >= 1"},
    {"x: f32[1, 3, 8, 8]; w: f32[4, 3, 3, 3]", "y = conv2d(x, w, padding=[1])",
     "padding has 1 entries, expected 2"},
    {"x: f32[1, 3, 8, 8]; w: f32[4, 3, 3, 3]; b: f32[3]", "y = conv2d(x, w, b)",
     "bias is f32[3], expected [4]"},
    {"d: f32[1, 4, 5, 5]; w: f32[4, 3, 3, 3]", "y = conv2d_grad_input(d, w, dims=[1, 3, 8, 8])",
     "dy is f32[1, 4, 5, 5], expected f32[1, 4, 6, 6]"},
    {"x: f32[1, 1, 4, 4]", "y, i = max_pool2d(x, kernel=[2, 2], padding=[2, 0])",
     "padding 2 is more than half of kernel 2"},
    {"x: f32[1, 1, 4, 1]", "y, i = max_pool2d(x, kernel=[2, 2])", "does not fit the input's width of 1"},
    {"x: f32[1, 1, 0, 4]", "y = avg_pool2d(x, kernel=[2, 2], padding=[1, 0])",
     "does not fit the input's height of 0"},
    {"x: f32[1, 2, 3]; w: f32[3, 2, 5]", "y = conv1d(x, w, padding=[0, 1])",
     "the kernel of 5 with dilation 1 is larger than the input's width of 3 with padding 1"},
    {"x: f32[1, 2, 3]; w: f32[3, 2, 5]", "y = conv3d(x, w)",
     "expected rank 5: batch, channels, depth, height, width"},
    {"x: f32[1, 2, 3, 3]; w: f32[2, 3, 4, 2]", "y = conv_transpose2d(x, w, output_padding=[1, 0])",
     "entry 0 of output_padding is 1, expected less than the stride 1"},
    {"x: f32[1, 2, 3, 3]; w: f32[3, 3, 4, 2]", "y = conv_transpose2d(x, w)",
     "x is f32[1, 2, 3, 3], expected f32[1, 3, 3, 3]"},
    {"x: f32[1, 2, 1, 3]; w: f32[2, 3, 2, 2]", "y = conv_transpose2d(x, w, padding=[1, 0])",
     "spatial dimension 0 of the result has no size that can be counted: x has 1, the kernel 2, the padding "
     "1 and 1"},
    {"x: f32[2, 3]", "y, i = adaptive_max_pool(x, size=[2])",
     "x is f32[2, 3] of rank 2, expected at least 3"},
    {"x: f32[1, 1, 3]", "y = interpolate(x)", "expected either size or scale"},
    {"x: f32[50000, 50000]", "y = tril_flatten(x)", "a matrix has more elements than an i32 index can count"},
    {"x: f32[1, 1, 3, 3]", "y = interpolate(x, size=[2, 2, 2])", "3 entries, expected 1 or 2"},
    {"x: f32[1, 1, 3]", "y = interpolate(x, scale=0.1)",
     "spatial dimension 0 of x of f32[1, 1, 3] cannot get this size"},
    {"x: f32[2, 3]", "y = extend(x, low=[0, 3], high=[0, 0], mode=reflect)",
     "dimension 1 has a border of 3, expected at most 2 for x of f32[2, 3] and this mode"},
    {"x: f32[2, 3, 4, 5]; g: f32[1, 6, 7, 2]", "y = grid_sample(x, g)", "grid [2, height, width, 2]"},
    {"t: f32[2, 3, 3]", "y = affine_grid(t, size=[2, 2])", "theta is f32[2, 3, 3], expected [batch, 2, 3]"},
    {"x: f32[1, 1, 2, 3]; i: i32[1, 1, 2, 3]", "y = max_unpool2d(x, i, kernel=[2, 2], size=[9, 6])",
     "x is f32[1, 1, 2, 3], expected f32[1, 1, 4, 3]"},
    {"x: f32[4]", "y, m, v = batch_norm(x)", "expected rank 2 .. 5: batch, channels, then space"},
    {"x: f32[4, 3]; w: f32[4]", "y, m, v = batch_norm(x, w)",
     "weight is f32[4], expected f32[3] for x of f32[4, 3]"},
    {"x: f16[4, 3]; w: f64[3]", "y, m, v = batch_norm(x, w)", "weight is f64[3], expected f32[3]"},
    {"x: f32[3]", "y, m, r = layer_norm(x, trailing=2)", "trailing is 2, but x is f32[3] of rank 1"},
    {"x: f32[3, 4]; b: f32[3]", "y, m, r = layer_norm(x, _, b)", "bias is f32[3], expected f32[4]"},
    {"x: f32[2, 3, 6]", "y = rotary(x, heads=2)",
     "x is f32[2, 3, 6], expected an even width for each of 2 heads"},
    {"x: f32[3, 6]", "y = rotary(x, heads=1)", "expected rank 3: batch, tokens, heads * width"},
    {"q: f32[2, 3, 4]; m: f32[2, 1, 3, 5]", "y = general_attention(q, q, q, m, heads=2)",
     "mask is f32[2, 1, 3, 5], expected bool or floats that broadcast to [2, 2, 3, 3]: batch, heads, "
     "queries"},
    {"q: f32[2, 3, 4]; m: i32[3]", "y = general_attention(q, q, q, m, heads=2)",
     "mask is i32[3], expected bool or floats that broadcast to [2, 2, 3, 3]"},
    {"q: f32[2, 0, 4]; k: f32[2, 3, 4]", "y = general_attention(q, k, k, heads=2)",
     "expected at least one query and one key"},
    {"x: f32[3]", "y = rms_norm(x, trailing=2)", "trailing is 2, but x is f32[3] of rank 1"},
    {"x: f32[3, 4]; w: f32[3]", "y = rms_norm(x, w)", "weight is f32[3], expected f32[4]"},
    {"x: f32[3]", "y = group_norm(x)", "x is f32[3] of rank 1, expected at least 2"},
    {"x: f32[3, 4]", "y = group_norm(x, groups=3)", "groups is 3, which does not divide the 4 channels of x"},
    {"x: f32[3, 4, 2]; b: f32[2]", "y = group_norm(x, _, b)", "bias is f32[2], expected f32[4]"},
    {"x: f32[3]", "y = local_response_norm(x, size=5)", "x is f32[3], expected at least two"},
    {"d: f32[3, 4]; x: f32[3, 4]; m: f32[4]; r: f32[3]", "dx, dw, db = layer_norm_grad(d, x, m, r)",
     "mean is f32[4], expected f32[3]"},
    {"x: f32[]", "y = softmax(x)", "a scalar has no axes"},
    {"x: f32[2, 5]; t: i32[5]", "y, z = cross_entropy(x, t)", "target is i32[5], expected i32[2]"},
    {"x: f32[2, 5]; t: f32[2]", "y, z = cross_entropy(x, t)", "i32 or i64"},
    {"x: f32[2, 0]; t: i32[2]", "y, z = cross_entropy(x, t)", "no classes in dimension 1"},
    {"x: f32[2, 5]; t: i32[2]", "y, z = cross_entropy(x, t, smoothing=1.5)", "smoothing"},
    {"q: f32[2, 4, 8]", "y, z = attention(q, q, q)", "q is f32[2, 4, 8] of rank 3, expected rank 4"},
    {"q: f32[2, 3, 4, 8]; k: f32[2, 3, 4, 7]", "y, z = attention(q, k, k)",
     "k is f32[2, 3, 4, 7], expected f32[2, 3, 4, 8]"},
    {"q: f32[1, 1, 4, 2]; k: f32[1, 1, 3, 2]", "y, z = attention(q, k, k, causal=yes)",
     "the first query would see no key"},
    {"q: f32[1, 4, 6]; k: f32[1, 3, 6]", "y, z = attention(q, k, k, causal=yes, heads=2)",
     "the first query would see no key"},
    {"q: f32[2, 4, 8]", "y, z = attention(q, q, q, heads=3)",
     "3 does not divide the width of q, which is f32[2, 4, 8]"},
    {"q: f32[2, 4, 8]; k: f32[2, 5, 6]", "y, z = attention(q, k, k, heads=2)",
     "k is f32[2, 5, 6], expected f32[2, 5, 8]"},
    {"q: f32[1, 4, 6]; c: f32[1, 3, 6]; p: i64[]", "a, b, e = cached_attention(q, q, q, c, c, p, heads=2)",
     "keys is f32[1, 3, 6] and q is f32[1, 4, 6]: the cache has no room for the tokens"},
    {"q: f32[1, 2, 6]; c: f32[1, 3, 4]; p: i64[]", "a, b, e = cached_attention(q, q, q, c, c, p, heads=2)",
     "keys is f32[1, 3, 4], expected f32[1, 3, 6]"},
    {"q: f32[1, 2, 6]; k: f32[1, 3, 6]; p: i64[]", "a, b, e = cached_attention(q, k, q, k, k, p, heads=2)",
     "k is f32[1, 3, 6], expected f32[1, 2, 6]"},
    {"q: f32[1, 2, 6]; c: f32[1, 3, 6]; p: i64[1]", "a, b, e = cached_attention(q, q, q, c, c, p, heads=2)",
     "position is i64[1] of rank 1, expected rank 0"},
    {"i: i32[2]; t: f32[9]", "y = embedding(i, t)",
     "table is f32[9] of rank 1, expected rank 2: rows, width"},
    {"i: i32[2]; d: f32[3, 4]", "y = embedding_grad(i, d, rows=9)", "dy is f32[3, 4], expected f32[2, 4]"},
    {"x: f32[2, 6]", "y = reshape(x, dims=[5])", "x is f32[2, 6] with 12 elements"},
    {"x: f32[2, 6]", "y = reshape(x, dims=[-1, -1])", "or one -1 for the rest"},
    {"x: f32[0, 6]", "y = reshape(x, dims=[0, -1])", "not determined when another entry is 0"},
    {"x: f32[2, 6]", "y = transpose(x, order=[0])", "order has 1 entries, but x is f32[2, 6] of rank 2"},
    {"x: f32[2, 6]", "y = transpose(x, order=[0, 0])", "expected each of 0 .. 1 once"},
    {"x: f32[8, 9]", "y = crop(x, size=[4, 4])", "x is f32[8, 9] of rank 2, expected 3 at least"},
    {"x: f32[2, 8, 9]", "y = crop(x, size=[4])", "size has 1 entries, expected 2"},
    {"x: f32[2, 8, 9]", "y = crop(x, size=[4, -1])", "entry 1 of size is -1, expected >= 0"},
    {"x: f32[2, 8, 9]; s: i32[3, 2]", "y = crop(x, s, size=[4, 4])",
     "start is i32[3, 2], expected i32[2, 2]"},
    {"x: f32[2, 8, 9]; s: i32[2, 2]; m: i32[2]", "y = crop(x, s, m, size=[4, 4])",
     "mirror is i32[2], expected i32[2, 2]"},
    {"x: f32[5]", "y = slice(x, starts=[3], stops=[2])", "expected start <= stop <= 5"},
    {"x: f32[5]", "y = slice(x, starts=[0], stops=[6])", "expected start <= stop <= 5"},
    {"x: f32[5]", "y = slice(x, starts=[0], stops=[5], steps=[0])", "entry 0 of steps is 0, expected >= 1"},
    {"x: f32[5]", "y = pad(x, low=[-1], high=[0])", "entry 0 of low is -1, expected >= 0"},
    {"x: f32[5]", "y = pad(x, low=[9223372036854775807], high=[0])", "larger than can be counted"},
    {"a: f32[2, 3]; b: f32[3, 4]", "y = concat(a, b, axis=1)", "they may differ in dimension 1 only"},
    {NULL, "y = concat(axis=0)", "no operands, expected at least one"},
    {"x: f32[6, 2]", "y = reduce_scatter(x, ranks=4)",
     "dimension 0 is 6, expected a multiple of the 4 ranks"},
    {"x: f32[]", "y = reduce_scatter(x)", "the operand is a scalar, expected at least one dimension"},
    {"x: f32[]", "y = all_gather(x)", "the operand is a scalar, expected at least one dimension"},
    {"x: f32[6, 2]", "y = reduce_scatter(x, ranks=0)", "ranks"},
    {"x: f32[5]", "y = all_gather(x, ranks=9223372036854775807)", "more than 2^63 elements"},
    {"a: f32[4]; b: f32[4]", "y = pack(a, b, offsets=[0, 3], count=9)",
     "offset 3 of operand 1 lies before 4"},
    {"a: f32[4]; b: f32[4]", "y = pack(a, b, offsets=[0, 8], count=9)",
     "does not fit at offset 8 of 9 elements"},
    {"x: f32[2, 3]; i: i64[2, 4]", "y = gather(x, i)",
     "index is i64[2, 4] and x is f32[2, 3]: expected a vector, or rank 2 and no dimension but 0"},
    {"x: f32[2]; i: i64[2]; u: f32[3]", "y = scatter(x, i, u)", "updates is f32[3], expected f32[2]"},
    {"x: f32[2, 3]", "y, i = topk(x, k=4)", "k is 4, but dimension 1 of x, f32[2, 3], has 3 elements"},
    {"x: f32[2, 3]", "y, i = sort(x, axis=2)", "axis is 2, expected -2 .. 1 for an operand of rank 2"},
    {"x: i32[2]", "y = cumulative(x, mode=logsumexp)",
     "x is i32[2], expected a float type for mode logsumexp"},
    {"x: f32[2]", "y = cumulative(x, mode=max, exclusive=yes)", "expected mode sum or prod with it"},
    {"x: f32[2, 3]; i: i64[2]", "y = take_along_dim(x, i)",
     "index is i64[2] and x is f32[2, 3], expected equal ranks"},
    {"x: f32[2, 3]", "y = unsqueeze(x, axis=3)", "axis is 3, expected -3 .. 2 for an operand of rank 3"},
    {"x: f32[2, 3]", "y = expand(x, dims=[3])", "dims has 1 entries, expected 2 .. 8 for x of f32[2, 3]"},
    {"x: f32[2, 3]", "y = movedim(x, source=[0], destination=[0, 1])",
     "destination has 2 entries and source 1, expected as many"},
    {"x: f32[2, 3]", "y = narrow(x, axis=1, start=2, length=2)", "elements 2 .. 3, but dimension 1 has 3"},
    {"x: f32[2, 3]", "y = select(x, axis=1, index=3)",
     "index is 3, expected -3 .. 2 for dimension 1 of x, f32[2, 3]"},
    {NULL, "y = stack()", "no operands, expected at least one"},
    {"x: f32[2, 3]", "y = roll(x, shifts=[1, 2], axes=[0])",
     "shifts has 2 entries and axes 1, expected as many"},
    {"x: f32[2, 3]", "y = tile(x, repeats=[-1])", "expected at most 8 repeats, each >= 0"},
    {"x: f32[3]", "y = tril(x)", "x is f32[3] of rank 1, expected rank 2 or more: rows, columns"},
    {"x: f32[2, 3, 4]", "y = diag(x)", "x is f32[2, 3, 4], expected a vector or a matrix"},
    {"x: f32[2, 3, 4]", "y = diagonal(x, axis1=1)", "axis1 and axis2 are both 1"},
    {"x: f32[6, 2, 2]", "y = pixel_shuffle(x, factor=2)", "4 does not divide 6, a dimension of x"},
    {"x: f32[6, 2, 2]", "y = unfold(x, kernel=[2])", "x is f32[6, 2, 2], expected (N, C, H, W)"},
    {"x: f32[1, 6, 2, 2]", "y = unfold(x, kernel=[3])",
     "kernel 3, stride 1, padding 0 and dilation 1 leave no patch of 2 pixels"},
    {"x: f32[1, 6, 2]", "y = fold(x, size=[3], kernel=[2])", "expected (N, C * 4, 4) for these patches"},
    {"x: f32[3]", "y, i = kthvalue(x, k=4)", "k is 4, expected 1 .. 3 for x of f32[3]"},
    {"x: f32[]; y: f32[]", "z = pairwise_distance(x, y)", "x is a scalar, expected vectors"},
    {"x: f32[3]; y: f32[3]", "z = cdist(x, y)", "an operand is f32[3], expected rows of vectors"},
    {"x: f32[2, 3]", "y = einsum(x, equation=\"ijk->i\")",
     "\"ijk->i\": a term does not fit its operand, expected letters as in \"bij,bjk->bik\""},
    {"x: f32[2, 3]", "y = einsum(x, equation=\"ij->k\")", "the result has an index that no operand has"},
    {"x: f32[2, 3]", "y = einsum(x, equation=\"ii\")", "an index has two sizes"},
    {"x: f32[2, 3]", "y = einsum(x, equation=\"ij,jk\")", "it has another number of terms than operands"},
    {"x: f32[2, 3]", "y = einsum(x, equation=\"ij->i->j\")", "it cannot be read"},
};

static void operands_that_do_not_fit_are_explained(void **state) {
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) refuse(*state, &wrong[i]);
}

/* ---- the list ---- */

static void every_op_can_be_defined(void **state) {
  fixture *f = *state;
  const tn_item *const *item = tn_core_ops()->items;
  for (int32_t n = 0; *item != NULL; item++, n++) {
    const tn_op_def *def = NULL;
    if (tn_op_table_find(f->ops, &f->env, (*item)->name, &def) != TN_OK)
      fail_msg("%s", tn_error_text(&f->env));
    for (int32_t k = 0; k < n; k++) assert_string_not_equal(tn_core_ops()->items[k]->name, (*item)->name);
    assert_non_null((*item)->doc);
  }
}

/* An op without gradient, decomposition and formula must be TN_OP_NONDIFF. */
static void every_op_has_a_gradient_or_is_nondiff(void **state) {
  (void)state;
  for (const tn_item *const *item = tn_core_ops()->items; *item != NULL; item++) {
    const tn_op *op = (const tn_op *)(const void *)*item;
    bool composite = op->decompose != NULL || op->formula != NULL || op->gradient != NULL,
         nondiff = (op->flags & TN_OP_NONDIFF) != 0;
    if (!nondiff && !composite && op->grad == NULL) fail_msg("%s has no gradient", op->item.name);
    if (nondiff && op->grad != NULL) fail_msg("%s is TN_OP_NONDIFF but has a gradient", op->item.name);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_op_can_be_defined),
      cmocka_unit_test(every_op_has_a_gradient_or_is_nondiff),
      cmocka_unit_test(results_have_the_types_that_follow),
      cmocka_unit_test(operands_that_do_not_fit_are_explained),
  };
  return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
