/* core/gguf/decoder.c: the keys of a decoder of the LLaMA family, checked against its tensors. */
#include <stdio.h>
#include <string.h>

#include "core/gguf/gguf_model.h"

enum { DECODER_MOST = 1 << 24, DECODER_WINDOW = 4096 };

typedef struct decoder_work {
  const void *handle;
  tn_gguf *file;
  const char *architecture;
  tn_gguf_decoder *d;
} decoder_work;

/* ---- keys ---- */

/* A number "llama.block_count"; `otherwise` where it is absent. */
static double decoder_number(const decoder_work *w, const char *key, double otherwise) {
  char name[160];
  snprintf(name, sizeof name, "%.60s.%s", w->architecture, key);
  return tn_gguf_number(w->file, name, otherwise);
}

/* A size, 1 or more; `otherwise` 0: it has to be there. */
static tn_status decoder_size(const decoder_work *w, const char *key, int64_t otherwise, int64_t *size) {
  double given = decoder_number(w, key, (double)otherwise);
  bool whole = given >= 1 && given <= DECODER_MOST && given == (double)(int64_t)given;
  *size = whole ? (int64_t)given : 0;
  if (whole) return TN_OK;
  return tn_failf(w->handle, TN_EINVAL, "%s: %.60s.%s is %g, expected a whole number from 1 to %d",
                  tn_gguf_path(w->file), w->architecture, key, given, DECODER_MOST);
}

static tn_status decoder_sizes(decoder_work *w) {
  tn_gguf_decoder *d = w->d;
  int64_t context;
  TN_TRY(decoder_size(w, "embedding_length", 0, &d->width));
  TN_TRY(decoder_size(w, "block_count", 0, &d->depth));
  TN_TRY(decoder_size(w, "feed_forward_length", 0, &d->hidden));
  TN_TRY(decoder_size(w, "attention.head_count", 0, &d->heads));
  TN_TRY(decoder_size(w, "attention.head_count_kv", d->heads, &d->kv_heads));
  TN_TRY(decoder_size(w, "attention.key_length", d->width / d->heads, &d->head));
  TN_TRY(decoder_size(w, "context_length", 0, &context));
  d->window = context < DECODER_WINDOW ? context : DECODER_WINDOW;
  d->attention_window = (int64_t)decoder_number(w, "attention.sliding_window", 0);
  if (d->attention_window < 0 || d->attention_window >= d->window) d->attention_window = 0;
  d->epsilon = decoder_number(w, "attention.layer_norm_rms_epsilon", 0);
  d->base = decoder_number(w, "rope.freq_base", 10000);
  if (d->epsilon > 0 && d->epsilon < 1 && d->base > 1) return TN_OK;
  return tn_failf(
      w->handle, TN_EINVAL,
      "%s: attention.layer_norm_rms_epsilon is %g and rope.freq_base %g, expected a number from 0 to 1, and "
      "one above 1",
      tn_gguf_path(w->file), d->epsilon, d->base);
}

/* ---- parts that are not known ---- */

static tn_status decoder_lacks(const decoder_work *w, const char *part) {
  return tn_failf(w->handle, TN_EUNSUPPORTED, "%s: the model has %s, which is not supported",
                  tn_gguf_path(w->file), part);
}

static tn_status decoder_check_parts(const decoder_work *w) {
  const tn_gguf_decoder *d = w->d;
  char key[160];
  snprintf(key, sizeof key, "%.60s.rope.scaling.type", w->architecture);
  if (decoder_number(w, "expert_count", 0) > 0) return decoder_lacks(w, "several experts (expert_count)");
  if (strcmp(tn_gguf_text(w->file, key, "none"), "none") != 0 ||
      decoder_number(w, "rope.scale_linear", 1) != 1 ||
      tn_gguf_tensor_find(w->file, "rope_freqs.weight") != NULL)
    return decoder_lacks(w, "scaled rotary positions (rope.scaling)");
  if (decoder_number(w, "rope.dimension_count", (double)d->head) != (double)d->head)
    return decoder_lacks(w, "heads of which a part is rotated (rope.dimension_count)");
  if (decoder_number(w, "attention.value_length", (double)d->head) != (double)d->head)
    return decoder_lacks(w, "values of another width than keys (attention.value_length)");
  if (d->heads % d->kv_heads != 0 || d->head % 2 != 0)
    return decoder_lacks(w, "heads that cannot be paired (attention.head_count)");
  return TN_OK;
}

/* ---- tensors ---- */

static tn_status decoder_check_tensor(const decoder_work *w, const char *name, int64_t rows,
                                      int64_t columns) {
  const tn_gguf_tensor *t = tn_gguf_tensor_find(w->file, name);
  bool fits = t != NULL && t->type.rank == (rows > 0 ? 2 : 1) && t->type.dims[t->type.rank - 1] == columns &&
              (rows == 0 || t->type.dims[0] == rows);
  if (fits) return TN_OK;
  if (t == NULL) return tn_failf(w->handle, TN_EINVAL, "%s: has no tensor '%s'", tn_gguf_path(w->file), name);
  return tn_failf(w->handle, TN_EINVAL,
                  "%s: tensor '%s' has another shape than its keys say, expected %lld x %lld",
                  tn_gguf_path(w->file), name, (long long)(rows > 0 ? rows : 1), (long long)columns);
}

/* The first block; the names of the others and their shapes are compared when weights are loaded. */
static tn_status decoder_check_tensors(const decoder_work *w) {
  tn_gguf_decoder *d = w->d;
  const tn_gguf_tensor *tokens = tn_gguf_tensor_find(w->file, "token_embd.weight");
  if (tokens == NULL || tokens->type.rank != 2 || tokens->type.dims[1] != d->width)
    return decoder_check_tensor(w, "token_embd.weight", 1, d->width);
  d->vocabulary = tokens->type.dims[0];
  d->tied = tn_gguf_tensor_find(w->file, "output.weight") == NULL;
  d->bias = tn_gguf_tensor_find(w->file, "blk.0.attn_q.bias") != NULL;
  if (!d->tied) TN_TRY(decoder_check_tensor(w, "output.weight", d->vocabulary, d->width));
  TN_TRY(decoder_check_tensor(w, "output_norm.weight", 0, d->width));
  TN_TRY(decoder_check_tensor(w, "blk.0.attn_q.weight", d->heads * d->head, d->width));
  TN_TRY(decoder_check_tensor(w, "blk.0.attn_k.weight", d->kv_heads * d->head, d->width));
  return decoder_check_tensor(w, "blk.0.ffn_down.weight", d->width, d->hidden);
}

/* llama: pairs of rotary positions are neighbours, as its files are stored. */
static tn_status decoder_check_architecture(const decoder_work *w) {
  static const char *const known[] = {"llama", "qwen2"};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(w->architecture, known[i]) == 0) return TN_OK;
  return tn_failf(
      w->handle, TN_EUNSUPPORTED,
      "%s: general.architecture is '%.60s', expected llama (LLaMA, Mistral and others of its form) or qwen2",
      tn_gguf_path(w->file), w->architecture);
}

tn_status tn_gguf_decoder_read(const void *handle, tn_gguf *file, tn_gguf_decoder *d) {
  decoder_work w = {handle, file, tn_gguf_text(file, "general.architecture", ""), d};
  *d = (tn_gguf_decoder){.interleaved = strcmp(w.architecture, "llama") == 0};
  TN_TRY(decoder_check_architecture(&w));
  TN_TRY(decoder_sizes(&w));
  TN_TRY(decoder_check_parts(&w));
  return decoder_check_tensors(&w);
}
