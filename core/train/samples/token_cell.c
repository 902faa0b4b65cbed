/* core/train/samples/token_cell.c: sequences of tokens as text. */
#include "core/base/element.h"
#include "core/tokenizer/calls.h"
#include "core/train/samples/sample_view.h"

static void token_print_numbers(const tn_sample_value *value, const char *row, int64_t n, tn_text *text) {
  for (int64_t k = 0; k < n; k++)
    tn_text_addf(text, "%s%lld", k > 0 ? " " : "", (long long)tn_element_load(value->type.dtype, row, k));
}

/* Numbers, where one of them is no token of the vocabulary. */
static void token_print_text(const tn_sample_set *set, const tn_sample_value *value, const char *row,
                             int64_t n, tn_text *text) {
  const void *env = &set->run->env;
  int32_t *ids = tn_alloc(env, (size_t)(n + 1) * sizeof *ids);
  char *decoded = NULL;
  size_t bytes, length;
  bool known = ids != NULL;
  for (int64_t k = 0; known && k < n; k++) {
    double id = tn_element_load(value->type.dtype, row, k);
    ids[k] = id >= 0 && id < INT32_MAX ? (int32_t)id : -1;
    known = ids[k] >= 0 && tn_host_tokenizer_token(set->tokenizer, ids[k], &length) != NULL;
  }
  if (known && tn_host_tokenizer_decode(env, set->tokenizer, ids, (size_t)n, TN_TOKENIZE_SPECIAL, &decoded,
                                        &bytes) == TN_OK)
    tn_text_addn(text, decoded, bytes);
  else
    token_print_numbers(value, row, n, text);
  if (decoded == NULL) tn_error_clear(env);
  tn_release(env, decoded);
  tn_release(env, ids);
}

void tn_tokens_print(const tn_sample_set *set, const tn_sample_value *value, const char *row, int64_t n,
                     tn_text *text) {
  if (set->tokenizer != NULL)
    token_print_text(set, value, row, n, text);
  else
    token_print_numbers(value, row, n, text);
}

static bool token_takes(const tn_sample_set *set, const tn_sample_value *value) {
  (void)set;
  return !tn_dtype_is_float(value->type.dtype) && value->type.rank == 1;
}

static void token_print(const tn_sample_set *set, const tn_sample_value *value, int64_t i, tn_text *text) {
  tn_tokens_print(set, value, tn_sample_row(value, i), tn_sample_length(set, i, value->type.dims[0]), text);
}

const tn_sample_view tn_token_view = {.takes = token_takes, .print = token_print};
