/* core/tokenizer/steps/normalizer.c: the normalizers of tokenizer.json. */
#include <string.h>

#include "core/tokenizer/tokenizer.h"

/* ---- reading ---- */

static tn_status normalizer_read_bert(const tn_json_place *place, tn_step *step) {
  TN_TRY(tn_json_read_flag(place, "clean_text", true, &step->clean));
  TN_TRY(tn_json_read_flag(place, "handle_chinese_chars", true, &step->chinese));
  TN_TRY(tn_json_read_flag(place, "lowercase", true, &step->lower));
  return tn_json_read_flag(place, "strip_accents", step->lower, &step->accents);
}

static tn_status normalizer_read_content(tn_tokenizer *t, const tn_json_place *place, const char *name,
                                         tn_step *step) {
  const char *text;
  TN_TRY(tn_json_read_text(place, name, NULL, &text, &step->content_bytes));
  step->content = tn_json_keep(t, text, step->content_bytes);
  return step->content != NULL ? TN_OK : TN_ENOMEM;
}

static tn_status normalizer_fill(tn_tokenizer *t, const tn_json_place *place, tn_step *step) {
  switch (step->kind) {
  case TN_STEP_BERT: return normalizer_read_bert(place, step);
  case TN_STEP_CHARSMAP: return tn_charsmap_read(t, place, step);
  case TN_STEP_SENTENCEPIECE: return tn_sentencepiece_normalizer(t, place, step);
  case TN_STEP_PREPEND: return normalizer_read_content(t, place, "prepend", step);
  case TN_STEP_REPLACE:
    TN_TRY(tn_step_read_pattern(t, place, step));
    return normalizer_read_content(t, place, "content", step);
  case TN_STEP_STRIP:
    TN_TRY(tn_json_read_flag(place, "strip_left", true, &step->left));
    return tn_json_read_flag(place, "strip_right", true, &step->right);
  default: return TN_OK;
  }
}

static tn_status normalizer_read(tn_tokenizer *t, const tn_json_place *place, int32_t depth) {
  static const char *const names[] = {
      "NFC",          "NFD",           "NFKC",    "NFKD",           "Lowercase",
      "StripAccents", "Strip",         "Replace", "BertNormalizer", "Prepend",
      "Precompiled",  "SentencePiece", "Sequence"};
  static const int32_t kinds[] = {TN_STEP_NORMALIZE, TN_STEP_NORMALIZE, TN_STEP_NORMALIZE,
                                  TN_STEP_NORMALIZE, TN_STEP_LOWER,     TN_STEP_STRIP_ACCENTS,
                                  TN_STEP_STRIP,     TN_STEP_REPLACE,   TN_STEP_BERT,
                                  TN_STEP_PREPEND,   TN_STEP_CHARSMAP,  TN_STEP_SENTENCEPIECE};
  enum { N = sizeof names / sizeof *names };
  int32_t number;
  TN_TRY(tn_json_read_word(place, "type", names, N, -1, &number));
  if (number == N - 1) return tn_json_read_sequence(t, place, "normalizers", normalizer_read, depth);
  tn_step *step = tn_steps_add(&t->normalizers, place);
  if (step == NULL) return TN_EUNSUPPORTED;
  step->kind = kinds[number];
  step->form = number;
  bool plain = step->kind == TN_STEP_REPLACE || step->kind == TN_STEP_PREPEND ||
               step->kind == TN_STEP_STRIP || step->kind == TN_STEP_SENTENCEPIECE;
  if (!plain) TN_TRY(tn_unicode_need(&t->env, t->name));
  return normalizer_fill(t, place, step);
}

tn_status tn_normalizers_read(tn_tokenizer *t, const tn_json_place *place) {
  return tn_json_absent(place) ? TN_OK : normalizer_read(t, place, 0);
}

/* ---- running: each appends the normalized text ---- */

static void normalizer_lower(const char *text, size_t bytes, tn_text *to) {
  for (size_t at = 0; at < bytes;) tn_unicode_add_lower(to, tn_unicode_next(text, &at));
}

static void normalizer_drop_marks(const char *text, size_t bytes, bool (*is_mark)(int32_t), tn_text *to) {
  for (size_t at = 0, start = 0; at < bytes; start = at)
    if (!is_mark(tn_unicode_next(text, &at))) tn_text_addn(to, text + start, at - start);
}

static void normalizer_strip(const tn_step *step, const char *text, size_t bytes, tn_text *to) {
  size_t start = 0, end = step->right ? 0 : bytes, first = bytes;
  for (size_t at = 0, begin = 0; at < bytes; begin = at) {
    if (tn_unicode_is_space(tn_unicode_next(text, &at))) continue;
    if (first == bytes) first = begin;
    if (step->right) end = at;
  }
  if (step->left) start = first < end ? first : end;
  tn_text_addn(to, text + start, end - start);
}

/* CJK ideographs, in the ranges of the reference. */
static bool normalizer_is_chinese(int32_t c) {
  return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <= 0x2a6df) ||
         (c >= 0x2a700 && c <= 0x2b73f) || (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
         (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

static void normalizer_bert_clean(const tn_step *step, const char *text, size_t bytes, tn_text *to) {
  for (size_t at = 0, start = 0; at < bytes; start = at) {
    int32_t c = tn_unicode_next(text, &at);
    bool space = tn_unicode_is_space(c);
    if (step->clean &&
        (c == 0xfffd || c == 0 || (!(c == '\t' || c == '\n' || c == '\r') && tn_unicode_is_control(c))))
      continue;
    if (step->clean && space)
      tn_text_addn(to, " ", 1);
    else if (step->chinese && normalizer_is_chinese(c))
      tn_text_addf(to, " %.*s ", (int)(at - start), text + start);
    else
      tn_text_addn(to, text + start, at - start);
  }
}

/* Three passes, as in the reference: clean, without accents, in lower case. */
static tn_status normalizer_bert(tn_encoder *e, const tn_step *step, const char *text, size_t bytes,
                                 tn_text *to) {
  tn_text *scratch = &e->word;
  scratch->n = 0;
  normalizer_bert_clean(step, text, bytes, scratch);
  if (step->accents) {
    to->n = 0;
    TN_TRY(tn_unicode_normalize(&e->env, TN_NFD, scratch->v != NULL ? scratch->v : "", scratch->n, &e->codes,
                                to));
    scratch->n = 0;
    normalizer_drop_marks(to->v != NULL ? to->v : "", to->n, tn_unicode_is_nonspacing_mark, scratch);
  }
  to->n = 0;
  const char *cleaned = scratch->v != NULL ? scratch->v : "";
  if (step->lower)
    normalizer_lower(cleaned, scratch->n, to);
  else
    tn_text_addn(to, cleaned, scratch->n);
  return scratch->failed ? TN_ENOMEM : TN_OK;
}

/* The next place of the text or pattern that a step seeks, from `at` on. Without one, *start is SIZE_MAX. */
static tn_status normalizer_find(tn_encoder *e, const tn_step *step, const char *text, size_t bytes,
                                 size_t at, size_t *start, size_t *end) {
  if (step->pattern != NULL)
    return tn_pattern_find(&e->env, step->pattern, e->matcher, text, bytes, at, start, end);
  const char *found = memmem(text + at, bytes - at, step->text, step->text_bytes);
  *start = found != NULL ? (size_t)(found - text) : SIZE_MAX;
  *end = found != NULL ? *start + step->text_bytes : SIZE_MAX;
  return TN_OK;
}

static tn_status normalizer_replace(tn_encoder *e, const tn_step *step, const char *text, size_t bytes,
                                    tn_text *to) {
  size_t at = 0, kept = 0, start, end;
  while (at <= bytes) {
    TN_TRY(normalizer_find(e, step, text, bytes, at, &start, &end));
    if (start == SIZE_MAX) break;
    tn_text_addn(to, text + kept, start - kept);
    tn_text_addn(to, step->content, step->content_bytes);
    kept = at = end;
    if (end > start) continue;
    if (at == bytes) break;
    tn_unicode_next(text, &at); /* behind an empty match */
  }
  tn_text_addn(to, text + kept, bytes - kept);
  return TN_OK;
}

static tn_status normalizer_run(tn_encoder *e, const tn_step *step, const char *text, size_t bytes,
                                tn_text *to) {
  switch (step->kind) {
  case TN_STEP_NORMALIZE: return tn_unicode_normalize(&e->env, step->form, text, bytes, &e->codes, to);
  case TN_STEP_LOWER: normalizer_lower(text, bytes, to); return TN_OK;
  case TN_STEP_STRIP_ACCENTS: normalizer_drop_marks(text, bytes, tn_unicode_is_mark, to); return TN_OK;
  case TN_STEP_STRIP: normalizer_strip(step, text, bytes, to); return TN_OK;
  case TN_STEP_CHARSMAP: tn_charsmap_run(step, text, bytes, to); return TN_OK;
  case TN_STEP_SENTENCEPIECE: tn_sentencepiece_normalize(e->t, step, text, bytes, to); return TN_OK;
  case TN_STEP_BERT: return normalizer_bert(e, step, text, bytes, to);
  case TN_STEP_REPLACE: return normalizer_replace(e, step, text, bytes, to);
  default: /* TN_STEP_PREPEND */
    if (bytes > 0) tn_text_addn(to, step->content, step->content_bytes);
    tn_text_addn(to, text, bytes);
    return TN_OK;
  }
}

tn_status tn_encoder_normalize(tn_encoder *e, const char **text, size_t *bytes) {
  const tn_steps *steps = &e->t->normalizers;
  for (int32_t i = 0; i < steps->n; i++) {
    tn_text *to = &e->normalized[i % 2];
    to->n = 0;
    tn_text_addn(to, "", 0);
    TN_TRY(normalizer_run(e, &steps->v[i], *text, *bytes, to));
    if (to->failed) return TN_ENOMEM;
    *text = to->v;
    *bytes = to->n;
  }
  return TN_OK;
}
