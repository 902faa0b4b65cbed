/* core/onnx/rows/contrib.c: operators of com.microsoft, which onnxruntime's optimizer writes in place of
 * several others. */
#include <math.h>
#include <string.h>

#include "core/onnx/import.h"
#include "core/onnx/rows/attention.h"

/* ---- functions of single elements ---- */

static tn_status row_gelu(const onnx_use *n) { return onnx_emit(n, NULL, 0, "gelu"); }

/* Behind a sum with a bias, where there is one. */
static tn_status gelu_of_sum(const onnx_use *n, const char *options) {
  const char *x = onnx_text_of(n, 0, false), *bias = onnx_has(n, 1) ? onnx_text_of(n, 1, false) : NULL;
  if (x == NULL || (onnx_has(n, 1) && bias == NULL)) return onnx_failed(n);
  return bias != NULL ? onnx_compute(n, "gelu(%s + %s%s)", x, bias, options)
                      : onnx_compute(n, "gelu(%s%s)", x, options);
}
static tn_status row_bias_gelu(const onnx_use *n) { return gelu_of_sum(n, ""); }
static tn_status row_fast_gelu(const onnx_use *n) { return gelu_of_sum(n, ", approximate=tanh"); }

static tn_status row_quick_gelu(const onnx_use *n) {
  const char *x = onnx_text_of(n, 0, false);
  if (x == NULL) return onnx_failed(n);
  return onnx_compute(n, "%s * sigmoid(%s * %s)", x, x, onnx_float_text(n, onnx_number(n, "alpha", 1.702)));
}

/* ---- normalization of sums ---- */

/* layer_norm or rms_norm with the weights of these operands; shift -1: none. */
static tn_status norm_on(const onnx_use *n, const char *x, int32_t scale, int32_t shift, double usual) {
  const char *epsilon = onnx_float_text(n, onnx_number(n, "epsilon", usual));
  bool has = shift >= 0 && onnx_has(n, shift);
  if (!onnx_is_weight(n, scale, 1) || (has && !onnx_is_weight(n, shift, 1)))
    return ONNX_REFUSE(n, "scale or shift that the model computes");
  const onnx_layer_weight weights[] = {{.name = "weight", .from = n->node->in[scale]},
                                       {.name = "bias", .from = has ? n->node->in[shift] : ""}};
  const char *call = shift < 0 ? onnx_print(n, "rms_norm(epsilon=%s)", epsilon)
                               : onnx_print(n, "layer_norm(epsilon=%s%s)", epsilon, has ? "" : ", bias=no");
  return onnx_layer_on(n, x, n, weights, has ? 2 : 1, call);
}

/* Operands 0 and 1, and the bias of this number, added up; result 3. */
static tn_status skip_norm(const onnx_use *n, int32_t bias, int32_t shift) {
  const char *x = onnx_text_of(n, 0, false), *skip = onnx_text_of(n, 1, false);
  const char *more = onnx_has(n, bias) ? onnx_text_of(n, bias, false) : "";
  if (x == NULL || skip == NULL || more == NULL) return onnx_failed(n);
  if (onnx_wants(n, 1) || onnx_wants(n, 2)) return ONNX_REFUSE(n, "mean and deviation as results");
  const char *sum =
      more[0] != '\0' ? onnx_let(n, "%s + %s + %s", x, skip, more) : onnx_let(n, "%s + %s", x, skip);
  if (sum == NULL) return onnx_failed(n);
  if (onnx_wants(n, 3)) TN_TRY(onnx_bind(n, 3, sum));
  return norm_on(n, sum, 2, shift, 1e-12);
}
static tn_status row_skip_norm(const onnx_use *n) { return skip_norm(n, 4, 3); }
static tn_status row_skip_rms(const onnx_use *n) { return skip_norm(n, 3, -1); }

/* ---- embeddings ---- */

/* The rows of a table, operand `table`, for the ids of operand `ids`. */
static const char *embed_rows(const onnx_use *n, int32_t ids, int32_t table) {
  const tn_type t = *onnx_type(n, table);
  const char *text = onnx_text_of(n, ids, false);
  const onnx_layer_weight weight = {.name = "weight", .from = n->node->in[table]};
  const char *path = onnx_path(n, &weight, 1);
  if (text == NULL || path == NULL || !onnx_is_weight(n, table, 2)) return NULL;
  const char *call = onnx_print(n, "embedding(%lld, %lld)", (long long)t.dims[0], (long long)t.dims[1]);
  bool added =
      onnx_add_layer(n->m, path, 1, &text, 1, call) == TN_OK &&
      onnx_add_weight(n->m, onnx_print(n, "%s.weight", path), onnx_operand(n, table)->tensor) == TN_OK;
  return added ? path : NULL;
}

static tn_status row_embed_norm(const onnx_use *n) {
  const char *words = embed_rows(n, 0, 2),
             *segments = onnx_has(n, 1) && onnx_has(n, 4) ? embed_rows(n, 1, 4) : "";
  const char *table = onnx_text_of(n, 3, false), *places;
  if (words == NULL || segments == NULL || table == NULL) return onnx_failed(n);
  if (onnx_has(n, 7) || onnx_has(n, 8) || onnx_wants(n, 1))
    return ONNX_REFUSE(n, "a mask, or given positions");
  places = onnx_let(n, "%s[:%lld]", table, (long long)onnx_type(n, 0)->dims[1]);
  const char *sum = places == NULL        ? NULL
                    : segments[0] != '\0' ? onnx_let(n, "%s + %s + %s", words, places, segments)
                                          : onnx_let(n, "%s + %s", words, places);
  if (sum == NULL) return onnx_failed(n);
  if (onnx_wants(n, 2)) TN_TRY(onnx_bind(n, 2, sum));
  return norm_on(n, sum, 5, 6, 1e-12);
}

/* ---- attention ---- */

/* The part of (N, tokens, width) as heads. */
static tn_status heads_of(const onnx_use *n, const char *x, int64_t tokens, int64_t width, int64_t heads,
                          onnx_heads *h) {
  if (heads < 1 || width % heads != 0)
    return ONNX_REFUSE(n, "%lld heads of a width of %lld", (long long)heads, (long long)width);
  *h = (onnx_heads){NULL, heads, tokens, width / heads};
  h->text = onnx_let(n, "transpose(op.reshape(%s, dims=[-1, %lld, %lld, %lld]), [0, 2, 1, 3])", x,
                     (long long)tokens, (long long)heads, (long long)(width / heads));
  return h->text != NULL ? TN_OK : onnx_failed(n);
}

/* Which keys each sample has: operand i, (N, keys). */
static tn_status heads_masked(const onnx_use *n, int32_t i, onnx_scores *s) {
  if (!onnx_has(n, i)) return TN_OK;
  const char *mask = onnx_text_of(n, i, false);
  if (mask == NULL) return onnx_failed(n);
  if (onnx_type(n, i)->rank != 2 || onnx_type(n, i)->dims[1] != s->k.tokens)
    return ONNX_REFUSE(n, "a mask of another form");
  s->seen = onnx_print(n, "(%s != 0)[:, None, None]", mask);
  return TN_OK;
}

static tn_status heads_finish(const onnx_use *n, int32_t added, onnx_scores *s) {
  double scale = onnx_number(n, "scale", 0);
  s->scale = scale != 0 ? scale : 1 / sqrt((double)s->q.width);
  s->shown = -1;
  if (onnx_whole(n, "unidirectional", 0)) {
    const char *causal =
        onnx_print(n, "triangular_mask(rows=%lld, columns=%lld, diagonal=%lld)", (long long)s->q.tokens,
                   (long long)s->k.tokens, (long long)(s->k.tokens - s->q.tokens));
    s->seen = s->seen != NULL ? onnx_print(n, "%s and %s", s->seen, causal) : causal;
  }
  if (onnx_has(n, added)) {
    s->added = onnx_text_of(n, added, false);
    if (s->added == NULL) return onnx_failed(n);
  }
  return onnx_attend(n, s, true);
}

/* Queries, keys and values are products of one operand with one weight. */
static tn_status contrib_attention(const onnx_use *n) {
  const tn_type x = *onnx_type(n, 0), w = *onnx_type(n, 1);
  onnx_scores s = {.scale = 0};
  bool has = onnx_has(n, 2);
  if (onnx_has(n, 4) || onnx_wants(n, 1)) return ONNX_REFUSE(n, "keys and values of earlier tokens");
  if (x.rank != 3 || !onnx_is_weight(n, 1, 2) || (has && !onnx_is_weight(n, 2, 1)) || w.dims[1] % 3 != 0)
    return ONNX_REFUSE(n, "weights that the model computes");
  const onnx_layer_weight weights[] = {{.name = "weight", .from = n->node->in[1], .transposed = true},
                                       {.name = "bias", .from = has ? n->node->in[2] : ""}};
  TN_TRY(onnx_layer(n, 0, n, weights, has ? 2 : 1,
                    onnx_print(n, "linear(%lld%s)", (long long)w.dims[1], has ? "" : ", bias=no")));
  const char *all = onnx_find(n->m, n->node->out[0])->line;
  onnx_heads *parts[] = {&s.q, &s.k, &s.v};
  int64_t width = w.dims[1] / 3;
  for (int32_t i = 0; i < 3; i++) {
    const char *part =
        onnx_let(n, "%s[..., %lld:%lld]", all, (long long)(i * width), (long long)((i + 1) * width));
    if (part == NULL) return onnx_failed(n);
    TN_TRY(heads_of(n, part, x.dims[1], width, onnx_whole(n, "num_heads", 0), parts[i]));
  }
  onnx_find(n->m, n->node->out[0])->line = NULL; /* of the product so far */
  TN_TRY(heads_masked(n, 3, &s));
  return heads_finish(n, 5, &s);
}

static tn_status row_heads_attention(const onnx_use *n) {
  onnx_scores s = {.scale = 0};
  onnx_heads *parts[] = {&s.q, &s.k, &s.v};
  const char *bias = onnx_has(n, 3) ? onnx_text_of(n, 3, false) : "";
  int64_t at = 0;
  if (bias == NULL) return onnx_failed(n);
  if (onnx_has(n, 6) || onnx_wants(n, 1) || !onnx_has(n, 1) || !onnx_has(n, 2))
    return ONNX_REFUSE(n, "keys and values of earlier tokens, or packed ones");
  for (int32_t i = 0; i < 3; i++) {
    const tn_type x = *onnx_type(n, i);
    const char *text = onnx_text_of(n, i, false);
    if (x.rank != 3) return ONNX_REFUSE(n, "an operand of %d dimensions", x.rank);
    if (text != NULL && bias[0] != '\0')
      text = onnx_let(n, "%s + %s[%lld:%lld]", text, bias, (long long)at, (long long)(at + x.dims[2]));
    at += x.dims[2];
    if (text == NULL) return onnx_failed(n);
    TN_TRY(heads_of(n, text, x.dims[1], x.dims[2], onnx_whole(n, "num_heads", 0), parts[i]));
  }
  TN_TRY(heads_masked(n, 4, &s));
  return heads_finish(n, 5, &s);
}

static tn_status contrib_rotary(const onnx_use *n) {
  if (onnx_type(n, 1)->rank != 2) return ONNX_REFUSE(n, "the position of the first token");
  return onnx_rotate(n, 2, 3, 1);
}

/* ---- products ---- */

/* A weight of N rows in blocks, each with a scale and, maybe, a zero. */
typedef struct nbits {
  const tn_onnx_tensor *codes, *scales, *zeros; /* zeros may be NULL */
  int64_t bits, block, blocks, rows, columns;
} nbits;

static uint32_t nbits_code(const uint8_t *bytes, int64_t bits, int64_t i) {
  int64_t each = 8 / bits;
  return bytes[i / each] >> (i % each * bits) & ((1U << bits) - 1);
}

static void nbits_fill(const nbits *b, const uint8_t *codes, const float *scales, const uint8_t *zeros,
                       float *to) {
  int64_t row = b->blocks * b->block * b->bits / 8, zero_row = (b->blocks * b->bits + 7) / 8;
  for (int64_t i = 0; i < b->rows; i++)
    for (int64_t k = 0; k < b->columns; k++) {
      int64_t at = k / b->block;
      float zero =
          zeros != NULL ? (float)nbits_code(zeros + i * zero_row, b->bits, at) : (float)(1 << (b->bits - 1));
      to[i * b->columns + k] =
          ((float)nbits_code(codes + i * row, b->bits, k) - zero) * scales[i * b->blocks + at];
    }
}

static tn_status nbits_make(tn_onnx_file *file, const tn_onnx_tensor *tensor, void *to) {
  const nbits *b = tensor->how;
  uint8_t *codes = tn_alloc(file->env, tn_type_bytes(&b->codes->type) + 1), *zeros = NULL;
  float *scales = tn_alloc(file->env, tn_type_bytes(&b->scales->type) + 1);
  if (b->zeros != NULL) zeros = tn_alloc(file->env, tn_type_bytes(&b->zeros->type) + 1);
  bool memory = codes != NULL && scales != NULL && (zeros != NULL || b->zeros == NULL);
  tn_status status = memory ? tn_onnx_tensor_read(file, b->codes, codes) : TN_ENOMEM;
  if (status == TN_OK) status = tn_onnx_tensor_read(file, b->scales, scales);
  if (status == TN_OK && zeros != NULL) status = tn_onnx_tensor_read(file, b->zeros, zeros);
  if (status == TN_OK) nbits_fill(b, codes, scales, zeros, to);
  tn_release(file->env, codes);
  tn_release(file->env, scales);
  tn_release(file->env, zeros);
  return status;
}

static tn_status nbits_read(const onnx_use *n, nbits *b) {
  bool has = onnx_has(n, 3);
  *b = (nbits){.bits = onnx_whole(n, "bits", 4),
               .block = onnx_whole(n, "block_size", 32),
               .rows = onnx_whole(n, "N", 0),
               .columns = onnx_whole(n, "K", 0)};
  if (onnx_has(n, 4)) return ONNX_REFUSE(n, "an order of the columns");
  for (int32_t i = 1; i < (has ? 4 : 3); i++)
    if (onnx_operand(n, i)->tensor == NULL) return ONNX_REFUSE(n, "weights that the model computes");
  b->codes = onnx_operand(n, 1)->tensor;
  b->scales = onnx_operand(n, 2)->tensor;
  b->zeros = has ? onnx_operand(n, 3)->tensor : NULL;
  bool sized = b->rows > 0 && b->columns > 0 && b->block >= 8 && b->rows < 1 << 24 && b->columns < 1 << 24 &&
               b->block < 1 << 20;
  if (!sized || (b->bits != 4 && b->bits != 8 && b->bits != 2))
    return ONNX_REFUSE(n, "blocks of another form");
  b->blocks = (b->columns + b->block - 1) / b->block;
  bool fits = tn_type_count(&b->codes->type) == b->rows * b->blocks * b->block * b->bits / 8 &&
              b->codes->type.dtype == TN_U8 && tn_type_count(&b->scales->type) == b->rows * b->blocks &&
              b->scales->type.dtype == TN_F32 &&
              (!has || (tn_type_count(&b->zeros->type) == b->rows * ((b->blocks * b->bits + 7) / 8) &&
                        b->zeros->type.dtype == TN_U8));
  return fits ? TN_OK : ONNX_REFUSE(n, "blocks of another size than the weight has");
}

static tn_status row_nbits(const onnx_use *n) {
  nbits *b = tn_arena_alloc(&n->m->arena, sizeof *b);
  tn_onnx_tensor *tensor = tn_arena_alloc(&n->m->arena, sizeof *tensor);
  bool has = onnx_has(n, 5);
  if (b == NULL || tensor == NULL) return TN_ENOMEM;
  TN_TRY(nbits_read(n, b));
  if (has && !onnx_is_weight(n, 5, 1)) return ONNX_REFUSE(n, "a bias that the model computes");
  const char *name = b->codes->name, *end = strstr(name, "_Q");
  *tensor = (tn_onnx_tensor){.name = end != NULL ? onnx_print(n, "%.*s", (int)(end - name), name) : name,
                             .data_type = TN_ONNX_FLOAT,
                             .type = {.dtype = TN_F32, .rank = 2, .dims = {b->rows, b->columns}},
                             .make = nbits_make,
                             .how = b,
                             .bytes = -1};
  TN_TRY(onnx_add_value(n->m, &(onnx_value){.name = tensor->name, .tensor = tensor, .type = tensor->type}));
  const onnx_layer_weight weights[] = {{.name = "weight", .from = tensor->name},
                                       {.name = "bias", .from = has ? n->node->in[5] : ""}};
  return onnx_layer(n, 0, n, weights, has ? 2 : 1,
                    onnx_print(n, "linear(%lld%s)", (long long)b->rows, has ? "" : ", bias=no"));
}

static tn_status row_fused_matmul(const onnx_use *n) {
  double alpha = onnx_number(n, "alpha", 1);
  const char *a = onnx_text_of(n, 0, false), *b = onnx_text_of(n, 1, false);
  if (onnx_whole(n, "transBatchA", 0) || onnx_whole(n, "transBatchB", 0))
    return ONNX_REFUSE(n, "another order of batches");
  if (a == NULL || b == NULL) return onnx_failed(n);
  return onnx_compute(n, "matmul(%s, %s%s%s)%s%s", a, b,
                      onnx_whole(n, "transA", 0) ? ", transpose_a=yes" : "",
                      onnx_whole(n, "transB", 0) ? ", transpose_b=yes" : "", alpha == 1 ? "" : " * ",
                      alpha == 1 ? "" : onnx_float_text(n, alpha));
}

/* ---- functions behind a layer ---- */

/* The layer of another row, a sum with operand `added`, and a function behind it. */
static tn_status fused(const onnx_use *n, const char *op, int32_t added) {
  static const char *const functions[][2] = {{"", ""},
                                             {"Relu", "relu"},
                                             {"Sigmoid", "sigmoid"},
                                             {"Tanh", "tanh"},
                                             {"LeakyRelu", "leaky_relu"},
                                             {"HardSigmoid", "hardsigmoid"}};
  const char *wanted = onnx_word(n, "activation", ""), *function = NULL;
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (strcmp(functions[i][0], wanted) == 0) function = functions[i][1];
  const tn_onnx_attribute *numbers = onnx_attribute(n, "activation_params");
  if (function == NULL || strcmp(wanted, "HardSigmoid") == 0)
    return ONNX_REFUSE(n, "the function %s", wanted);
  tn_onnx_node plain = *n->node;
  plain.op = op;
  plain.domain = "";
  if (added >= 0 && plain.n_in > added) plain.n_in = added;
  const onnx_use use = {n->m, &plain, n->number};
  TN_TRY(n->m->express(&use));
  const char *y = onnx_line_of(n, n->node->out[0]),
             *z = added >= 0 && onnx_has(n, added) ? onnx_text_of(n, added, false) : NULL;
  if (y != NULL && z != NULL) y = onnx_let(n, "%s + %s", y, z);
  if (y != NULL && function[0] != '\0' && numbers != NULL && numbers->n_numbers > 0)
    y = onnx_let(n, "%s(%s, %s)", function, y, onnx_float_text(n, numbers->numbers[0]));
  else if (y != NULL && function[0] != '\0')
    y = onnx_let(n, "%s(%s)", function, y);
  return y != NULL ? onnx_bind(n, 0, y) : onnx_failed(n);
}
static tn_status row_fused_conv(const onnx_use *n) { return fused(n, "Conv", 3); }
static tn_status row_fused_gemm(const onnx_use *n) { return fused(n, "Gemm", -1); }

const onnx_row onnx_contrib_rows[] = {
    {"Gelu", row_gelu, NULL},
    {"BiasGelu", row_bias_gelu, NULL, 2},
    {"FastGelu", row_fast_gelu, NULL},
    {"QuickGelu", row_quick_gelu, NULL},
    {"SkipLayerNormalization", row_skip_norm, NULL, 3},
    {"SkipSimplifiedLayerNormalization", row_skip_rms, NULL, 3},
    {"EmbedLayerNormalization", row_embed_norm, NULL, 1},
    {"Attention", contrib_attention, NULL, 2},
    {"MultiHeadAttention", row_heads_attention, NULL},
    {"RotaryEmbedding", contrib_rotary, NULL, 4},
    {"MatMulNBits", row_nbits, NULL, 3},
    {"FusedMatMul", row_fused_matmul, NULL, 2},
    {"FusedConv", row_fused_conv, NULL, 2},
    {"FusedGemm", row_fused_gemm, NULL, 2},
    {NULL, NULL, NULL},
};
