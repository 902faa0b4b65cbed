/* core/tokenizer/tokenizer.h: what the files of this room share. A tokenizer is read from JSON and then never
 * changed, so that any number of threads use it at once; what a thread changes while it encodes is an
 * encoder.
 *
 * A text goes through: added tokens, normalizers, pre-tokenizers, the model, and the ids of the
 * template around it. Pre-tokenizers run depth first: a piece that one of them finds goes through those
 * behind it before the next piece is sought, so that no list of pieces is kept. The reference is Hugging
 * Face's tokenizers 0.23. */
#pragma once

#include <jansson.h>
#include <pthread.h>

#include "core/base/vec.h"
#include "core/tokenizer/text/map.h"
#include "core/tokenizer/text/pattern.h"
#include "core/tokenizer/text/unicode.h"
#include "tenon/tokenizer.h"

enum { TN_TOKENIZER_STEPS = 16 }; /* normalizers, pre-tokenizers or decoders at most */

/* ---- JSON ---- */

/* A part of the file, and where it is: "model.merges[3]". */
typedef struct tn_json_place {
  const tn_tokenizer *t;
  const json_t *node; /* NULL: absent */
  char path[120];
} tn_json_place;

tn_json_place tn_json_root(const tn_tokenizer *t, const json_t *node);
tn_json_place tn_json_member(const tn_json_place *place, const char *name);
tn_json_place tn_json_element(const tn_json_place *place, size_t index);
/* Absent or null. */
bool tn_json_absent(const tn_json_place *place);
/* Records "FILE: PATH: ..." and returns the code. */
tn_status tn_json_fail(const tn_json_place *place, tn_status code, const char *format, ...) TN_PRINTF(3, 4);
/* The member; `otherwise` where it is absent. TN_EINVAL: it is of another kind. */
tn_status tn_json_read_flag(const tn_json_place *place, const char *name, bool otherwise, bool *value);
tn_status tn_json_read_int(const tn_json_place *place, const char *name, int64_t least, int64_t most,
                           int64_t otherwise, int64_t *value);
/* A text; `otherwise` NULL: it has to be there. Valid as long as the document. */
tn_status tn_json_read_text(const tn_json_place *place, const char *name, const char *otherwise,
                            const char **value, size_t *bytes);
/* A text that is one character. */
tn_status tn_json_read_character(const tn_json_place *place, const char *name, const char *otherwise,
                                 const char **value, size_t *bytes);
/* The number of a word among `words`; the text has to be there unless `otherwise` is 0 or more. */
tn_status tn_json_read_word(const tn_json_place *place, const char *name, const char *const *words,
                            int32_t n_words, int32_t otherwise, int32_t *number);
/* Reads each step of a sequence, the list `name`. A step may be a sequence itself, to a depth of 5. */
typedef tn_status tn_json_reader(tn_tokenizer *t, const tn_json_place *place, int32_t depth);
tn_status tn_json_read_sequence(tn_tokenizer *t, const tn_json_place *place, const char *name,
                                tn_json_reader *read, int32_t depth);
/* Copies a text into the tokenizer's arena. */
const char *tn_json_keep(tn_tokenizer *t, const char *text, size_t bytes);

/* ---- steps ---- */

enum {
  TN_STEP_NORMALIZE,
  TN_STEP_LOWER,
  TN_STEP_STRIP_ACCENTS,
  TN_STEP_STRIP,
  TN_STEP_BERT,
  TN_STEP_REPLACE,
  TN_STEP_PREPEND,
  TN_STEP_BYTES,
  TN_STEP_SPLIT,
  TN_STEP_SPACES,
  TN_STEP_BERT_WORDS,
  TN_STEP_DIGITS,
  TN_STEP_PUNCTUATION,
  TN_STEP_METASPACE,
  TN_STEP_DELIMITER,
  TN_STEP_CHARSMAP,
  TN_STEP_SENTENCEPIECE
};

enum { TN_SPLIT_REMOVED, TN_SPLIT_ISOLATED, TN_SPLIT_WITH_PREVIOUS, TN_SPLIT_WITH_NEXT, TN_SPLIT_CONTIGUOUS };
enum { TN_PREPEND_ALWAYS, TN_PREPEND_FIRST, TN_PREPEND_NEVER };

/* A normalizer or a pre-tokenizer. */
typedef struct tn_step {
  int32_t kind;
  int32_t form;                        /* NORMALIZE */
  int32_t behavior;                    /* SPLIT, PUNCTUATION, DIGITS */
  int32_t prepend;                     /* METASPACE */
  bool invert;                         /* SPLIT */
  bool split;                          /* METASPACE: split at all; BYTES: by GPT-2's pattern */
  bool prefix;                         /* BYTES: a space in front of every piece that has none;
                                          SENTENCEPIECE: one in front of the text */
  bool escape;                         /* SENTENCEPIECE: blanks become U+2581 */
  bool left, right;                    /* STRIP */
  bool clean, chinese, accents, lower; /* BERT; SENTENCEPIECE: clean, of superfluous blanks */
  tn_pattern *pattern;                 /* SPLIT, REPLACE, BYTES; NULL: `text` as it is */
  const char *text; /* SPLIT, REPLACE: the text sought; METASPACE, DELIMITER: the character */
  size_t text_bytes;
  const char *content; /* REPLACE, PREPEND: the text put there */
  size_t content_bytes;
  const uint32_t *units; /* CHARSMAP: the double array; the texts are `content` */
  uint32_t n_units;
} tn_step;

typedef struct tn_steps {
  tn_step v[TN_TOKENIZER_STEPS];
  int32_t n;
} tn_steps;

/* The next step, or NULL with a message. */
tn_step *tn_steps_add(tn_steps *steps, const tn_json_place *place);
/* Reads {"String": ...} or {"Regex": ...} into the step's text or pattern. */
tn_status tn_step_read_pattern(tn_tokenizer *t, const tn_json_place *place, tn_step *step);
/* SentencePiece's table of normal forms (steps/charsmap.c). */
tn_status tn_charsmap_read(tn_tokenizer *t, const tn_json_place *place, tn_step *step);
/* The text of the longest prefix that has one, and its bytes; NULL: none has. */
const char *tn_charsmap_longest(const tn_step *step, const char *text, size_t bytes, size_t *taken);
void tn_charsmap_run(const tn_step *step, const char *text, size_t bytes, tn_text *to);
/* GPT-2's splitting pattern. */
tn_status tn_step_gpt2_pattern(tn_tokenizer *t, const tn_json_place *place, tn_step *step);

/* ---- SentencePiece ---- */

enum {
  TN_PIECE_NORMAL = 1,
  TN_PIECE_UNKNOWN,
  TN_PIECE_CONTROL,
  TN_PIECE_USER,
  TN_PIECE_UNUSED,
  TN_PIECE_BYTE
};

/* Whether a file is a .model: it begins with the tag of its first piece, and no JSON does. */
bool tn_sentencepiece_is(const char *bytes, size_t n);
/* The JSON of its tokenizer; the caller releases it. */
tn_status tn_sentencepiece_json(const void *handle, const char *name, const char *bytes, size_t n,
                                char **json);
/* Its decoder. `prefix`: the normalizer puts a blank in front of a text; `extra`: it removes superfluous
 * ones; `byte_pieces`: the model has pieces for single bytes. */
json_t *tn_sentencepiece_decoder(bool prefix, bool extra, bool byte_pieces);
tn_status tn_sentencepiece_read(tn_tokenizer *t, const tn_json_place *root, const tn_json_place *model);
tn_status tn_sentencepiece_normalizer(tn_tokenizer *t, const tn_json_place *place, tn_step *step);
void tn_sentencepiece_normalize(const tn_tokenizer *t, const tn_step *step, const char *text, size_t bytes,
                                tn_text *to);
/* The bytes of the longest symbol of the user that the text begins with; 0: none. */
size_t tn_sentencepiece_user(const tn_tokenizer *t, const char *text, size_t bytes);

/* ---- parts of a tokenizer ---- */

typedef struct tn_added_token {
  const char *text; /* as it is sought: normalized where the token says so */
  size_t bytes;
  int32_t id;
  bool special, normalized, lstrip, rstrip, single_word;
} tn_added_token;

/* Tokens that are found in a text before, or behind, the normalizers: a trie over their bytes. */
typedef struct tn_added_set {
  int32_t n, nodes;
  tn_pair_map edges; /* (node, byte) -> node, token + 1 that ends there or 0 */
  bool starts[256];  /* bytes that a token begins with */
} tn_added_set;

enum { TN_MODEL_BPE, TN_MODEL_WORDPIECE, TN_MODEL_WORDS, TN_MODEL_UNIGRAM, TN_MODEL_BYTES, TN_MODEL_PIECES };

typedef struct tn_model {
  int32_t kind;
  int32_t unknown;      /* id; -1: none */
  bool unknown_missing; /* it is named, but not in the vocabulary */
  bool fuse_unknown, byte_fallback, ignore_merges;
  bool characters;     /* Pieces: each is one character */
  bool cut_at_space;   /* BPE: no token has U+2581 behind another character (models/bpe.c) */
  bool sentencepiece;  /* BPE, Unigram: of a .model file (models/sentencepiece_model.c) */
  tn_text_map user;    /* of it: symbols that are whole wherever they stand */
  const char *surface; /* of it: as what unknown text is decoded */
  size_t surface_bytes;
  const char *prefix, *suffix; /* BPE, WordPiece: of a symbol inside or at the end of a word */
  size_t prefix_bytes, suffix_bytes;
  int64_t most_characters; /* WordPiece: of a word */
  tn_pair_map merges;      /* (left id, right id) -> rank, id */
  tn_text_map words;       /* the tokens that are found in a text; BPE over bytes: as bytes */
  int32_t byte_ids[256];   /* BPE over bytes: the symbol of a byte; byte_fallback: <0x00>; -1 */
  const double *scores;    /* Unigram: by id */
  double unknown_score;
} tn_model;

enum { TN_DECODE_REPLACE, TN_DECODE_STRIP, TN_DECODE_METASPACE, TN_DECODE_WORDPIECE, TN_DECODE_BPE };
typedef struct tn_decode_step {
  int32_t kind;
  tn_step replace;  /* REPLACE */
  const char *text; /* STRIP, METASPACE: a character; WORDPIECE: the prefix; BPE: the suffix */
  size_t bytes;
  int64_t start, stop; /* STRIP: characters at most */
  int32_t prepend;     /* METASPACE */
  bool cleanup;        /* WORDPIECE */
} tn_decode_step;

typedef struct tn_decoder_parts {
  tn_decode_step v[TN_TOKENIZER_STEPS];
  int32_t n;
  bool spaces;        /* no decoder: spaces between tokens */
  bool byte_level;    /* tokens are written in GPT-2's alphabet of bytes */
  bool byte_fallback; /* <0x41> is a byte */
  bool fused;         /* reading: later decoders are applied to the joined text */
  bool strip;         /* at the start of the joined text */
  const char *strip_text;
  size_t strip_bytes;
  int64_t strip_most;
} tn_decoder_parts;

typedef struct tn_piece {
  const char *text; /* NULL: no token has this id */
  uint32_t bytes;
  bool special;
} tn_piece;

struct tn_tokenizer {
  tn_env env; /* of its own: memory, and messages of open */
  tn_error_record record;
  tn_arena arena;
  const char *name; /* of the file, for messages */
  char *json;       /* the parts of the file that are read; tn_release */
  tn_piece *pieces;
  int32_t n;            /* largest id + 1 */
  tn_text_map by_text;  /* of the model's vocabulary */
  tn_text_map by_added; /* of the added tokens */
  tn_added_token *added;
  int32_t n_added;
  tn_added_set before, behind; /* the normalizers */
  tn_steps normalizers, splits;
  bool byte_level; /* the last pre-tokenizer is ByteLevel: the model sees bytes */
  bool patterns;   /* some step has one */
  tn_model model;
  tn_decoder_parts decoder;
  int32_t *before_ids, *behind_ids; /* of the template */
  int32_t n_before, n_behind;
  pthread_mutex_t lock;
  struct tn_encoder *idle; /* encoders that no call uses */
};

/* ---- encoding ---- */

enum { TN_CACHED_BYTES = 57, TN_CACHED_IDS = 16, TN_CACHE_SLOTS = 1 << 14 };
typedef struct tn_cached_word {
  uint32_t hash;
  uint8_t bytes, n, used;
  char text[TN_CACHED_BYTES];
  int32_t ids[TN_CACHED_IDS];
} tn_cached_word;

typedef struct tn_symbol {
  int32_t id, before, behind; /* neighbours; -1: none */
} tn_symbol;
typedef TN_VEC(int32_t) tn_id_list;

typedef struct tn_encoder {
  tn_env env;
  tn_error_record record;
  const tn_tokenizer *t;
  struct tn_encoder *next;
  tn_matcher *matcher;
  tn_text normalized[2];               /* the text in front of a normalizer and behind it */
  tn_text written[TN_TOKENIZER_STEPS]; /* pieces that a pre-tokenizer has changed */
  tn_text word;                        /* WordPiece */
  tn_unicode_codes codes;
  tn_cached_word *cache;
  TN_VEC(tn_symbol) symbols;
  TN_VEC(uint64_t) heap;
  tn_id_list ids;
} tn_encoder;

/* Bytes of a byte-level character, and back (text/bytes.c). */
size_t tn_byte_character(unsigned char byte, char *to);
int32_t tn_character_byte(int32_t code); /* -1: it is no character of GPT-2's alphabet */

/* Readers of the parts of tokenizer.json, in this order: each may use what those before it have read. */
/* models/vocabulary.c: room for ids below n, of which `tokens` have texts; a token; the largest id of an
 * object of tokens and of the added tokens, and 1; room for the ids of a list and of the added tokens;
 * whether U+2581 stands behind another character. */
enum { TN_MODEL_MOST_IDS = 1 << 22, TN_MODEL_MOST_TOKEN = 1 << 16 };
tn_status tn_model_reserve(tn_tokenizer *t, int64_t n, size_t tokens);
tn_status tn_model_set(tn_tokenizer *t, const tn_json_place *place, int64_t id, const char *text,
                       size_t bytes);
tn_status tn_model_count(const tn_json_place *root, const tn_json_place *vocabulary, int64_t *n);
tn_status tn_model_reserve_list(tn_tokenizer *t, const tn_json_place *root, const tn_json_place *list);
bool tn_model_has_inner_space(const char *text, size_t bytes);
tn_status tn_model_read(tn_tokenizer *t, const tn_json_place *root);
tn_status tn_normalizers_read(tn_tokenizer *t, const tn_json_place *place);
tn_status tn_splits_read(tn_tokenizer *t, const tn_json_place *place);
tn_status tn_model_finish(tn_tokenizer *t, const tn_json_place *place);
tn_status tn_added_read(tn_tokenizer *t, const tn_json_place *place);
tn_status tn_added_finish(tn_tokenizer *t, tn_encoder *e);
tn_status tn_template_read(tn_tokenizer *t, const tn_json_place *place);
tn_status tn_decoder_read(tn_tokenizer *t, const tn_json_place *place);

tn_status tn_encoder_open(const void *handle, const tn_tokenizer *t, tn_encoder **e);
void tn_encoder_close(tn_encoder *e);
/* Appends the ids of a text that is valid UTF-8. */
tn_status tn_encoder_run(tn_encoder *e, const char *text, size_t bytes);
/* The text behind the normalizers; valid until the next call. */
tn_status tn_encoder_normalize(tn_encoder *e, const char **text, size_t *bytes);
/* A piece of normalized text through the pre-tokenizers from number `step` on, and the model. `first`: it
 * begins the text. */
tn_status tn_encoder_split(tn_encoder *e, int32_t step, const char *text, size_t bytes, bool first);
/* Appends the ids of a word. */
tn_status tn_encoder_word(tn_encoder *e, const char *text, size_t bytes);
tn_status tn_bpe_word(tn_encoder *e, const char *text, size_t bytes);
tn_status tn_wordpiece_word(tn_encoder *e, const char *text, size_t bytes);
tn_status tn_unigram_word(tn_encoder *e, const char *text, size_t bytes);
tn_status tn_pieces_word(tn_encoder *e, const char *text, size_t bytes);

/* The added token that begins at text[*start] or behind it: the first, and of those the longest. NULL: none.
 */
const tn_added_token *tn_added_find(const tn_tokenizer *t, const tn_added_set *set, const char *text,
                                    size_t bytes, size_t *start);
