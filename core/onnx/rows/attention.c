/* core/onnx/rows/attention.c: attention, rotary positions and gates of transformers. */
#include <math.h>
#include <string.h>

#include "core/onnx/import.h"
#include "core/onnx/rows/attention.h"

/* ---- heads ---- */

/* (N, tokens, heads * width) as (N, heads, tokens, width). */
static const char *heads_apart(const onnx_use *n, const char *x, int64_t tokens, int64_t heads,
                               int64_t width) {
  return onnx_let(n, "transpose(op.reshape(%s, dims=[-1, %lld, %lld, %lld]), [0, 2, 1, 3])", x,
                  (long long)tokens, (long long)heads, (long long)width);
}

/* The operand as (N, heads, tokens, width); `heads` are those of an operand of three dimensions. */
static tn_status heads_read(const onnx_use *n, int32_t i, int64_t heads, onnx_heads *h) {
  const tn_type x = onnx_operand(n, i)->type;
  const char *text = onnx_text_of(n, i, false);
  if (text == NULL) return onnx_failed(n);
  if (x.rank == 4) {
    *h = (onnx_heads){text, x.dims[1], x.dims[2], x.dims[3]};
    return TN_OK;
  }
  if (x.rank != 3 || heads < 1 || x.dims[2] % heads != 0)
    return ONNX_REFUSE(n, "operand %d of %d dimensions with %lld heads", i, x.rank, (long long)heads);
  *h = (onnx_heads){NULL, heads, x.dims[1], x.dims[2] / heads};
  h->text = heads_apart(n, text, h->tokens, heads, h->width);
  return h->text != NULL ? TN_OK : onnx_failed(n);
}

/* Keys or values behind those of earlier tokens, which are operand `past`; the result `out` has all of them.
 */
static tn_status heads_extend(const onnx_use *n, int32_t past, int32_t out, onnx_heads *h) {
  if (onnx_has(n, past)) {
    const char *before = onnx_text_of(n, past, false);
    if (before == NULL) return onnx_failed(n);
    h->tokens += onnx_operand(n, past)->type.dims[2];
    h->text = onnx_let(n, "concat(%s, %s, axis=2)", before, h->text);
    if (h->text == NULL) return onnx_failed(n);
  }
  return onnx_wants(n, out) ? onnx_bind(n, out, h->text) : TN_OK;
}

static tn_status heads_share(const onnx_use *n, int64_t heads, onnx_heads *h) {
  if (h->heads == heads) return TN_OK;
  if (h->heads < 1 || heads % h->heads != 0)
    return ONNX_REFUSE(n, "%lld heads for %lld", (long long)h->heads, (long long)heads);
  h->text = onnx_let(n, "repeat_interleave(%s, %lld, axis=1)", h->text, (long long)(heads / h->heads));
  h->heads = heads;
  return h->text != NULL ? TN_OK : onnx_failed(n);
}

/* ---- masks ---- */

static void mask_also(const onnx_use *n, onnx_scores *s, const char *condition) {
  s->seen = s->seen != NULL ? onnx_print(n, "%s and %s", s->seen, condition) : condition;
}

/* Which keys come no later than a query, or are near enough: `offset` keys lie in front of the first query.
 */
static void mask_causal(const onnx_use *n, onnx_scores *s, int64_t left, int64_t right) {
  if (right >= 0)
    mask_also(n, s,
              onnx_print(n, "triangular_mask(rows=%lld, columns=%lld, diagonal=%lld)", (long long)s->q.tokens,
                         (long long)s->k.tokens, (long long)(s->offset + right)));
  if (left >= 0)
    mask_also(n, s,
              onnx_print(n, "not triangular_mask(rows=%lld, columns=%lld, diagonal=%lld)",
                         (long long)s->q.tokens, (long long)s->k.tokens, (long long)(s->offset - left - 1)));
}

/* The number of keys of each sample, operand i; the queries are the last of them. */
static tn_status mask_lengths(const onnx_use *n, int32_t i, onnx_scores *s, int64_t left, int64_t right) {
  const char *length = onnx_text_of(n, i, false), *dtype = tn_dtype_name(onnx_operand(n, i)->type.dtype);
  if (length == NULL) return onnx_failed(n);
  const char *key = onnx_let(n, "iota([1, 1, 1, %lld], axis=3, dtype=%s)", (long long)s->k.tokens, dtype);
  const char *many = onnx_let(n, "%s[:, None, None, None]", length);
  const char *query = onnx_let(n, "iota([1, 1, %lld, 1], axis=2, dtype=%s) + %s - %lld",
                               (long long)s->q.tokens, dtype, many, (long long)s->q.tokens);
  if (key == NULL || many == NULL || query == NULL) return onnx_failed(n);
  mask_also(n, s, onnx_print(n, "%s < %s", key, many));
  if (right >= 0) mask_also(n, s, onnx_print(n, "%s <= %s + %lld", key, query, (long long)right));
  if (left >= 0) mask_also(n, s, onnx_print(n, "%s >= %s - %lld", key, query, (long long)left));
  return TN_OK;
}

/* A mask, of which the keys at the end may be left out: they are not seen. */
static tn_status mask_given(const onnx_use *n, int32_t i, onnx_scores *s) {
  const tn_type mask = onnx_operand(n, i)->type;
  const char *text = onnx_text_of(n, i, false);
  bool truth = mask.dtype == TN_BOOL;
  if (text == NULL) return onnx_failed(n);
  int64_t had = mask.rank > 0 ? mask.dims[mask.rank - 1] : 1, low[TN_MAX_RANK] = {0}, high[TN_MAX_RANK] = {0};
  if (had != 1 && had < s->k.tokens) {
    high[mask.rank - 1] = s->k.tokens - had;
    const char *given = truth ? onnx_print(n, "cast(%s, to=i32)", text) : text;
    text = onnx_let(n, "extend(%s, %s, %s, value=%s)%s", given, onnx_list_text(n, low, mask.rank, false),
                    onnx_list_text(n, high, mask.rank, false), truth ? "0" : "-inf", truth ? " > 0" : "");
    if (text == NULL) return onnx_failed(n);
  }
  if (truth)
    mask_also(n, s, text);
  else
    s->added = text;
  return TN_OK;
}

/* ---- scores ---- */

static tn_status score_result(const onnx_use *n, const onnx_scores *s, int32_t step, const char *value) {
  bool wanted = s->shown >= 0 && onnx_wants(n, s->shown);
  return wanted && s->shown_step == step ? onnx_bind(n, s->shown, value) : TN_OK;
}

/* Each step of the scores as lines of their own. */
static tn_status score_steps(const onnx_use *n, const onnx_scores *s, const char **y) {
  const char *score =
      onnx_let(n, "matmul(%s, %s, transpose_b=yes) * %s", s->q.text, s->k.text, onnx_float_text(n, s->scale));
  if (score == NULL) return onnx_failed(n);
  TN_TRY(score_result(n, s, 0, score));
  if (s->softcap > 0)
    score = onnx_let(n, "tanh(%s / %s) * %s", score, onnx_float_text(n, s->softcap),
                     onnx_float_text(n, s->softcap));
  if (score == NULL) return onnx_failed(n);
  TN_TRY(score_result(n, s, 1, score));
  if (s->added != NULL) score = onnx_let(n, "%s + %s", score, s->added);
  if (s->seen != NULL && score != NULL) score = onnx_let(n, "%s if %s else -inf", score, s->seen);
  if (score == NULL) return onnx_failed(n);
  TN_TRY(score_result(n, s, 2, score));
  const char *share = s->seen != NULL || s->added != NULL
                          ? onnx_let(n, "softmax(%s) if %s > -inf else 0", score, score)
                          : onnx_let(n, "softmax(%s)", score);
  if (share == NULL) return onnx_failed(n);
  TN_TRY(score_result(n, s, 3, share));
  *y = onnx_let(n, "matmul(%s, %s)", share, s->v.text);
  return *y != NULL ? TN_OK : onnx_failed(n);
}

/* One op, where nothing but its result is asked for. */
static tn_status score_op(const onnx_use *n, const onnx_scores *s, const char **y) {
  const char *mask = s->seen, *usual = onnx_float_text(n, 1 / sqrt((double)s->q.width));
  if (s->added != NULL && s->seen != NULL)
    mask = onnx_print(n, "%s if %s else -inf", s->added, s->seen);
  else if (s->added != NULL)
    mask = s->added;
  const char *given = onnx_float_text(n, s->scale);
  const char *options =
      onnx_print(n, "%s%s", strcmp(given, usual) == 0 ? "" : onnx_print(n, ", scale=%s", given),
                 s->softcap > 0 ? onnx_print(n, ", softcap=%s", onnx_float_text(n, s->softcap)) : "");
  *y =
      mask != NULL
          ? onnx_let(n, "general_attention(%s, %s, %s, %s%s)", s->q.text, s->k.text, s->v.text, mask, options)
          : onnx_let(n, "general_attention(%s, %s, %s%s)", s->q.text, s->k.text, s->v.text, options);
  return *y != NULL ? TN_OK : onnx_failed(n);
}

tn_status onnx_attend(const onnx_use *n, onnx_scores *s, bool joined) {
  const char *y = NULL;
  TN_TRY(heads_share(n, s->q.heads, &s->k));
  TN_TRY(heads_share(n, s->q.heads, &s->v));
  bool shown = s->shown >= 0 && onnx_wants(n, s->shown);
  if (shown || s->v.width != s->q.width)
    TN_TRY(score_steps(n, s, &y));
  else
    TN_TRY(score_op(n, s, &y));
  if (!joined) return onnx_bind(n, 0, y);
  return onnx_compute(n, "op.reshape(transpose(%s, [0, 2, 1, 3]), dims=[-1, %lld, %lld])", y,
                      (long long)s->q.tokens, (long long)(s->q.heads * s->v.width));
}

static tn_status row_attention(const onnx_use *n) {
  onnx_scores s = {.shown = 3, .shown_step = (int32_t)onnx_whole(n, "qk_matmul_output_mode", 0)};
  bool joined = onnx_operand(n, 0)->type.rank == 3, causal = onnx_whole(n, "is_causal", 0) != 0;
  int64_t heads = onnx_whole(n, "q_num_heads", 0), shared = onnx_whole(n, "kv_num_heads", heads);
  TN_TRY(heads_read(n, 0, heads, &s.q));
  TN_TRY(heads_read(n, 1, shared, &s.k));
  TN_TRY(heads_read(n, 2, shared, &s.v));
  s.offset = onnx_has(n, 4) ? onnx_operand(n, 4)->type.dims[2] : 0;
  TN_TRY(heads_extend(n, 4, 1, &s.k));
  TN_TRY(heads_extend(n, 5, 2, &s.v));
  double scale = onnx_number(n, "scale", 0);
  s.scale = scale != 0 ? scale : 1 / sqrt((double)s.q.width);
  s.softcap = onnx_number(n, "softcap", 0);
  int64_t left = onnx_whole(n, "left_window_size", -1), right = onnx_whole(n, "right_window_size", -1);
  if (causal && (right < 0 || right > 0)) right = 0;
  if (onnx_has(n, 6))
    TN_TRY(mask_lengths(n, 6, &s, left, right));
  else
    mask_causal(n, &s, left, right);
  if (onnx_has(n, 3)) TN_TRY(mask_given(n, 3, &s));
  return onnx_attend(n, &s, joined);
}

/* ---- rotary positions ---- */

/* cos or sin, operand i, of each token: beside (N, heads, tokens, width) or (N, tokens, heads, width). */
static const char *rotary_table(const onnx_use *n, int32_t i, int32_t places, bool heads_first) {
  const char *table = onnx_text_of(n, i, false), *at = places >= 0 ? onnx_text_of(n, places, false) : NULL;
  if (table == NULL || (places >= 0 && at == NULL)) return NULL;
  const char *beside = heads_first ? "[:, None]" : "[:, :, None]";
  return places >= 0 ? onnx_let(n, "index_select(%s, %s, axis=0)%s", table, at, beside)
                     : onnx_let(n, "%s%s", table, beside);
}

tn_status onnx_rotate(const onnx_use *n, int32_t cos, int32_t sin, int32_t places) {
  const tn_type x = onnx_operand(n, 0)->type;
  const char *text = onnx_text_of(n, 0, false), *whole = "";
  int64_t heads = onnx_whole(n, "num_heads", 0), turned = onnx_whole(n, "rotary_embedding_dim", 0), width;
  bool apart = x.rank == 4, pairs = onnx_whole(n, "interleaved", 0) != 0;
  if (text == NULL) return onnx_failed(n);
  if (x.rank == 3 && heads == 0 && turned == 0) /* com.microsoft: the tables tell the width of a head */
    heads = x.dims[2] / (2 * onnx_operand(n, cos)->type.dims[onnx_operand(n, cos)->type.rank - 1]);
  if (!apart && (x.rank != 3 || heads < 1 || x.dims[2] % heads != 0))
    return ONNX_REFUSE(n, "an operand of %d dimensions with %lld heads", x.rank, (long long)heads);
  width = apart ? x.dims[3] : x.dims[2] / heads;
  if (turned == 0) turned = width;
  if (!apart)
    text = onnx_let(n, "op.reshape(%s, dims=[-1, %lld, %lld, %lld])", text, (long long)x.dims[1],
                    (long long)heads, (long long)width);
  const char *c = rotary_table(n, cos, places, apart), *s = rotary_table(n, sin, places, apart);
  if (text == NULL || c == NULL || s == NULL) return onnx_failed(n);
  const char *even = pairs ? onnx_print(n, ":%lld:2", (long long)turned)
                           : onnx_print(n, ":%lld", (long long)turned / 2),
             *odd = pairs ? onnx_print(n, "1:%lld:2", (long long)turned)
                          : onnx_print(n, "%lld:%lld", (long long)turned / 2, (long long)turned);
  const char *a = onnx_let(n, "%s[..., %s]", text, even), *b = onnx_let(n, "%s[..., %s]", text, odd);
  if (a == NULL || b == NULL) return onnx_failed(n);
  const char *parts = onnx_print(n, "%s * %s - %s * %s, %s * %s + %s * %s", c, a, s, b, s, a, c, b);
  if (pairs) {
    const char *front = apart ? onnx_print(n, "-1, %lld, %lld", (long long)x.dims[1], (long long)x.dims[2])
                              : onnx_print(n, "-1, %lld, %lld", (long long)x.dims[1], (long long)heads);
    whole = onnx_let(n, "op.reshape(stack(%s, axis=-1), dims=[%s, %lld])", parts, front, (long long)turned);
  } else {
    whole = onnx_let(n, "concat(%s, axis=-1)", parts);
  }
  if (whole != NULL && turned < width)
    whole = onnx_let(n, "concat(%s, %s[..., %lld:], axis=-1)", whole, text, (long long)turned);
  if (whole == NULL) return onnx_failed(n);
  return apart ? onnx_bind(n, 0, whole)
               : onnx_compute(n, "op.reshape(%s, dims=[-1, %lld, %lld])", whole, (long long)x.dims[1],
                              (long long)x.dims[2]);
}

static tn_status row_rotary(const onnx_use *n) { return onnx_rotate(n, 1, 2, onnx_has(n, 3) ? 3 : -1); }

static tn_status row_swiglu(const onnx_use *n) {
  const char *gate = onnx_text_of(n, 0, false), *value = onnx_text_of(n, 1, false);
  double alpha = onnx_number(n, "alpha", 1);
  if (gate == NULL || value == NULL) return onnx_failed(n);
  if (alpha == 1) return onnx_compute(n, "silu(%s) * %s", gate, value);
  return onnx_compute(n, "%s * sigmoid(%s * %s) * %s", gate, gate, onnx_float_text(n, alpha), value);
}

const onnx_row onnx_attention_rows[] = {
    {"Attention", row_attention, NULL, 3},
    {"RotaryEmbedding", row_rotary, NULL, 3},
    {"SwiGLU", row_swiglu, NULL, 2},
    {NULL, NULL, NULL},
};
