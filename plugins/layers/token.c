/* plugins/layers/token.c: layers of transformers (Vaswani et al., NeurIPS 2017): embedding, positions,
 * attention. */
#include "plugins/layers/layers.h"

typedef struct embedding_options {
  int64_t rows, width;
  const char *init;
} embedding_options;
static const tn_option embedding_rows[] = {
    TN_OPT(embedding_options, rows, TN_OPT_INT, NULL, ">= 1", "number of different ids"),
    TN_OPT(embedding_options, width, TN_OPT_INT, NULL, ">= 1", "size of a row"),
    TN_OPT(embedding_options, init, TN_OPT_INIT, "normal(0, 1)", NULL, "initializer of the table"),
    TN_OPT_END};

static tn_status build_embedding(tn_build *b, const void *given) {
  const embedding_options *o = given;
  const tn_type table_type = {TN_F32, 2, {o->rows, o->width}};
  int32_t dtype = tn_val_type(b, tn_build_in(b, 0))->dtype;
  if (tn_dtype_is_float(dtype) || dtype == TN_BOOL)
    return tn_fail(b, TN_EINVAL, NULL, "the input is %s, expected ids as u8, i8, i32 or i64",
                   tn_dtype_name(dtype));
  tn_val table = tn_build_param(b, "weight", &table_type, o->init);
  tn_build_yield(b, 0, tn_embedding(b, tn_build_in(b, 0), table));
  return TN_OK;
}
const tn_layer_kind layer_embedding = {
    .item = TN_ITEM(tn_layer_kind, TN_LAYER, "embedding", "the row of a table for each id", embedding_options,
                    embedding_rows),
    .min_in = 1,
    .max_in = 1,
    .types = "ids of integers (N, ...) to (N, ..., width)",
    .example = "inputs = tokens: i32[32]\nlayers = table: embedding(rows=256, width=64)",
    .build = build_embedding};

typedef struct positions_options {
  int64_t width, rows;
  const char *init;
} positions_options;
static const tn_option positions_rows[] = {
    TN_OPT(positions_options, width, TN_OPT_INT, NULL, ">= 1", "size of a row"),
    TN_OPT(positions_options, rows, TN_OPT_INT, "0", ">= 0", "rows of the table; 0: the number of tokens"),
    TN_OPT(positions_options, init, TN_OPT_INIT, "normal(0, 1)", NULL, "initializer of the table"),
    TN_OPT_END};

/* One learned row per position, for ids (B, T). The result is (1, T, width), to be broadcast over the batch.
 */
static tn_status build_positions(tn_build *b, const void *given) {
  const positions_options *o = given;
  int64_t tokens = tn_val_dim(b, tn_build_in(b, 0), 1), rows = o->rows ? o->rows : tokens;
  if (tn_val_type(b, tn_build_in(b, 0))->rank < 2)
    return tn_fail(b, TN_EINVAL, NULL, "the input has no dimension of tokens, expected (batch, tokens)");
  if (rows < tokens)
    return tn_fail(b, TN_EINVAL, "rows", "%lld rows for %lld tokens, expected at least as many",
                   (long long)rows, (long long)tokens);
  const tn_type table_type = {TN_F32, 2, {rows, o->width}};
  tn_val table = tn_build_param(b, "weight", &table_type, o->init);
  if (rows > tokens) table = tn_slice_axis(b, table, 0, 0, tokens);
  tn_build_yield(b, 0, tn_reshape(b, table, 3, (int64_t[]){1, tokens, o->width}));
  return TN_OK;
}
const tn_layer_kind layer_positions = {
    .item = TN_ITEM(tn_layer_kind, TN_LAYER, "positions", "a learned row for each position",
                    positions_options, positions_rows),
    .min_in = 1,
    .max_in = 1,
    .types = "(N, tokens) to (1, tokens, width), which broadcasts over the batch",
    .example = "inputs = tokens: i32[32]\nlayers =\n    wte: embedding(rows=256, width=64) <- tokens\n    "
               "wpe: positions(64) <- tokens\n    add <- wte, wpe",
    .build = build_positions};

typedef struct attention_options {
  int64_t heads;
  int32_t causal;
  double scale;
  int64_t kv_heads, window;
  double softcap;
  int32_t alibi;
} attention_options;
static const tn_option attention_rows[] = {
    TN_OPT(attention_options, heads, TN_OPT_INT, NULL, ">= 1", "number of heads, which divide the width"),
    TN_OPT(attention_options, causal, TN_OPT_FLAG, "no", NULL,
           "a token attends to itself and to earlier tokens only"),
    TN_OPT(attention_options, scale, TN_OPT_FLOAT, "0", ">= 0",
           "factor of the scores; 0: 1 / sqrt(width of a head)"),
    TN_OPT(
        attention_options, kv_heads, TN_OPT_INT, "0", ">= 0",
        "number of heads of k and v, each for heads / kv_heads heads of q; 0: heads (Ainslie et al., 2023)"),
    TN_OPT(attention_options, window, TN_OPT_INT, "0", ">= 0",
           "a token attends to tokens at a distance below this; 0: at any (Beltagy et al., 2020)"),
    TN_OPT(attention_options, softcap, TN_OPT_FLOAT, "0", ">= 0",
           "scores become softcap tanh(score / softcap); 0: they stay (Gemma 2, 2024)"),
    TN_OPT(attention_options, alibi, TN_OPT_FLAG, "no", NULL,
           "scores fall with the distance, in each head with another slope (Press et al., 2022)"),
    TN_OPT_END};

static tn_status attention_check_input(tn_build *b, int32_t i, const char *option, int64_t heads) {
  const tn_type *type = tn_val_type(b, tn_build_in(b, i));
  if (type->rank != 3)
    return tn_fail(b, TN_EINVAL, NULL, "input %d has rank %d, expected (batch, tokens, width)", i + 1,
                   type->rank);
  if (type->dims[2] % heads != 0)
    return tn_fail(b, TN_EINVAL, option, "%lld does not divide the width %lld", (long long)heads,
                   (long long)type->dims[2]);
  return TN_OK;
}

/* k or v with each of its heads as often as it is used: (batch, tokens, kv_heads * width) becomes (batch,
 * tokens, heads * width). */
static tn_val attention_repeat_heads(tn_build *b, const attention_options *o, tn_val x) {
  const tn_type t = *tn_val_type(b, x);
  int64_t times = o->heads / o->kv_heads, width = t.dims[2] / o->kv_heads;
  int64_t dims[] = {t.dims[0], t.dims[1], o->kv_heads, 1, width};
  x = tn_reshape(b, x, 5, dims);
  dims[3] = times;
  return tn_reshape(b, tn_broadcast(b, x, 5, dims), 3, (int64_t[]){t.dims[0], t.dims[1], o->heads * width});
}

/* A mask (batch, keys) or (batch, queries, keys), with the missing dimensions as 1. */
static tn_val attention_wide_mask(tn_build *b, tn_val mask) {
  const tn_type t = *tn_val_type(b, mask);
  if (t.rank != 2 && t.rank != 3) return mask;
  return tn_reshape(b, mask, 4, (int64_t[]){t.dims[0], 1, t.rank == 3 ? t.dims[1] : 1, t.dims[t.rank - 1]});
}

static tn_status build_attention(tn_build *b, const void *given) {
  const attention_options *o = given;
  int64_t kv_heads = o->kv_heads > 0 ? o->kv_heads : o->heads;
  if (o->heads % kv_heads != 0)
    return tn_fail(b, TN_EINVAL, "kv_heads", "%lld does not divide the %lld heads", (long long)kv_heads,
                   (long long)o->heads);
  tn_val in[3];
  for (int32_t i = 0; i < 3; i++) {
    tn_status status = attention_check_input(b, i, i > 0 && o->kv_heads > 0 ? "kv_heads" : "heads",
                                             i > 0 ? kv_heads : o->heads);
    if (status != TN_OK) return status;
    in[i] =
        i == 0 || kv_heads == o->heads ? tn_build_in(b, i) : attention_repeat_heads(b, o, tn_build_in(b, i));
  }
  if (tn_build_n_in(b) > 3 || o->window > 0 || o->softcap > 0 || o->alibi) {
    tn_val mask = tn_build_n_in(b) > 3 ? attention_wide_mask(b, tn_build_in(b, 3)) : 0;
    tn_build_yield(b, 0,
                   tn_general_attention(b, in[0], in[1], in[2], mask, o->causal, o->scale, TN_MATH_FULL,
                                        o->heads, o->window, o->softcap, o->alibi));
  } else {
    tn_build_yield(b, 0, tn_attention(b, in[0], in[1], in[2], o->causal, o->scale, TN_MATH_FULL, o->heads));
  }
  return TN_OK;
}
const tn_layer_kind layer_attention = {
    .item = TN_ITEM(tn_layer_kind, TN_LAYER, "attention",
                    "scaled dot-product attention of q, k, v: (batch, tokens, width), with an optional mask",
                    attention_options, attention_rows),
    .min_in = 3,
    .max_in = 4,
    .types =
        "q, k, v: (N, tokens, width) each, to (N, tokens, width); with kv_heads, the width of k and v is "
        "that of kv_heads heads. mask: (N, keys), (N, queries, keys) or (N, heads, queries, keys), where "
        "dimensions may be 1: bool, true where a token is attended to, or numbers that are added to the "
        "scores. A token that attends to none gives 0",
    .example = "inputs = x: f32[32, 64]\nlayers =\n    qkv: linear(192)\n    q, k, v: split(3, axis=-1)\n   "
               " attention(heads=4, causal=yes) <- q, k, v",
    .build = build_attention};
