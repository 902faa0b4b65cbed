/* core/tokenizer/encode.c: a text through all steps, and the encoders of the threads that do so. */
#include <string.h>

#include "core/tokenizer/calls.h"
#include "core/tokenizer/tokenizer.h"

/* ---- encoders ---- */

void tn_encoder_close(tn_encoder *e) {
  if (e == NULL) return;
  tn_matcher_close(&e->env, e->matcher);
  for (int32_t i = 0; i < 2; i++) tn_text_free(&e->normalized[i]);
  for (int32_t i = 0; i < TN_TOKENIZER_STEPS; i++) tn_text_free(&e->written[i]);
  tn_text_free(&e->word);
  tn_vec_free(&e->env, &e->codes);
  tn_vec_free(&e->env, &e->symbols);
  tn_vec_free(&e->env, &e->heap);
  tn_vec_free(&e->env, &e->ids);
  tn_release(&e->env, e->cache);
  tn_release(&e->t->env, e);
}

/* Memory for what every text needs; the rest grows with the text. */
static tn_status encoder_allocate(tn_encoder *e) {
  const tn_tokenizer *t = e->t;
  for (int32_t i = 0; i < 2; i++) e->normalized[i] = tn_text_new(&e->env);
  for (int32_t i = 0; i < TN_TOKENIZER_STEPS; i++) e->written[i] = tn_text_new(&e->env);
  e->word = tn_text_new(&e->env);
  if (t->model.kind < TN_MODEL_BYTES) {
    e->cache = tn_alloc(&e->env, TN_CACHE_SLOTS * sizeof *e->cache);
    if (e->cache == NULL) return TN_ENOMEM;
  }
  return t->patterns ? tn_matcher_open(&e->env, &e->matcher) : TN_OK;
}

/* An encoder outlives the call, so all of its memory is of the tokenizer's allocator, not of the caller's. */
tn_status tn_encoder_open(const void *handle, const tn_tokenizer *t, tn_encoder **opened) {
  tn_env env;
  tn_error_record record;
  tn_error_record_init(&env, &record, &t->env);
  tn_encoder *e = tn_alloc(&env, sizeof *e);
  *opened = e;
  if (e == NULL) return tn_error_move(handle, &env);
  tn_error_record_init(&e->env, &e->record, &t->env);
  e->t = t;
  tn_status status = encoder_allocate(e);
  if (status == TN_OK) return TN_OK;
  tn_error_move(handle, &e->env);
  tn_encoder_close(e);
  *opened = NULL;
  return status;
}

/* ---- added tokens ---- */

/* The part of a text between two added tokens. */
typedef tn_status (*encode_part)(tn_encoder *e, const char *text, size_t bytes, bool first);

/* Where the character in front of `at` begins, and that character. */
static size_t encode_before(const char *text, size_t at) {
  do at--;
  while (((unsigned char)text[at] & 0xc0) == 0x80);
  return at;
}

static int32_t encode_last(const char *text, size_t at) {
  at = encode_before(text, at);
  return tn_unicode_next(text, &at);
}

static bool encode_is_single_word(const char *text, size_t bytes, size_t start, size_t end) {
  size_t next = end;
  if (start > 0 && tn_unicode_is_word(encode_last(text, start))) return false;
  return end == bytes || !tn_unicode_is_word(tn_unicode_next(text, &next));
}

/* Extends a token over the white space that it takes with it, in front no further than `least`. */
static void encode_widen(const tn_added_token *token, const char *text, size_t bytes, size_t least,
                         size_t *start, size_t *end) {
  while (token->lstrip && *start > least && tn_unicode_is_space(encode_last(text, *start)))
    *start = encode_before(text, *start);
  for (size_t at = *end; token->rstrip && at < bytes && tn_unicode_is_space(tn_unicode_next(text, &at));)
    *end = at;
}

static tn_status encode_around(tn_encoder *e, const tn_added_set *set, const char *text, size_t bytes,
                               bool first, encode_part part) {
  const tn_added_token *token;
  size_t done = 0, at = 0;
  while ((token = tn_added_find(e->t, set, text, bytes, &at)) != NULL) {
    size_t start = at, end = at + token->bytes;
    at = end;
    if (token->single_word && !encode_is_single_word(text, bytes, start, end)) continue;
    encode_widen(token, text, bytes, done, &start, &end);
    if (start > done) TN_TRY(part(e, text + done, start - done, first && done == 0));
    TN_TRY(tn_vec_push(&e->env, &e->ids, token->id));
    done = end;
  }
  return done < bytes ? part(e, text + done, bytes - done, first && done == 0) : TN_OK;
}

static tn_status encode_normalized(tn_encoder *e, const char *text, size_t bytes, bool first) {
  return tn_encoder_split(e, 0, text, bytes, first);
}

static tn_status encode_plain(tn_encoder *e, const char *text, size_t bytes, bool first) {
  TN_TRY(tn_encoder_normalize(e, &text, &bytes));
  return encode_around(e, &e->t->behind, text, bytes, first, encode_normalized);
}

tn_status tn_encoder_run(tn_encoder *e, const char *text, size_t bytes) {
  e->ids.n = 0;
  if (e->t->model.kind == TN_MODEL_BYTES) {
    TN_TRY(tn_vec_reserve(&e->env, &e->ids, bytes));
    for (size_t i = 0; i < bytes; i++) e->ids.v[i] = (unsigned char)text[i];
    e->ids.n = bytes;
    return TN_OK;
  }
  size_t invalid = tn_unicode_invalid(text, bytes);
  if (invalid < bytes)
    return tn_failf(&e->env, TN_EINVAL,
                    "byte %zu of the text is not UTF-8; convert the text (iconv -t UTF-8)", invalid);
  return encode_around(e, &e->t->before, text, bytes, true, encode_plain);
}

/* ---- calls ---- */

enum { LONGEST_KEPT = 4 << 20 };

/* Encoders that no call uses are used again, with the words that they keep. */
static tn_encoder *encode_take(const tn_tokenizer *t) {
  tn_tokenizer *own = (tn_tokenizer *)(uintptr_t)t;
  pthread_mutex_lock(&own->lock);
  tn_encoder *e = own->idle;
  if (e != NULL) own->idle = e->next;
  pthread_mutex_unlock(&own->lock);
  return e;
}

/* That of a long text would hold its memory. */
static void encode_put_back(const tn_tokenizer *t, tn_encoder *e, size_t bytes) {
  if (bytes > LONGEST_KEPT) {
    tn_encoder_close(e);
    return;
  }
  tn_tokenizer *own = (tn_tokenizer *)(uintptr_t)t;
  pthread_mutex_lock(&own->lock);
  e->next = own->idle;
  own->idle = e;
  pthread_mutex_unlock(&own->lock);
}

static tn_status encode_append(const void *handle, const int32_t *ids, size_t n, tn_token_ids *to) {
  TN_TRY(tn_vec_reserve_(handle, (void **)&to->v, &to->room, to->n + n, sizeof *to->v));
  if (n > 0) memcpy(to->v + to->n, ids, n * sizeof *ids);
  to->n += n;
  return TN_OK;
}

static tn_status encode_write(const void *handle, const tn_encoder *e, uint32_t flags, tn_token_ids *ids) {
  bool around = (flags & TN_TOKENIZE_TEMPLATE) != 0;
  TN_TRY(encode_append(handle, e->t->before_ids, around ? (size_t)e->t->n_before : 0, ids));
  TN_TRY(encode_append(handle, e->ids.v, e->ids.n, ids));
  return encode_append(handle, e->t->behind_ids, around ? (size_t)e->t->n_behind : 0, ids);
}

/* One thread uses the caller's handle, and several may use the tokenizer: an encoder has a handle of its own,
 * and its message moves to the caller. */
tn_status tn_host_tokenizer_encode(const void *handle, const tn_tokenizer *t, const char *text, size_t bytes,
                                   uint32_t flags, tn_token_ids *ids) {
  tn_encoder *e = encode_take(t);
  if (e == NULL) TN_TRY(tn_encoder_open(handle, t, &e));
  tn_status status = tn_encoder_run(e, text, bytes);
  status = status == TN_OK ? encode_write(handle, e, flags, ids) : tn_error_move(handle, &e->env);
  encode_put_back(t, e, bytes);
  return status;
}
