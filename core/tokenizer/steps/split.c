/* core/tokenizer/steps/split.c: the pre-tokenizers of tokenizer.json. Each cuts a piece at matches and hands
 * the rest to the next step at once. */
#include <string.h>

#include "core/tokenizer/tokenizer.h"

/* ---- reading ---- */

static tn_status split_read_behavior(const tn_json_place *place, int32_t otherwise, tn_step *step) {
  static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext",
                                      "Contiguous"};
  return tn_json_read_word(place, "behavior", names, 5, otherwise, &step->behavior);
}

static tn_status split_read_character(tn_tokenizer *t, const tn_json_place *place, const char *name,
                                      const char *otherwise, tn_step *step) {
  const char *text;
  TN_TRY(tn_json_read_character(place, name, otherwise, &text, &step->text_bytes));
  step->text = tn_json_keep(t, text, step->text_bytes);
  return step->text != NULL ? TN_OK : TN_ENOMEM;
}

/* Files of before 2024 have add_prefix_space in place of prepend_scheme. */
static tn_status split_read_metaspace(tn_tokenizer *t, const tn_json_place *place, tn_step *step) {
  static const char *const names[] = {"always", "first", "never"};
  bool prefix;
  TN_TRY(tn_json_read_flag(place, "add_prefix_space", true, &prefix));
  int32_t otherwise = prefix ? TN_PREPEND_ALWAYS : TN_PREPEND_NEVER;
  TN_TRY(tn_json_read_word(place, "prepend_scheme", names, 3, otherwise, &step->prepend));
  TN_TRY(tn_json_read_flag(place, "split", true, &step->split));
  return split_read_character(t, place, "replacement", "\xe2\x96\x81", step);
}

static tn_status split_read_bytes(tn_tokenizer *t, const tn_json_place *place, tn_step *step) {
  TN_TRY(tn_json_read_flag(place, "add_prefix_space", true, &step->prefix));
  TN_TRY(tn_json_read_flag(place, "use_regex", true, &step->split));
  step->behavior = TN_SPLIT_ISOLATED;
  t->byte_level = true;
  return step->split ? tn_step_gpt2_pattern(t, place, step) : TN_OK;
}

/* Words of letters, and runs of other characters that are no white space: all else is removed. The reference
 * takes its letters from Rust's regex here, which has the two joiners. */
static tn_status split_read_whitespace(tn_tokenizer *t, const tn_json_place *place, tn_step *step) {
  static const char pattern[] =
      "[" TN_PATTERN_LETTERS "\\x{200c}\\x{200d}]+|[^" TN_PATTERN_LETTERS "\\x{200c}\\x{200d}\\s]+";
  t->patterns = true;
  step->invert = true;
  step->behavior = TN_SPLIT_REMOVED;
  return tn_pattern_open(&t->env, place->path, pattern, sizeof pattern - 1, &step->pattern);
}

static tn_status split_fill(tn_tokenizer *t, const tn_json_place *place, tn_step *step) {
  switch (step->kind) {
  case TN_STEP_BYTES: return split_read_bytes(t, place, step);
  case TN_STEP_METASPACE: return split_read_metaspace(t, place, step);
  case TN_STEP_DELIMITER: return split_read_character(t, place, "delimiter", NULL, step);
  case TN_STEP_PUNCTUATION:
    TN_TRY(tn_unicode_need(&t->env, t->name));
    return split_read_behavior(place, TN_SPLIT_ISOLATED, step);
  case TN_STEP_DIGITS:
    TN_TRY(tn_unicode_need(&t->env, t->name));
    TN_TRY(tn_json_read_flag(place, "individual_digits", false, &step->split));
    step->behavior = step->split ? TN_SPLIT_ISOLATED : TN_SPLIT_CONTIGUOUS;
    return TN_OK;
  case TN_STEP_BERT_WORDS: return tn_unicode_need(&t->env, t->name);
  case TN_STEP_SPLIT:
    TN_TRY(split_read_behavior(place, -1, step));
    TN_TRY(tn_json_read_flag(place, "invert", false, &step->invert));
    return tn_step_read_pattern(t, place, step);
  default: return TN_OK;
  }
}

static tn_status split_read(tn_tokenizer *t, const tn_json_place *place, int32_t depth) {
  static const char *const names[] = {"ByteLevel",  "Split",       "WhitespaceSplit", "BertPreTokenizer",
                                      "Digits",     "Punctuation", "Metaspace",       "CharDelimiterSplit",
                                      "Whitespace", "Sequence"};
  static const int32_t kinds[] = {TN_STEP_BYTES,      TN_STEP_SPLIT,     TN_STEP_SPACES,
                                  TN_STEP_BERT_WORDS, TN_STEP_DIGITS,    TN_STEP_PUNCTUATION,
                                  TN_STEP_METASPACE,  TN_STEP_DELIMITER, TN_STEP_SPLIT};
  enum { N = sizeof names / sizeof *names };
  int32_t number;
  TN_TRY(tn_json_read_word(place, "type", names, N, -1, &number));
  if (number == N - 1) return tn_json_read_sequence(t, place, "pretokenizers", split_read, depth);
  if (t->byte_level)
    return tn_json_fail(place, TN_EUNSUPPORTED, "a pre-tokenizer behind ByteLevel is not supported");
  tn_step *step = tn_steps_add(&t->splits, place);
  if (step == NULL) return TN_EUNSUPPORTED;
  step->kind = kinds[number];
  return number == N - 2 ? split_read_whitespace(t, place, step) : split_fill(t, place, step);
}

tn_status tn_splits_read(tn_tokenizer *t, const tn_json_place *place) {
  return tn_json_absent(place) ? TN_OK : split_read(t, place, 0);
}

/* ---- cutting ---- */

/* Matches and the text between them come in order; the behavior says which of them are joined. */
typedef struct split_cutter {
  tn_encoder *e;
  const char *text;
  int32_t next, behavior;
  bool first;       /* the piece begins the text */
  bool held, match; /* start..end waits for the next piece; whether the last one was a match */
  size_t start, end;
} split_cutter;

static tn_status cutter_emit(split_cutter *c, size_t start, size_t end) {
  if (start == end) return TN_OK;
  return tn_encoder_split(c->e, c->next, c->text + start, end - start, c->first && start == 0);
}

static tn_status cutter_finish(split_cutter *c) {
  bool held = c->held;
  c->held = false;
  return held ? cutter_emit(c, c->start, c->end) : TN_OK;
}

static bool cutter_joins(const split_cutter *c, bool match) {
  if (!c->held) return false;
  if (c->behavior == TN_SPLIT_WITH_PREVIOUS) return match && !c->match;
  if (c->behavior == TN_SPLIT_WITH_NEXT) return !match && c->match;
  return match == c->match; /* TN_SPLIT_CONTIGUOUS */
}

static tn_status cutter_add(split_cutter *c, size_t start, size_t end, bool match) {
  if (c->behavior == TN_SPLIT_REMOVED) return match ? TN_OK : cutter_emit(c, start, end);
  if (c->behavior == TN_SPLIT_ISOLATED) return cutter_emit(c, start, end);
  if (cutter_joins(c, match)) {
    c->end = end;
  } else {
    TN_TRY(cutter_finish(c));
    c->held = true;
    c->start = start;
    c->end = end;
  }
  c->match = match;
  return TN_OK;
}

static tn_status split_find(tn_encoder *e, const tn_step *step, const char *text, size_t bytes, size_t at,
                            size_t *start, size_t *end) {
  if (step->pattern != NULL)
    return tn_pattern_find(&e->env, step->pattern, e->matcher, text, bytes, at, start, end);
  const char *found = memmem(text + at, bytes - at, step->text, step->text_bytes);
  *start = found != NULL ? (size_t)(found - text) : SIZE_MAX;
  *end = found != NULL ? *start + step->text_bytes : SIZE_MAX;
  return TN_OK;
}

/* Cuts at what a step seeks. An empty match is a border between two pieces. */
static tn_status split_by_pattern(split_cutter *c, const tn_step *step, size_t bytes) {
  size_t at = 0, cut = 0, start, end;
  while (at < bytes) {
    TN_TRY(split_find(c->e, step, c->text, bytes, at, &start, &end));
    if (start == SIZE_MAX || start >= bytes) break;
    if (start > cut) TN_TRY(cutter_add(c, cut, start, step->invert));
    if (end > start) TN_TRY(cutter_add(c, start, end, !step->invert));
    cut = at = end;
    if (end == start) tn_unicode_next(c->text, &at);
  }
  if (cut < bytes) TN_TRY(cutter_add(c, cut, bytes, step->invert));
  return cutter_finish(c);
}

/* Cuts at characters: a match is one character. */
static tn_status split_by_class(split_cutter *c, bool (*matches)(int32_t), size_t bytes) {
  size_t cut = 0;
  for (size_t at = 0, start = 0; at < bytes; start = at) {
    if (!matches(tn_unicode_next(c->text, &at))) continue;
    if (start > cut) TN_TRY(cutter_add(c, cut, start, false));
    TN_TRY(cutter_add(c, start, at, true));
    cut = at;
  }
  if (cut < bytes) TN_TRY(cutter_add(c, cut, bytes, false));
  return cutter_finish(c);
}

/* BERT: words between white space, and every sign of punctuation a word of its own. */
static tn_status split_bert(split_cutter *c, size_t bytes) {
  size_t cut = 0;
  for (size_t at = 0, start = 0; at < bytes; start = at) {
    int32_t code = tn_unicode_next(c->text, &at);
    bool space = tn_unicode_is_space(code);
    if (!space && !tn_unicode_is_punctuation(code)) continue;
    TN_TRY(cutter_emit(c, cut, start));
    if (!space) TN_TRY(cutter_emit(c, start, at));
    cut = at;
  }
  return cutter_emit(c, cut, bytes);
}

static tn_status split_metaspace(split_cutter *c, int32_t number, const tn_step *step, size_t bytes) {
  tn_text *to = &c->e->written[number];
  const char *text = c->text;
  to->n = 0;
  size_t n = step->text_bytes;
  bool marked = bytes > 0 && (text[0] == ' ' || (bytes >= n && memcmp(text, step->text, n) == 0));
  bool wanted = step->prepend == TN_PREPEND_ALWAYS || (step->prepend == TN_PREPEND_FIRST && c->first);
  if (wanted && !marked) tn_text_addn(to, step->text, n);
  for (size_t at = 0; at < bytes;) {
    const char *space = memchr(text + at, ' ', bytes - at);
    size_t end = space != NULL ? (size_t)(space - text) : bytes;
    tn_text_addn(to, text + at, end - at);
    if (space != NULL) tn_text_addn(to, step->text, n);
    at = end + (space != NULL);
  }
  if (to->failed) return TN_ENOMEM;
  c->text = to->v;
  c->behavior = TN_SPLIT_WITH_NEXT;
  return step->split ? split_by_pattern(c, step, to->n) : cutter_emit(c, 0, to->n);
}

static tn_status split_bytes(split_cutter *c, int32_t number, const tn_step *step, size_t bytes) {
  if (step->prefix && bytes > 0 && c->text[0] != ' ') {
    tn_text *to = &c->e->written[number];
    to->n = 0;
    tn_text_addn(to, " ", 1);
    tn_text_addn(to, c->text, bytes++);
    if (to->failed) return TN_ENOMEM;
    c->text = to->v;
  }
  return step->split ? split_by_pattern(c, step, bytes) : cutter_emit(c, 0, bytes);
}

tn_status tn_encoder_split(tn_encoder *e, int32_t number, const char *text, size_t bytes, bool first) {
  if (number == e->t->splits.n) return tn_encoder_word(e, text, bytes);
  const tn_step *step = &e->t->splits.v[number];
  split_cutter c = {.e = e, .text = text, .next = number + 1, .behavior = step->behavior, .first = first};
  switch (step->kind) {
  case TN_STEP_BYTES: return split_bytes(&c, number, step, bytes);
  case TN_STEP_METASPACE: return split_metaspace(&c, number, step, bytes);
  case TN_STEP_BERT_WORDS: return split_bert(&c, bytes);
  case TN_STEP_SPACES: return split_by_class(&c, tn_unicode_is_space, bytes);
  case TN_STEP_DIGITS: return split_by_class(&c, tn_unicode_is_number, bytes);
  case TN_STEP_PUNCTUATION: return split_by_class(&c, tn_unicode_is_punctuation, bytes);
  default: return split_by_pattern(&c, step, bytes); /* TN_STEP_SPLIT, TN_STEP_DELIMITER */
  }
}
