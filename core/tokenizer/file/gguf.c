/* core/tokenizer/file/gguf.c: the tokenizer of a file of GGUF as JSON: its kinds "llama", a SentencePiece
 * model of BPE, and "gpt2", BPE over bytes. */
#include <stdlib.h>
#include <string.h>

#include "core/tokenizer/calls.h"
#include "core/tokenizer/tokenizer.h"

/* ---- values of the file ---- */

/* NULL: it is no UTF-8, or has a NUL. */
static json_t *gguf_text(const tn_gguf_element *element) {
  return json_stringn(element->text, element->bytes);
}

static json_t *gguf_texts(const tn_gguf *file, const char *key) {
  const tn_gguf_value *found = tn_gguf_find(file, key);
  json_t *list = json_array();
  if (found == NULL || !found->list || found->kind != TN_GGUF_TEXT) return list;
  tn_gguf_value value = *found;
  for (tn_gguf_element e; tn_gguf_next(&value, &e);) json_array_append_new(list, gguf_text(&e));
  return list;
}

/* A list of numbers beside the tokens; it may be absent. */
typedef struct gguf_numbers {
  tn_gguf_value value;
  double otherwise;
} gguf_numbers;

static gguf_numbers gguf_numbers_of(const tn_gguf *file, const char *key, double otherwise) {
  const tn_gguf_value *found = tn_gguf_find(file, key);
  bool fits = found != NULL && found->list && found->kind != TN_GGUF_TEXT;
  return (gguf_numbers){fits ? *found : (tn_gguf_value){.count = 0}, otherwise};
}

static double gguf_numbers_next(gguf_numbers *numbers) {
  tn_gguf_element e;
  return tn_gguf_next(&numbers->value, &e) ? e.number : numbers->otherwise;
}

/* A piece that is not used is never found in a text, as a control piece. */
static int gguf_piece_type(double given) {
  int type = given >= TN_PIECE_NORMAL && given <= TN_PIECE_BYTE ? (int)given : TN_PIECE_NORMAL;
  return type == TN_PIECE_UNUSED ? TN_PIECE_CONTROL : type;
}

/* ---- SentencePiece ---- */

static json_t *gguf_pieces(const tn_gguf *file, const json_t *tokens, bool *bytes) {
  json_t *pieces = json_array(), *token;
  gguf_numbers scores = gguf_numbers_of(file, "tokenizer.ggml.scores", 0);
  gguf_numbers types = gguf_numbers_of(file, "tokenizer.ggml.token_type", TN_PIECE_NORMAL);
  size_t i;
  json_array_foreach(tokens, i, token) {
    int type = gguf_piece_type(gguf_numbers_next(&types));
    json_array_append_new(pieces, json_pack("[O, f, i]", token, gguf_numbers_next(&scores), type));
    *bytes = *bytes || type == TN_PIECE_BYTE;
  }
  return pieces;
}

static json_t *gguf_sentencepiece(const tn_gguf *file, json_t *tokens) {
  bool bytes = false, prefix = tn_gguf_number(file, "tokenizer.ggml.add_space_prefix", 1) != 0;
  bool extra = tn_gguf_number(file, "tokenizer.ggml.remove_extra_whitespaces", 0) != 0;
  json_t *pieces = gguf_pieces(file, tokens, &bytes);
  return json_pack("{s:{s:s, s:b, s:b, s:b}, s:o, s:{s:s, s:s, s:o}}", "normalizer", "type", "SentencePiece",
                   "add_dummy_prefix", prefix, "remove_extra_whitespaces", extra, "escape_whitespaces", 1,
                   "decoder", tn_sentencepiece_decoder(prefix, extra, bytes), "model", "type",
                   "SentencePiece", "kind", "bpe", "pieces", pieces);
}

/* ---- BPE over bytes ---- */

/* How a text is split in front of BPE, by the name in the file. */
typedef struct gguf_split {
  const char *name;
  const char *pattern; /* NULL: that of GPT-2 */
  bool whole;          /* a word that is a token is not merged anew */
  bool digits;         /* digits are single */
} gguf_split;

#define WORDS_BEFORE_DIGITS "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
#define WORDS_BEHIND_DIGITS "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
static const gguf_split gguf_splits[] = {
    {"gpt-2", NULL, false, false},
    {"default", NULL, false, false},
    {"smollm", NULL, false, true},
    {"llama-bpe", WORDS_BEFORE_DIGITS "\\p{N}{1,3}" WORDS_BEHIND_DIGITS, true, false},
    {"qwen2", WORDS_BEFORE_DIGITS "\\p{N}" WORDS_BEHIND_DIGITS, false, false},
};

static json_t *gguf_split_json(const gguf_split *split) {
  json_t *steps = json_array();
  if (split->digits)
    json_array_append_new(steps, json_pack("{s:s, s:b}", "type", "Digits", "individual_digits", 1));
  if (split->pattern != NULL)
    json_array_append_new(steps, json_pack("{s:s, s:{s:s}, s:s, s:b}", "type", "Split", "pattern", "Regex",
                                           split->pattern, "behavior", "Isolated", "invert", 0));
  json_array_append_new(steps, json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0,
                                         "trim_offsets", 0, "use_regex", split->pattern == NULL));
  return json_pack("{s:s, s:o}", "type", "Sequence", "pretokenizers", steps);
}

/* Tokens of these types are found in a text before it is split. */
static json_t *gguf_added(const tn_gguf *file, const json_t *tokens) {
  json_t *added = json_array(), *token;
  gguf_numbers types = gguf_numbers_of(file, "tokenizer.ggml.token_type", TN_PIECE_NORMAL);
  size_t i;
  json_array_foreach(tokens, i, token) {
    int type = gguf_piece_type(gguf_numbers_next(&types));
    if (type == TN_PIECE_CONTROL || type == TN_PIECE_USER)
      json_array_append_new(added, json_pack("{s:i, s:O, s:b, s:b, s:b, s:b, s:b}", "id", (int)i, "content",
                                             token, "single_word", 0, "lstrip", 0, "rstrip", 0, "normalized",
                                             0, "special", type == TN_PIECE_CONTROL));
  }
  return added;
}

static json_t *gguf_bpe(const tn_gguf *file, const json_t *tokens, const gguf_split *split) {
  json_t *vocabulary = json_object(), *token;
  size_t i;
  json_array_foreach(tokens, i, token)
      json_object_set_new(vocabulary, json_string_value(token), json_integer((json_int_t)i));
  return json_pack("{s:o, s:o, s:{s:s}, s:{s:s, s:b, s:o, s:o}}", "added_tokens", gguf_added(file, tokens),
                   "pre_tokenizer", gguf_split_json(split), "decoder", "type", "ByteLevel", "model", "type",
                   "BPE", "ignore_merges", split->whole, "vocab", vocabulary, "merges",
                   gguf_texts(file, "tokenizer.ggml.merges"));
}

static tn_status gguf_find_split(const void *handle, tn_gguf *file, const gguf_split **split) {
  const char *name = tn_gguf_text(file, "tokenizer.ggml.pre", "default");
  for (size_t i = 0; i < sizeof gguf_splits / sizeof *gguf_splits; i++)
    if (strcmp(gguf_splits[i].name, name) == 0) {
      *split = &gguf_splits[i];
      return TN_OK;
    }
  return tn_failf(
      handle, TN_EUNSUPPORTED,
      "%s: its tokenizer splits texts as '%.40s', expected gpt-2, default, smollm, llama-bpe or qwen2; "
      "give the model's tokenizer.json",
      tn_gguf_path(file), name);
}

/* ---- both ---- */

static tn_status gguf_document(const void *handle, tn_gguf *file, const char *kind, json_t *tokens,
                               json_t **json) {
  const gguf_split *split = NULL;
  if (strcmp(kind, "llama") == 0) {
    *json = gguf_sentencepiece(file, tokens);
    return TN_OK;
  }
  if (strcmp(kind, "gpt2") != 0)
    return tn_failf(handle, TN_EUNSUPPORTED,
                    "%s: its tokenizer is of the kind '%.40s', expected llama or gpt2", tn_gguf_path(file),
                    kind);
  TN_TRY(gguf_find_split(handle, file, &split));
  *json = gguf_bpe(file, tokens, split);
  return TN_OK;
}

/* The ids around a generated text. Files of the kind "llama" begin texts with one unless they say otherwise.
 */
static json_t *gguf_generate(const tn_gguf *file, bool begins, size_t n) {
  double begin = tn_gguf_number(file, "tokenizer.ggml.bos_token_id", -1);
  double end = tn_gguf_number(file, "tokenizer.ggml.eos_token_id", -1);
  json_t *generate = json_object();
  begins = tn_gguf_number(file, "tokenizer.ggml.add_bos_token", begins) != 0;
  if (begins && begin >= 0 && begin < (double)n)
    json_object_set_new(generate, "begin", json_integer((json_int_t)begin));
  if (end >= 0 && end < (double)n) json_object_set_new(generate, "end", json_integer((json_int_t)end));
  return generate;
}

static tn_status gguf_print(const void *handle, tn_gguf *file, json_t *document, char **json) {
  char *printed = document != NULL ? json_dumps(document, JSON_COMPACT) : NULL;
  if (printed == NULL)
    return tn_failf(handle, TN_EINVAL, "%s: its tokens are no UTF-8, or have a NUL", tn_gguf_path(file));
  *json = tn_strdup(handle, printed);
  free(printed);
  return *json != NULL ? TN_OK : TN_ENOMEM;
}

tn_status tn_gguf_tokenizer_json(const void *handle, tn_gguf *file, char **json) {
  const char *kind = tn_gguf_text(file, "tokenizer.ggml.model", "");
  const tn_gguf_value *list = tn_gguf_find(file, "tokenizer.ggml.tokens");
  json_t *document = NULL;
  *json = NULL;
  if (kind[0] == '\0' || list == NULL) return TN_OK;
  json_t *tokens = gguf_texts(file, "tokenizer.ggml.tokens");
  size_t n = json_array_size(tokens);
  tn_status status = gguf_document(handle, file, kind, tokens, &document);
  if (document != NULL && n == list->count)
    json_object_set_new(document, "generate", gguf_generate(file, strcmp(kind, "llama") == 0, n));
  if (status == TN_OK) status = gguf_print(handle, file, n == list->count ? document : NULL, json);
  json_decref(document);
  json_decref(tokens);
  return status;
}
