/* core/tokenizer/models/model.c: the models of tokenizer.json: their vocabularies, merges and scores. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/tokenizer/tokenizer.h"

/* {"token": id, ...} */
static tn_status model_read_vocabulary(tn_tokenizer *t, const tn_json_place *root,
                                       const tn_json_place *model) {
  tn_json_place vocabulary = tn_json_member(model, "vocab");
  if (!json_is_object(vocabulary.node))
    return tn_json_fail(&vocabulary, TN_EINVAL, "is no object of tokens and ids");
  int64_t n;
  TN_TRY(tn_model_count(root, &vocabulary, &n));
  TN_TRY(tn_model_reserve(t, n, json_object_size(vocabulary.node)));
  const char *token;
  json_t *value;
  json_object_foreach((json_t *)(uintptr_t)vocabulary.node, token, value)
      TN_TRY(tn_model_set(t, &vocabulary, json_integer_value(value), token, strlen(token)));
  return TN_OK;
}

static tn_status model_read_unknown(tn_tokenizer *t, const tn_json_place *model) {
  tn_json_place member = tn_json_member(model, "unk_token");
  if (tn_json_absent(&member)) return TN_OK;
  const char *text;
  size_t bytes;
  TN_TRY(tn_json_read_text(model, "unk_token", NULL, &text, &bytes));
  t->model.unknown = tn_text_map_get(&t->by_text, text, bytes);
  t->model.unknown_missing = t->model.unknown < 0;
  return TN_OK;
}

static tn_status model_read_part(tn_tokenizer *t, const tn_json_place *model, const char *name,
                                 const char *otherwise, const char **kept, size_t *bytes) {
  const char *text;
  TN_TRY(tn_json_read_text(model, name, otherwise, &text, bytes));
  if (*bytes > TN_MODEL_MOST_TOKEN) return tn_json_fail(model, TN_EINVAL, "%s has %zu bytes", name, *bytes);
  *kept = tn_json_keep(t, text, *bytes);
  return *kept != NULL ? TN_OK : TN_ENOMEM;
}

/* ---- byte-pair encoding ---- */

/* A merge is "left right" or ["left", "right"]. */
static tn_status model_read_merge(const tn_json_place *merge, const char *parts[2], size_t bytes[2]) {
  if (json_is_string(merge->node)) {
    const char *text = json_string_value(merge->node);
    size_t n = json_string_length(merge->node);
    const char *space = memchr(text, ' ', n);
    if (space != NULL && memchr(space + 1, ' ', n - (size_t)(space + 1 - text)) == NULL) {
      parts[0] = text;
      bytes[0] = (size_t)(space - text);
      parts[1] = space + 1;
      bytes[1] = n - bytes[0] - 1;
      return TN_OK;
    }
  } else if (json_array_size(merge->node) == 2) {
    for (size_t i = 0; i < 2; i++) {
      const json_t *part = json_array_get(merge->node, i);
      parts[i] = json_string_value(part);
      bytes[i] = json_string_length(part);
    }
    if (parts[0] != NULL && parts[1] != NULL) return TN_OK;
  }
  return tn_json_fail(merge, TN_EINVAL, "is no merge, expected two tokens");
}

/* Adds one merge; the joined token leaves out the prefix of its right part. */
static tn_status model_add_merge(tn_tokenizer *t, const tn_json_place *merge, uint32_t rank,
                                 tn_text *joined) {
  const char *parts[2];
  size_t bytes[2];
  int32_t ids[3];
  TN_TRY(model_read_merge(merge, parts, bytes));
  size_t skip = t->model.prefix_bytes <= bytes[1] ? t->model.prefix_bytes : bytes[1];
  joined->n = 0;
  tn_text_addn(joined, parts[0], bytes[0]);
  tn_text_addn(joined, parts[1] + skip, bytes[1] - skip);
  if (joined->failed) return TN_ENOMEM;
  for (int32_t i = 0; i < 3; i++) {
    const char *text = i < 2 ? parts[i] : joined->v;
    ids[i] = tn_text_map_get(&t->by_text, text, i < 2 ? bytes[i] : joined->n);
    if (ids[i] < 0) return tn_json_fail(merge, TN_EINVAL, "\"%.60s\" is not in the vocabulary", text);
  }
  tn_pair_slot *slot = tn_pair_map_find(&t->model.merges, (uint32_t)ids[0], (uint32_t)ids[1]);
  *slot = (tn_pair_slot){tn_pair_key((uint32_t)ids[0], (uint32_t)ids[1]), rank, (uint32_t)ids[2]};
  return TN_OK;
}

static tn_status model_read_merges(tn_tokenizer *t, const tn_json_place *model) {
  tn_json_place merges = tn_json_member(model, "merges");
  size_t n = json_array_size(merges.node);
  if (!json_is_array(merges.node) || n > TN_MODEL_MOST_IDS)
    return tn_json_fail(&merges, TN_EINVAL, "is no list of at most %d merges", (int)TN_MODEL_MOST_IDS);
  TN_TRY(tn_pair_map_open(&t->arena, n, &t->model.merges));
  tn_text joined = tn_text_new(&t->env);
  tn_status status = TN_OK;
  t->model.cut_at_space = true;
  for (size_t i = 0; status == TN_OK && i < n; i++) {
    tn_json_place merge = {.t = t, .node = json_array_get(merges.node, i)};
    snprintf(merge.path, sizeof merge.path, "model.merges[%zu]", i);
    status = model_add_merge(t, &merge, (uint32_t)i, &joined);
    if (status == TN_OK && tn_model_has_inner_space(joined.v, joined.n)) t->model.cut_at_space = false;
  }
  tn_text_free(&joined);
  return status;
}

static tn_status model_read_bpe(tn_tokenizer *t, const tn_json_place *root, const tn_json_place *model) {
  tn_model *m = &t->model;
  tn_json_place dropout = tn_json_member(model, "dropout");
  if (json_number_value(dropout.node) > 0)
    return tn_json_fail(&dropout, TN_EUNSUPPORTED, "random merges are not supported");
  TN_TRY(model_read_vocabulary(t, root, model));
  TN_TRY(model_read_unknown(t, model));
  TN_TRY(model_read_part(t, model, "continuing_subword_prefix", "", &m->prefix, &m->prefix_bytes));
  TN_TRY(model_read_part(t, model, "end_of_word_suffix", "", &m->suffix, &m->suffix_bytes));
  TN_TRY(tn_json_read_flag(model, "fuse_unk", false, &m->fuse_unknown));
  TN_TRY(tn_json_read_flag(model, "byte_fallback", false, &m->byte_fallback));
  TN_TRY(tn_json_read_flag(model, "ignore_merges", false, &m->ignore_merges));
  return model_read_merges(t, model);
}

/* ---- the others ---- */

static tn_status model_read_wordpiece(tn_tokenizer *t, const tn_json_place *root,
                                      const tn_json_place *model) {
  tn_model *m = &t->model;
  TN_TRY(model_read_vocabulary(t, root, model));
  TN_TRY(model_read_unknown(t, model));
  TN_TRY(model_read_part(t, model, "continuing_subword_prefix", "##", &m->prefix, &m->prefix_bytes));
  return tn_json_read_int(model, "max_input_chars_per_word", 0, TN_MODEL_MOST_TOKEN, 100,
                          &m->most_characters);
}

static tn_status model_read_words(tn_tokenizer *t, const tn_json_place *root, const tn_json_place *model) {
  TN_TRY(model_read_vocabulary(t, root, model));
  return model_read_unknown(t, model);
}

/* [["token", score], ...] */
static tn_status model_read_scores(tn_tokenizer *t, const tn_json_place *vocabulary, double *scores) {
  double least = INFINITY;
  for (size_t i = 0; i < json_array_size(vocabulary->node); i++) {
    const json_t *entry = json_array_get(vocabulary->node, i);
    const json_t *text = json_array_get(entry, 0), *score = json_array_get(entry, 1);
    tn_json_place place = {.t = t, .node = entry};
    snprintf(place.path, sizeof place.path, "model.vocab[%zu]", i);
    if (!json_is_string(text) || !json_is_number(score))
      return tn_json_fail(&place, TN_EINVAL, "is no token with a score");
    TN_TRY(tn_model_set(t, &place, (int64_t)i, json_string_value(text), json_string_length(text)));
    scores[i] = json_number_value(score);
    if (scores[i] < least) least = scores[i];
  }
  t->model.scores = scores;
  t->model.unknown_score = least - 10;
  return TN_OK;
}

static tn_status model_read_unigram(tn_tokenizer *t, const tn_json_place *root, const tn_json_place *model) {
  tn_json_place vocabulary = tn_json_member(model, "vocab");
  int64_t unknown, most = (int64_t)json_array_size(vocabulary.node) - 1;
  TN_TRY(tn_model_reserve_list(t, root, &vocabulary));
  TN_TRY(tn_json_read_int(model, "unk_id", 0, most, -1, &unknown));
  t->model.unknown = (int32_t)unknown;
  TN_TRY(tn_json_read_flag(model, "byte_fallback", false, &t->model.byte_fallback));
  double *scores = tn_arena_alloc(&t->arena, tn_size_mul((size_t)t->n + 1, sizeof *scores));
  return scores != NULL ? model_read_scores(t, &vocabulary, scores) : TN_ENOMEM;
}

/* The 256 bytes. */
static tn_status model_read_bytes(tn_tokenizer *t, const tn_json_place *root, const tn_json_place *model) {
  (void)root;
  TN_TRY(tn_model_reserve(t, 256, 256));
  for (int32_t i = 0; i < 256; i++) TN_TRY(tn_model_set(t, model, i, &(char){(char)i}, 1));
  return TN_OK;
}

/* A number is the code point of a character. */
static tn_status model_read_piece(tn_tokenizer *t, const tn_json_place *pieces, size_t i) {
  const json_t *piece = json_array_get(pieces->node, i);
  if (json_is_string(piece))
    return tn_model_set(t, pieces, (int64_t)i, json_string_value(piece), json_string_length(piece));
  int64_t code = json_integer_value(piece);
  if (!json_is_integer(piece) || code < 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
    return tn_json_fail(pieces, TN_EINVAL, "element %zu is no text", i);
  char character[4];
  return tn_model_set(t, pieces, (int64_t)i, character, tn_unicode_write((int32_t)code, character));
}

/* ["a", "b", ...]: a text becomes, at each place, the longest of them that fits. */
static tn_status model_read_pieces(tn_tokenizer *t, const tn_json_place *root, const tn_json_place *model) {
  tn_json_place pieces = tn_json_member(model, "pieces");
  TN_TRY(tn_model_reserve_list(t, root, &pieces));
  t->model.characters = true;
  for (size_t i = 0; i < json_array_size(pieces.node); i++) {
    TN_TRY(model_read_piece(t, &pieces, i));
    const tn_piece *piece = &t->pieces[i];
    if (piece->bytes == 0 || tn_text_character_bytes(piece->text, piece->bytes) != piece->bytes)
      t->model.characters = false;
  }
  return TN_OK;
}

tn_status tn_model_read(tn_tokenizer *t, const tn_json_place *root) {
  static const char *const names[] = {"BPE",   "WordPiece", "WordLevel",    "Unigram",
                                      "Bytes", "Pieces",    "SentencePiece"};
  static tn_status (*const readers[])(tn_tokenizer *, const tn_json_place *, const tn_json_place *) = {
      model_read_bpe,   model_read_wordpiece, model_read_words,     model_read_unigram,
      model_read_bytes, model_read_pieces,    tn_sentencepiece_read};
  tn_json_place model = tn_json_member(root, "model");
  if (!json_is_object(model.node))
    return tn_json_fail(&model, TN_EINVAL, "is no model: the file is no tokenizer.json");
  /* Files of before 2020 name no type. */
  bool named = json_object_get(model.node, "type") != NULL || json_object_get(model.node, "merges") == NULL;
  int32_t number;
  t->model.unknown = -1;
  TN_TRY(tn_json_read_word(&model, "type", names, 7, named ? -1 : 0, &number));
  t->model.kind = number;
  return readers[number](t, root, &model);
}

/* ---- symbols of bytes ---- */

static int32_t model_byte_token(const tn_tokenizer *t, int32_t byte) {
  char text[8];
  size_t n = (size_t)snprintf(text, sizeof text, "<0x%02X>", (unsigned)byte);
  return tn_text_map_get(&t->by_text, text, n);
}

static int32_t model_byte_symbol(const tn_tokenizer *t, int32_t byte) {
  char text[4];
  return tn_text_map_get(&t->by_text, text, tn_byte_character((unsigned char)byte, text));
}

/* The bytes that a token of GPT-2's alphabet stands for; 0: it is written otherwise. */
static size_t model_token_bytes(const tn_piece *piece, char *to) {
  size_t n = 0;
  for (size_t at = 0; at < piece->bytes;) {
    int32_t byte = tn_character_byte(tn_unicode_next(piece->text, &at));
    if (byte < 0) return 0;
    to[n++] = (char)byte;
  }
  return n;
}

/* With ignore_merges a word that is a token is that token, so its bytes are looked up. */
static tn_status model_map_words(tn_tokenizer *t) {
  TN_TRY(tn_text_map_open(&t->arena, (size_t)t->by_text.mask / 2 + 1, &t->model.words));
  for (int32_t id = 0; id < t->n; id++) {
    const tn_piece *piece = &t->pieces[id];
    if (piece->text == NULL) continue;
    char *bytes = tn_arena_alloc(&t->arena, piece->bytes + 1);
    if (bytes == NULL) return TN_ENOMEM;
    size_t n = model_token_bytes(piece, bytes);
    if (n > 0) tn_text_map_set(&t->model.words, bytes, n, id);
  }
  return TN_OK;
}

tn_status tn_model_finish(tn_tokenizer *t, const tn_json_place *place) {
  tn_model *m = &t->model;
  for (int32_t i = 0; i < 256; i++)
    m->byte_ids[i] = m->kind == TN_MODEL_PIECES ? tn_text_map_get(&t->by_text, &(char){(char)i}, 1)
                     : t->byte_level            ? model_byte_symbol(t, i)
                     : m->byte_fallback         ? model_byte_token(t, i)
                                                : -1;
  if (!m->sentencepiece) m->words = t->by_text;
  m->cut_at_space = m->cut_at_space && !m->ignore_merges && !t->byte_level && m->prefix_bytes == 0 &&
                    m->suffix_bytes == 0 && tn_text_map_get(&t->by_text, "\xe2\x96\x81", 3) >= 0;
  if (!t->byte_level) return TN_OK;
  if (m->kind != TN_MODEL_BPE || m->prefix_bytes > 0)
    return tn_json_fail(place, TN_EUNSUPPORTED,
                        "ByteLevel is supported with the model BPE without continuing_subword_prefix");
  return m->ignore_merges ? model_map_words(t) : TN_OK;
}
