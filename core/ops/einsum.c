/* core/ops/einsum.c: sums of products over indices, "bij,bjk->bik", as transposes, reshapes and matrix
 * products. Operands are joined from left to right. An index that neither the result nor a later operand has
 * is summed when it is met: alone by a sum, in two operands by their product. */
#include <ctype.h>
#include <string.h>

#include "core/ops/common.h"

enum {
  EINSUM_DOTS = 256 /* the labels of "..." follow; the last dimension has the highest */,
  EINSUM_LABELS = 264
};

/* A value whose dimensions have labels: letters, or those of "...". */
typedef struct einsum_term {
  tn_val v;
  int32_t rank;
  int16_t label[2 * TN_MAX_RANK];
} einsum_term;

typedef struct einsum_state {
  tn_build *b;
  const char *equation;
  int64_t size[EINSUM_LABELS]; /* 0: not met */
  int32_t uses[EINSUM_LABELS]; /* operands that are not joined yet, and the result, with the label */
  einsum_term result;
} einsum_state;

static tn_status einsum_fail(const einsum_state *s, const char *what) {
  return tn_fail(s->b, TN_EINVAL, "equation", "\"%s\": %s, expected letters as in \"bij,bjk->bik\"",
                 s->equation, what);
}

/* ---- reading ---- */

static bool einsum_is_end(char c) { return c == '\0' || c == ',' || c == '-' || c == '_'; }

/* Reads the labels of a term up to a comma or an arrow. `rank`: dimensions of the operand, of which "..." has
 * those that no letter names; -1: of the result, where it has all of `dots`. */
static tn_status einsum_read(const einsum_state *s, const char **at, int32_t rank, int32_t dots,
                             einsum_term *term) {
  int32_t letters = 0;
  for (const char *c = *at; !einsum_is_end(*c); c++) letters += isalpha((unsigned char)*c) != 0;
  if (rank >= 0) dots = rank - letters;
  term->rank = 0;
  for (; !einsum_is_end(**at); ++*at) {
    bool is_dots = strncmp(*at, "...", 3) == 0;
    if (**at == ' ') continue;
    if (term->rank + (is_dots ? dots : 1) > TN_MAX_RANK || dots < 0 ||
        (!is_dots && !isalpha((unsigned char)**at)))
      return einsum_fail(s, rank >= 0 ? "a term does not fit its operand" : "the result cannot be read");
    for (int32_t i = 0; i < dots && is_dots; i++)
      term->label[term->rank++] = (int16_t)(EINSUM_LABELS - dots + i);
    if (is_dots)
      *at += 2;
    else
      term->label[term->rank++] = (int16_t)(unsigned char)**at;
  }
  if (rank >= 0 && term->rank != rank) return einsum_fail(s, "a term does not have the rank of its operand");
  return TN_OK;
}

/* Without an arrow, the result has the labels of "...", then in alphabetical order the letters met once. */
static void einsum_implicit(einsum_state *s, const int32_t *met) {
  s->result.rank = 0;
  for (int32_t i = EINSUM_DOTS; i < EINSUM_LABELS; i++)
    if (met[i] > 0) s->result.label[s->result.rank++] = (int16_t)i;
  for (int32_t i = 0; i < EINSUM_DOTS && s->result.rank < TN_MAX_RANK; i++)
    if (met[i] == 1) s->result.label[s->result.rank++] = (int16_t)i;
}

static tn_status einsum_note_sizes(einsum_state *s, const einsum_term *term) {
  for (int32_t i = 0; i < term->rank; i++) {
    int64_t n = tn_val_dim(s->b, term->v, i), *size = &s->size[term->label[i]];
    if (*size == 0 || *size == 1) *size = n;
    if (n != *size && n != 1) return einsum_fail(s, "an index has two sizes");
  }
  return TN_OK;
}

static tn_status einsum_read_all(einsum_state *s, einsum_term *terms, int32_t n) {
  const char *at = s->equation;
  int32_t met[EINSUM_LABELS] = {0}, dots = 0;
  for (int32_t i = 0; i < n; i++) {
    terms[i].v = tn_build_in(s->b, i);
    tn_status status = einsum_read(s, &at, tn_val_type(s->b, terms[i].v)->rank, 0, &terms[i]);
    if (status == TN_OK) status = einsum_note_sizes(s, &terms[i]);
    if (status != TN_OK) return status;
    bool more = *at == ',' || (*at == '_' && i < n - 1);
    if (more != (i < n - 1)) return einsum_fail(s, "it has another number of terms than operands");
    at += more;
    for (int32_t k = 0; k < terms[i].rank; k++) met[terms[i].label[k]]++;
  }
  for (int32_t i = EINSUM_DOTS; i < EINSUM_LABELS; i++) dots += met[i] > 0;
  if (*at == '\0') {
    einsum_implicit(s, met);
    return TN_OK;
  }
  if (*at != '_' && strncmp(at, "->", 2) != 0) return einsum_fail(s, "it cannot be read");
  at += *at == '_' ? 1 : 2;
  tn_status status = einsum_read(s, &at, -1, dots, &s->result);
  for (int32_t i = 0; i < s->result.rank && status == TN_OK; i++)
    if (met[s->result.label[i]] == 0) status = einsum_fail(s, "the result has an index that no operand has");
  return status == TN_OK && *at != '\0' ? einsum_fail(s, "it cannot be read") : status;
}

/* ---- one term ---- */

static int32_t einsum_find(const einsum_term *term, int32_t label) {
  for (int32_t i = 0; i < term->rank; i++)
    if (term->label[i] == label) return i;
  return -1;
}

static void einsum_drop(einsum_term *term, int32_t at) {
  term->rank--;
  for (int32_t i = at; i < term->rank; i++) term->label[i] = term->label[i + 1];
}

/* The diagonal of two dimensions with one label, as the last dimension. */
static void einsum_take_diagonal(const einsum_state *s, einsum_term *term, int32_t first, int32_t second) {
  int16_t label = term->label[first];
  term->v = tn_ops_diagonal_of(s->b, term->v, first, second, 0);
  einsum_drop(term, second);
  einsum_drop(term, first);
  term->label[term->rank++] = label;
}

/* Leaves each label once, and sums over those that nothing else has. */
static void einsum_simplify(const einsum_state *s, einsum_term *term) {
  for (int32_t i = 0; i < term->rank; i++)
    for (int32_t k = i + 1; k < term->rank; k++)
      if (term->label[i] == term->label[k]) {
        einsum_take_diagonal(s, term, i, k);
        i = -1;
        break;
      }
  for (int32_t i = term->rank - 1; i >= 0; i--)
    if (s->uses[term->label[i]] == 0) {
      const int64_t axis = i;
      term->v = tn_reduce_sum(s->b, term->v, 1, &axis, 0);
      einsum_drop(term, i);
    }
}

/* The dimensions with these labels in this order; a label that the term lacks has size 1. */
static tn_val einsum_arrange(const einsum_state *s, const einsum_term *term, int32_t n,
                             const int16_t *labels) {
  int64_t order[TN_MAX_RANK], dims[2 * TN_MAX_RANK], kept = 0;
  for (int32_t i = 0; i < n; i++) {
    int32_t at = einsum_find(term, labels[i]);
    dims[i] = at >= 0 ? tn_val_dim(s->b, term->v, at) : 1;
    if (at >= 0) order[kept++] = at;
  }
  return tn_reshape(s->b, tn_transpose(s->b, term->v, kept, order), n, dims);
}

/* ---- two terms ---- */

/* Labels of both terms: in the order of the product's dimensions, those of both first, then those of one. */
typedef struct einsum_join {
  int16_t batch[TN_MAX_RANK], left[TN_MAX_RANK], right[TN_MAX_RANK], inner[TN_MAX_RANK];
  int32_t n_batch, n_left, n_right, n_inner;
} einsum_join;

static einsum_join einsum_classify(const einsum_state *s, const einsum_term *x, const einsum_term *y) {
  einsum_join j = {.n_batch = 0};
  for (int32_t i = 0; i < x->rank; i++) {
    int16_t label = x->label[i];
    if (einsum_find(y, label) < 0)
      j.left[j.n_left++] = label;
    else if (s->uses[label] > 0)
      j.batch[j.n_batch++] = label;
    else
      j.inner[j.n_inner++] = label;
  }
  for (int32_t i = 0; i < y->rank; i++)
    if (einsum_find(x, y->label[i]) < 0) j.right[j.n_right++] = y->label[i];
  return j;
}

/* The operand of a product: (batch, rows, columns), each the labels of a group, at their full size. */
static tn_val einsum_matrix(const einsum_state *s, const einsum_term *term, const einsum_join *j,
                            const int16_t *rows, int32_t n_rows, const int16_t *columns, int32_t n_columns) {
  int16_t labels[3 * TN_MAX_RANK];
  int64_t dims[2 * TN_MAX_RANK], merged[3] = {1, 1, 1};
  int32_t n = 0;
  for (int32_t i = 0; i < j->n_batch; i++) labels[n++] = j->batch[i];
  for (int32_t i = 0; i < n_rows; i++) labels[n++] = rows[i];
  for (int32_t i = 0; i < n_columns; i++) labels[n++] = columns[i];
  for (int32_t i = 0; i < n; i++) {
    dims[i] = s->size[labels[i]];
    merged[i < j->n_batch ? 0 : i < j->n_batch + n_rows ? 1 : 2] *= dims[i];
  }
  return tn_reshape(s->b, tn_broadcast(s->b, einsum_arrange(s, term, n, labels), n, dims), 3, merged);
}

static tn_status einsum_multiply(const einsum_state *s, einsum_term *x, const einsum_term *y) {
  einsum_join j = einsum_classify(s, x, y);
  einsum_term product = {.rank = 0};
  int64_t dims[3 * TN_MAX_RANK];
  for (int32_t i = 0; i < j.n_batch; i++) product.label[product.rank++] = j.batch[i];
  for (int32_t i = 0; i < j.n_left; i++) product.label[product.rank++] = j.left[i];
  if (product.rank + j.n_right > TN_MAX_RANK) return einsum_fail(s, "a product has too many indices");
  for (int32_t i = 0; i < j.n_right; i++) product.label[product.rank++] = j.right[i];
  if (j.n_inner == 0) {
    product.v = tn_mul(s->b, einsum_arrange(s, x, product.rank, product.label),
                       einsum_arrange(s, y, product.rank, product.label));
  } else {
    for (int32_t i = 0; i < product.rank; i++) dims[i] = s->size[product.label[i]];
    tn_val rows = einsum_matrix(s, x, &j, j.left, j.n_left, j.inner, j.n_inner);
    tn_val columns = einsum_matrix(s, y, &j, j.inner, j.n_inner, j.right, j.n_right);
    product.v = tn_reshape(s->b, tn_matmul(s->b, rows, columns, 0, 0, 0, TN_MATH_FULL), product.rank, dims);
  }
  *x = product;
  return TN_OK;
}

/* ---- the op ---- */

typedef struct einsum_options {
  const char *equation;
} einsum_options;

static void einsum_count(einsum_state *s, const einsum_term *term, int32_t by) {
  for (int32_t i = 0; i < term->rank; i++) s->uses[term->label[i]] += by;
}

static tn_status einsum_emit(einsum_state *s, einsum_term *terms, int32_t n) {
  tn_status status = einsum_read_all(s, terms, n);
  if (status != TN_OK) return status;
  einsum_count(s, &s->result, 1);
  for (int32_t i = 0; i < n; i++) einsum_count(s, &terms[i], 1);
  einsum_count(s, &terms[0], -1);
  einsum_simplify(s, &terms[0]);
  for (int32_t i = 1; i < n && status == TN_OK; i++) {
    einsum_count(s, &terms[i], -1);
    einsum_count(s, &terms[0], 1); /* a label of both is summed by the product */
    einsum_simplify(s, &terms[i]);
    einsum_count(s, &terms[0], -1);
    status = einsum_multiply(s, &terms[0], &terms[i]);
    if (status == TN_OK) einsum_simplify(s, &terms[0]);
  }
  if (status == TN_OK) tn_build_yield(s->b, 0, einsum_arrange(s, &terms[0], s->result.rank, s->result.label));
  return status;
}

static tn_status einsum_decompose(tn_build *b, const void *attributes) {
  einsum_state s = {.b = b, .equation = ((const einsum_options *)attributes)->equation};
  int32_t n = tn_build_n_in(b);
  if (n < 1) return tn_fail(b, TN_EINVAL, NULL, "no operands, expected at least one");
  einsum_term *terms = tn_new(b, (size_t)n * sizeof *terms);
  if (terms == NULL) return TN_ENOMEM;
  tn_status status = einsum_emit(&s, terms, n);
  tn_delete(b, terms);
  return status;
}

static const tn_option einsum_rows[] = {
    TN_OPT(einsum_options, equation, TN_OPT_TEXT, NULL, NULL,
           "a letter for each dimension of each operand, and of the result: bij,bjk->bik, or bij_bjk_bik"),
    TN_OPT_END};

TN_OPS_COMPOSITE(
    einsum, "sum of the products of operands over the indices that the result lacks", einsum_options,
    einsum_rows, TN_CLASS_OTHER, "(xs*:T) -> (y:T)" TN_OPS_PRODUCTS,
    .notes = "\"...\" stands for further dimensions, which broadcast. Without an arrow, the result has the "
             "letters that are met once, in alphabetical order. `_` may stand for a comma and for the "
             "arrow, as in bij_bjk_bik, which is a word of the model language.");
