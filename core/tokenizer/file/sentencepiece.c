/* core/tokenizer/file/sentencepiece.c: a .model file of SentencePiece as the JSON of a tokenizer, whose model
 * and normalizer have the type "SentencePiece". The file is a message of Protocol Buffers
 * (sentencepiece_model.proto); fields that are not named here are those of the trainer. */
#include <stdlib.h>
#include <string.h>

#include "core/formats/protobuf.h"
#include "core/tokenizer/calls.h"
#include "core/tokenizer/tokenizer.h"

/* ---- the messages ---- */

/* NULL: the bytes are not UTF-8. */
static json_t *sentencepiece_text(const tn_proto *bytes) {
  return json_stringn((const char *)bytes->at, tn_proto_left(bytes));
}

enum { KIND_UNIGRAM = 1, KIND_BPE = 2, KIND_WORD = 3, KIND_CHAR = 4 };

typedef struct sentencepiece_file {
  json_t *pieces, *surface; /* surface: how an unknown piece is decoded */
  uint64_t kind;
  bool suffix, byte_pieces;                 /* suffix: white space is at the end of words */
  bool prefix, extra, escape, denormalized; /* of the normalizer; extra: superfluous blanks are removed */
  tn_proto charsmap;
} sentencepiece_file;

/* [text, score, type] */
static bool sentencepiece_read_piece(tn_proto message, sentencepiece_file *file) {
  tn_proto_field f;
  json_t *text = NULL;
  float score = 0;
  uint64_t type = TN_PIECE_NORMAL;
  while (tn_proto_next(&message, &f)) {
    if (f.number == 1 && f.form == TN_PROTO_BYTES) json_decref(text), text = sentencepiece_text(&f.bytes);
    if (f.number == 2 && f.form == TN_PROTO_32) score = tn_proto_float(f.value);
    if (f.number == 3 && f.form == TN_PROTO_VARINT) type = f.value;
  }
  file->byte_pieces |= type == TN_PIECE_BYTE;
  bool sound = text != NULL && score - score == 0 && type <= TN_PIECE_BYTE && !message.bad;
  json_t *piece = sound ? json_pack("[O, f, i]", text, (double)score, (int)type) : NULL;
  json_decref(text);
  return piece != NULL && json_array_append_new(file->pieces, piece) == 0;
}

static bool sentencepiece_read_trainer(tn_proto message, sentencepiece_file *file) {
  tn_proto_field f;
  while (tn_proto_next(&message, &f)) {
    if (f.number == 3 && f.form == TN_PROTO_VARINT) file->kind = f.value;
    if (f.number == 24 && f.form == TN_PROTO_VARINT) file->suffix = f.value != 0;
    if (f.number == 44 && f.form == TN_PROTO_BYTES)
      json_decref(file->surface), file->surface = sentencepiece_text(&f.bytes);
  }
  return !message.bad && file->surface != NULL;
}

static bool sentencepiece_read_normalizer(tn_proto message, sentencepiece_file *file) {
  tn_proto_field f;
  while (tn_proto_next(&message, &f)) {
    if (f.number == 2 && f.form == TN_PROTO_BYTES) file->charsmap = f.bytes;
    if (f.number == 3 && f.form == TN_PROTO_VARINT) file->prefix = f.value != 0;
    if (f.number == 4 && f.form == TN_PROTO_VARINT) file->extra = f.value != 0;
    if (f.number == 5 && f.form == TN_PROTO_VARINT) file->escape = f.value != 0;
  }
  return !message.bad;
}

static bool sentencepiece_read_file(tn_proto message, sentencepiece_file *file) {
  tn_proto_field f;
  bool sound = true;
  while (sound && tn_proto_next(&message, &f)) {
    sentencepiece_file other = {.kind = 0};
    if (f.form != TN_PROTO_BYTES) continue;
    if (f.number == 1) sound = sentencepiece_read_piece(f.bytes, file);
    if (f.number == 2) sound = sentencepiece_read_trainer(f.bytes, file);
    if (f.number == 3) sound = sentencepiece_read_normalizer(f.bytes, file);
    if (f.number == 5) sound = sentencepiece_read_normalizer(f.bytes, &other);
    file->denormalized |= other.charsmap.at != other.charsmap.end;
  }
  return sound && !message.bad;
}

/* ---- as JSON ---- */

static json_t *sentencepiece_base64(const void *handle, const tn_proto *bytes) {
  static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  size_t n = tn_proto_left(bytes);
  char *text = tn_alloc(handle, tn_size_mul(n / 3 + 1, 4) + 1);
  if (text == NULL) return NULL;
  size_t to = 0;
  uint32_t held = 0;
  int32_t bits = 0;
  for (size_t i = 0; i < n; i++) {
    held = held << 8 | bytes->at[i];
    for (bits += 8; bits >= 6; bits -= 6) text[to++] = alphabet[held >> (bits - 6) & 63];
  }
  if (bits > 0) text[to++] = alphabet[held << (6 - bits) & 63];
  json_t *json = json_stringn(text, to);
  tn_release(handle, text);
  return json;
}

/* U+2581 becomes a blank; of those in front one goes, or all, as the normalizer has put one there or has
 * removed them. */
json_t *tn_sentencepiece_decoder(bool prefix, bool extra, bool byte_pieces) {
  json_t *list = json_pack("[{s:s, s:{s:s}, s:s}]", "type", "Replace", "pattern", "String", "\xe2\x96\x81",
                           "content", " ");
  if (byte_pieces) json_array_append_new(list, json_pack("{s:s}", "type", "ByteFallback"));
  json_array_append_new(list, json_pack("{s:s}", "type", "Fuse"));
  if (prefix || extra)
    json_array_append_new(list, json_pack("{s:s, s:s, s:i, s:i}", "type", "Strip", "content", " ", "start",
                                          extra ? 1 << 20 : 1, "stop", 0));
  return json_pack("{s:s, s:o}", "type", "Sequence", "decoders", list);
}

static json_t *sentencepiece_document(const void *handle, const sentencepiece_file *file) {
  static const char *const kinds[] = {"", "unigram", "bpe", "word", "char"};
  return json_pack(
      "{s:{s:s, s:o, s:b, s:b, s:b}, s:o, s:{s:s, s:s, s:O, s:O}}", "normalizer", "type", "SentencePiece",
      "precompiled_charsmap", sentencepiece_base64(handle, &file->charsmap), "add_dummy_prefix", file->prefix,
      "remove_extra_whitespaces", file->extra, "escape_whitespaces", file->escape, "decoder",
      tn_sentencepiece_decoder(file->prefix, file->extra, file->byte_pieces), "model", "type",
      "SentencePiece", "kind", kinds[file->kind], "unk_surface", file->surface, "pieces", file->pieces);
}

static tn_status sentencepiece_check(const void *handle, const char *name, const sentencepiece_file *file) {
  const char *lacking = file->kind == KIND_WORD ? "a model of whole words"
                        : file->suffix          ? "white space at the end of words"
                        : file->denormalized    ? "a normalizer of decoded texts"
                        : file->kind < KIND_UNIGRAM || file->kind > KIND_CHAR ? "a model of another kind"
                                                                              : NULL;
  if (lacking == NULL) return TN_OK;
  return tn_failf(handle, TN_EUNSUPPORTED, "%s: this SentencePiece model has %s, which is not supported",
                  name, lacking);
}

bool tn_sentencepiece_is(const char *bytes, size_t n) {
  size_t blank = 0;
  while (blank < n && memchr(" \t\r\n", bytes[blank], 4) != NULL) blank++;
  return n > 0 && bytes[0] == '\n' && (blank == n || bytes[blank] != '{');
}

tn_status tn_sentencepiece_json(const void *handle, const char *name, const char *bytes, size_t n,
                                char **json) {
  sentencepiece_file file = {.pieces = json_array(),
                             .surface = json_string(" \xe2\x81\x87 "),
                             .kind = KIND_UNIGRAM,
                             .prefix = true,
                             .extra = true,
                             .escape = true};
  tn_status status = TN_OK;
  *json = NULL;
  if (!sentencepiece_read_file(tn_proto_of(bytes, n), &file))
    status = tn_failf(handle, TN_EINVAL, "%s: is neither a tokenizer.json nor a sound model of SentencePiece",
                      name);
  if (status == TN_OK) status = sentencepiece_check(handle, name, &file);
  json_t *document = status == TN_OK ? sentencepiece_document(handle, &file) : NULL;
  char *text = document != NULL ? json_dumps(document, JSON_COMPACT) : NULL;
  if (text != NULL) *json = tn_strdup(handle, text);
  if (status == TN_OK && *json == NULL)
    status = tn_failf(handle, TN_ENOMEM, "out of memory for the text of %s", name);
  free(text);
  json_decref(document);
  json_decref(file.pieces);
  json_decref(file.surface);
  return status;
}
