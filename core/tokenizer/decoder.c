/* core/tokenizer/decoder.c: ids to text: the decoders of tokenizer.json. Those in front of "Fuse" change one
 * token at a time, so that a stream of ids can be written as it comes. */
#include <stdio.h>
#include <string.h>

#include "core/tokenizer/calls.h"
#include "core/tokenizer/tokenizer.h"

/* ---- reading ---- */

static tn_status decoder_keep(tn_tokenizer *t, const char *text, size_t bytes, tn_decode_step *step) {
  step->text = tn_json_keep(t, text, bytes);
  step->bytes = bytes;
  return step->text != NULL ? TN_OK : TN_ENOMEM;
}

static tn_status decoder_read_replace(tn_tokenizer *t, const tn_json_place *place, tn_decode_step *step) {
  const char *text;
  size_t bytes;
  TN_TRY(tn_step_read_pattern(t, place, &step->replace));
  if (step->replace.pattern != NULL)
    return tn_json_fail(place, TN_EUNSUPPORTED, "a pattern is not supported");
  TN_TRY(tn_json_read_text(place, "content", NULL, &text, &bytes));
  return decoder_keep(t, text, bytes, step);
}

static tn_status decoder_read_metaspace(tn_tokenizer *t, const tn_json_place *place, tn_decode_step *step) {
  static const char *const names[] = {"always", "first", "never"};
  const char *text;
  size_t bytes;
  bool prefix;
  TN_TRY(tn_json_read_flag(place, "add_prefix_space", true, &prefix));
  int32_t otherwise = prefix ? TN_PREPEND_ALWAYS : TN_PREPEND_NEVER;
  TN_TRY(tn_json_read_word(place, "prepend_scheme", names, 3, otherwise, &step->prepend));
  TN_TRY(tn_json_read_character(place, "replacement", "\xe2\x96\x81", &text, &bytes));
  return decoder_keep(t, text, bytes, step);
}

static tn_status decoder_read_strip(tn_tokenizer *t, const tn_json_place *place, tn_decode_step *step) {
  const char *text;
  size_t bytes;
  TN_TRY(tn_json_read_character(place, "content", " ", &text, &bytes));
  TN_TRY(tn_json_read_int(place, "start", 0, 1 << 20, 0, &step->start));
  TN_TRY(tn_json_read_int(place, "stop", 0, 1 << 20, 0, &step->stop));
  return decoder_keep(t, text, bytes, step);
}

static tn_status decoder_read_affix(tn_tokenizer *t, const tn_json_place *place, const char *name,
                                    const char *otherwise, tn_decode_step *step) {
  const char *text;
  size_t bytes;
  TN_TRY(tn_json_read_text(place, name, otherwise, &text, &bytes));
  TN_TRY(tn_json_read_flag(place, "cleanup", true, &step->cleanup));
  return decoder_keep(t, text, bytes, step);
}

static tn_status decoder_fill(tn_tokenizer *t, const tn_json_place *place, tn_decode_step *step) {
  switch (step->kind) {
  case TN_DECODE_REPLACE: return decoder_read_replace(t, place, step);
  case TN_DECODE_STRIP: return decoder_read_strip(t, place, step);
  case TN_DECODE_METASPACE: return decoder_read_metaspace(t, place, step);
  case TN_DECODE_WORDPIECE: return decoder_read_affix(t, place, "prefix", "##", step);
  default: return decoder_read_affix(t, place, "suffix", "</w>", step);
  }
}

/* Behind the joined text only a Strip at its start can be applied to a stream. */
static tn_status decoder_read_last(tn_tokenizer *t, const tn_json_place *place, int32_t kind) {
  tn_decoder_parts *d = &t->decoder;
  tn_decode_step step = {.kind = kind};
  if (kind == TN_DECODE_STRIP && !d->strip) TN_TRY(decoder_fill(t, place, &step));
  if (kind != TN_DECODE_STRIP || d->strip || step.stop > 0)
    return tn_json_fail(place, TN_EUNSUPPORTED, "is not supported behind Fuse, ByteFallback or ByteLevel");
  d->strip = true;
  d->strip_text = step.text;
  d->strip_bytes = step.bytes;
  d->strip_most = step.start;
  return TN_OK;
}

static tn_status decoder_read(tn_tokenizer *t, const tn_json_place *place, int32_t depth) {
  static const char *const names[] = {"Replace",   "Strip",        "Metaspace", "WordPiece", "BPEDecoder",
                                      "ByteLevel", "ByteFallback", "Fuse",      "Sequence"};
  int32_t number;
  tn_decoder_parts *d = &t->decoder;
  TN_TRY(tn_json_read_word(place, "type", names, 9, -1, &number));
  if (number == 8) return tn_json_read_sequence(t, place, "decoders", decoder_read, depth);
  if (number == 7) return d->fused = true, TN_OK;
  if (d->fused) return decoder_read_last(t, place, number);
  if (number == 6 || (number == 5 && !d->byte_fallback)) {
    d->byte_fallback = number == 6;
    d->byte_level = d->fused = number == 5;
    return TN_OK;
  }
  if (d->byte_fallback || d->n == TN_TOKENIZER_STEPS)
    return tn_json_fail(place, TN_EUNSUPPORTED, "is not supported at this place");
  tn_decode_step *step = &d->v[d->n++];
  step->kind = number;
  return decoder_fill(t, place, step);
}

tn_status tn_decoder_read(tn_tokenizer *t, const tn_json_place *place) {
  bool own = t->model.kind == TN_MODEL_BYTES || t->model.kind == TN_MODEL_PIECES;
  t->decoder.spaces = tn_json_absent(place) && !own;
  return tn_json_absent(place) ? TN_OK : decoder_read(t, place, 0);
}

/* ---- one token ---- */

struct tn_token_stream {
  tn_env env;
  tn_error_record record;
  const tn_tokenizer *t;
  uint32_t flags;
  bool whole; /* all ids come before the text is wanted: the reference's treatment of wrong bytes */
  bool started, last_was_byte;
  int64_t stripped;     /* characters that were stripped from the start; -1: no more */
  tn_text token, other; /* of one id, in front of a step and behind it */
  tn_text held;         /* bytes that are no whole characters yet */
  tn_text out;
};

static void decoder_replace(const tn_decode_step *step, const tn_text *from, tn_text *to) {
  const char *sought = step->replace.text, *at = from->v, *end = from->v + from->n, *found;
  while ((found = memmem(at, (size_t)(end - at), sought, step->replace.text_bytes)) != NULL) {
    tn_text_addn(to, at, (size_t)(found - at));
    tn_text_addn(to, step->text, step->bytes);
    at = found + step->replace.text_bytes;
  }
  tn_text_addn(to, at, (size_t)(end - at));
}

static void decoder_strip(const tn_decode_step *step, const tn_text *from, tn_text *to) {
  size_t start = 0, end = from->n, n = step->bytes;
  for (int64_t i = 0; i < step->start && start + n <= end && memcmp(from->v + start, step->text, n) == 0; i++)
    start += n;
  for (int64_t i = 0; i < step->stop && end >= start + n && memcmp(from->v + end - n, step->text, n) == 0;
       i++)
    end -= n;
  tn_text_addn(to, from->v + start, end - start);
}

static void decoder_metaspace(const tn_decode_step *step, bool first, const tn_text *from, tn_text *to) {
  const char *at = from->v, *end = from->v + from->n, *found;
  bool dropped = first && step->prepend != TN_PREPEND_NEVER;
  while ((found = memmem(at, (size_t)(end - at), step->text, step->bytes)) != NULL) {
    tn_text_addn(to, at, (size_t)(found - at));
    if (!dropped) tn_text_addn(to, " ", 1);
    at = found + step->bytes;
  }
  tn_text_addn(to, at, (size_t)(end - at));
}

/* English contractions and signs without the space in front, in the reference's order. */
static void decoder_clean(tn_text *text, tn_text *scratch) {
  static const char *const pairs[][2] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    const tn_decode_step step = {.replace = {.text = pairs[i][0], .text_bytes = strlen(pairs[i][0])},
                                 .text = pairs[i][1],
                                 .bytes = strlen(pairs[i][1])};
    scratch->n = 0;
    decoder_replace(&step, text, scratch);
    tn_text swapped = *text;
    *text = *scratch;
    *scratch = swapped;
  }
}

static void decoder_wordpiece(const tn_decode_step *step, bool first, tn_text *from, tn_text *to) {
  bool inner = !first && from->n >= step->bytes && memcmp(from->v, step->text, step->bytes) == 0;
  size_t skip = inner ? step->bytes : 0;
  if (!first && !inner) tn_text_addn(to, " ", 1);
  tn_text_addn(to, from->v + skip, from->n - skip);
  if (step->cleanup) decoder_clean(to, from);
}

/* CLIP: the suffix of a word's last token is a space. */
static void decoder_bpe(const tn_decode_step *step, const tn_text *from, tn_text *to) {
  const tn_decode_step replace = {
      .replace = {.text = step->text, .text_bytes = step->bytes}, .text = " ", .bytes = 1};
  decoder_replace(&replace, from, to);
}

static tn_status decoder_step(tn_token_stream *s, const tn_decode_step *step) {
  tn_text *from = &s->token, *to = &s->other;
  to->n = 0;
  tn_text_addn(to, "", 0);
  if (from->failed || to->failed) return TN_ENOMEM;
  switch (step->kind) {
  case TN_DECODE_REPLACE: decoder_replace(step, from, to); break;
  case TN_DECODE_STRIP: decoder_strip(step, from, to); break;
  case TN_DECODE_METASPACE: decoder_metaspace(step, !s->started, from, to); break;
  case TN_DECODE_WORDPIECE: decoder_wordpiece(step, !s->started, from, to); break;
  default: decoder_bpe(step, from, to); break;
  }
  tn_text swapped = *from;
  *from = *to;
  *to = swapped;
  return from->failed || to->failed ? TN_ENOMEM : TN_OK;
}

/* ---- bytes and characters ---- */

/* Strips the joined text's start. */
static void decoder_write(tn_token_stream *s, const char *text, size_t bytes) {
  const tn_decoder_parts *d = &s->t->decoder;
  while (d->strip && s->stripped >= 0 && bytes > 0) {
    bool same = s->stripped < d->strip_most && bytes >= d->strip_bytes &&
                memcmp(text, d->strip_text, d->strip_bytes) == 0;
    s->stripped = same ? s->stripped + 1 : -1;
    if (!same) break;
    text += d->strip_bytes;
    bytes -= d->strip_bytes;
  }
  tn_text_addn(&s->out, text, bytes);
}

/* Writes the whole characters of the held bytes. `end`: no more bytes follow. */
static void decoder_release(tn_token_stream *s, bool end) {
  size_t at = 0;
  while (at < s->held.n) {
    int32_t n = tn_unicode_prefix(s->held.v + at, s->held.n - at);
    if (n == 0 && !end) break;
    size_t taken = n > 0 ? (size_t)n : n < 0 ? (size_t)-n : s->held.n - at;
    size_t wrong = n > 0 ? 0 : s->t->model.sentencepiece ? taken : 1;
    if (n > 0) decoder_write(s, s->held.v + at, taken);
    for (size_t i = 0; i < wrong; i++) decoder_write(s, "\xef\xbf\xbd", 3);
    at += taken;
  }
  if (at > 0) memmove(s->held.v, s->held.v + at, s->held.n - at);
  s->held.n -= at;
}

/* A run of byte tokens ends. The reference writes one U+FFFD for each byte of a run that is no UTF-8. */
static void decoder_end_run(tn_token_stream *s) {
  if (s->held.n == 0) return;
  if (!s->whole || s->t->model.sentencepiece || tn_unicode_invalid(s->held.v, s->held.n) == s->held.n) {
    decoder_release(s, true);
    return;
  }
  for (size_t i = 0; i < s->held.n; i++) decoder_write(s, "\xef\xbf\xbd", 3);
  s->held.n = 0;
}

static bool decoder_is_byte(const tn_text *token, char *byte) {
  unsigned value;
  char after;
  if (token->n != 6 || memcmp(token->v, "<0x", 3) != 0 || token->v[5] != '>') return false;
  if (sscanf(token->v + 3, "%2x%c", &value, &after) != 2 || after != '>') return false;
  *byte = (char)value;
  return true;
}

/* The bytes of a token of GPT-2's alphabet; a token with other characters is text. */
static void decoder_add_level(tn_token_stream *s) {
  size_t n = 0;
  s->other.n = 0;
  for (size_t at = 0; at < s->token.n; n++) {
    int32_t byte = tn_character_byte(tn_unicode_next(s->token.v, &at));
    if (byte < 0) {
      tn_text_addn(&s->held, s->token.v, s->token.n);
      return;
    }
    tn_text_addn(&s->other, &(char){(char)byte}, 1);
  }
  tn_text_addn(&s->held, s->other.v, s->other.n);
}

static void decoder_add_token(tn_token_stream *s) {
  const tn_decoder_parts *d = &s->t->decoder;
  char byte;
  if (s->t->model.kind == TN_MODEL_BYTES && s->whole) {
    tn_text_addn(&s->out, s->token.v, s->token.n);
  } else if (d->byte_level || s->t->model.kind == TN_MODEL_BYTES) {
    if (d->byte_level)
      decoder_add_level(s);
    else
      tn_text_addn(&s->held, s->token.v, s->token.n);
    decoder_release(s, false);
  } else if (d->byte_fallback && decoder_is_byte(&s->token, &byte)) {
    tn_text_addn(&s->held, &byte, 1);
    if (!s->whole) decoder_release(s, false);
  } else {
    decoder_end_run(s);
    decoder_write(s, s->token.v, s->token.n);
  }
}

/* SentencePiece's " \u2047 ", whose blanks stay at the start. */
static tn_status decoder_add_unknown(tn_token_stream *s) {
  decoder_end_run(s);
  s->started = true;
  s->stripped = -1;
  tn_text_addn(&s->out, s->t->model.surface, s->t->model.surface_bytes);
  return s->out.failed ? TN_ENOMEM : TN_OK;
}

static tn_status decoder_push(tn_token_stream *s, int32_t id) {
  const tn_tokenizer *t = s->t;
  if (id < 0 || id >= t->n || t->pieces[id].text == NULL)
    return tn_failf(&s->env, TN_EINVAL, "%s: has no token %d, expected 0 .. %d", t->name, id, t->n - 1);
  if (t->pieces[id].special && (s->flags & TN_TOKENIZE_SPECIAL) == 0) return TN_OK;
  if (t->model.sentencepiece && id == t->model.unknown) return decoder_add_unknown(s);
  s->token.n = 0;
  if (t->decoder.spaces && s->started) tn_text_addn(&s->token, " ", 1);
  tn_text_addn(&s->token, t->pieces[id].text, t->pieces[id].bytes);
  for (int32_t i = 0; i < t->decoder.n; i++) TN_TRY(decoder_step(s, &t->decoder.v[i]));
  if (s->token.failed) return TN_ENOMEM;
  s->started = true;
  decoder_add_token(s);
  return s->out.failed || s->held.failed || s->other.failed ? TN_ENOMEM : TN_OK;
}

/* ---- calls ---- */

tn_status tn_host_token_stream_open(const void *handle, const tn_tokenizer *t, uint32_t flags,
                                    tn_token_stream **stream) {
  tn_token_stream *s = tn_alloc(handle, sizeof *s);
  *stream = s;
  if (s == NULL) return TN_ENOMEM;
  tn_error_record_init(&s->env, &s->record, handle);
  s->t = t;
  s->flags = flags;
  s->token = s->other = s->held = s->out = tn_text_new(&s->env);
  return TN_OK;
}

void tn_host_token_stream_close(const void *handle, tn_token_stream *s) {
  if (s == NULL) return;
  tn_text_free(&s->token);
  tn_text_free(&s->other);
  tn_text_free(&s->held);
  tn_text_free(&s->out);
  tn_release(handle, s);
}

static void decoder_give(const tn_token_stream *s, const char **text, size_t *bytes) {
  *text = s->out.v != NULL ? s->out.v : "";
  *bytes = s->out.n;
}

tn_status tn_host_token_stream_next(const void *handle, tn_token_stream *s, int32_t id, const char **text,
                                    size_t *bytes) {
  s->out.n = 0;
  tn_status status = decoder_push(s, id);
  decoder_give(s, text, bytes);
  return status == TN_OK ? TN_OK : tn_error_move(handle, &s->env);
}

tn_status tn_host_token_stream_end(const void *handle, tn_token_stream *s, const char **text, size_t *bytes) {
  s->out.n = 0;
  decoder_release(s, true);
  decoder_give(s, text, bytes);
  return s->out.failed ? tn_error_move(handle, &s->env) : TN_OK;
}

tn_status tn_host_tokenizer_decode(const void *handle, const tn_tokenizer *t, const int32_t *ids, size_t n,
                                   uint32_t flags, char **text, size_t *bytes) {
  tn_token_stream *s;
  *text = NULL;
  *bytes = 0;
  TN_TRY(tn_host_token_stream_open(handle, t, flags, &s));
  s->whole = true;
  tn_status status = TN_OK;
  for (size_t i = 0; status == TN_OK && i < n; i++) status = decoder_push(s, ids[i]);
  if (t->decoder.byte_fallback)
    decoder_end_run(s);
  else
    decoder_release(s, true);
  tn_text_addn(&s->out, "", 0);
  if (status == TN_OK && s->out.failed) status = TN_ENOMEM;
  if (status == TN_OK) {
    *bytes = s->out.n;
    *text = tn_text_take(&s->out);
    status = *text != NULL ? TN_OK : TN_ENOMEM;
  }
  if (status != TN_OK) tn_error_move(handle, &s->env);
  tn_host_token_stream_close(handle, s);
  return status;
}
