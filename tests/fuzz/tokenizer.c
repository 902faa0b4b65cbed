/* A tokenizer.json, or a .model of SentencePiece, and a text. Up to a line "====" the input is the file,
 * behind it the text; without such a line the file is the text, too. */
#include "core/tokenizer/calls.h"
#include "core/tokenizer/tokenizer.h"
#include "tests/fuzz/fuzz.h"

static void decode(fuzz *f, const tn_tokenizer *tokenizer, const tn_token_ids *ids) {
  char *text;
  size_t bytes;
  tn_status status =
      tn_host_tokenizer_decode(f, tokenizer, ids->v, ids->n, TN_TOKENIZE_SPECIAL, &text, &bytes);
  fuzz_judge(f, status);
  tn_release(f, text);
}

static void stream(fuzz *f, const tn_tokenizer *tokenizer, const tn_token_ids *ids) {
  tn_token_stream *s;
  const char *text;
  size_t bytes;
  tn_status status = tn_host_token_stream_open(f, tokenizer, 0, &s);
  for (size_t i = 0; status == TN_OK && i < ids->n; i++)
    status = tn_host_token_stream_next(f, s, ids->v[i], &text, &bytes);
  if (status == TN_OK) status = tn_host_token_stream_end(f, s, &text, &bytes);
  fuzz_judge(f, status);
  tn_host_token_stream_close(f, s);
}

static void encode(fuzz *f, const tn_tokenizer *tokenizer, const char *text, size_t bytes) {
  tn_token_ids ids = {0};
  tn_status status = tn_host_tokenizer_encode(f, tokenizer, text, bytes, TN_TOKENIZE_TEMPLATE, &ids);
  fuzz_judge(f, status);
  for (size_t i = 0; i < ids.n; i++) {
    size_t n;
    fuzz_expect(tn_host_tokenizer_token(tokenizer, ids.v[i], &n) != NULL, "an id without a token");
  }
  if (status == TN_OK) {
    decode(f, tokenizer, &ids);
    stream(f, tokenizer, &ids);
  }
  tn_release(f, ids.v);
}

static tn_status open_file(fuzz *f, const char *bytes, size_t n, tn_tokenizer **tokenizer) {
  char *json;
  *tokenizer = NULL;
  if (!tn_sentencepiece_is(bytes, n)) return tn_host_tokenizer_open_text(f, "fuzz.json", bytes, n, tokenizer);
  TN_TRY(tn_sentencepiece_json(f, "fuzz.model", bytes, n, &json));
  tn_status status = tn_host_tokenizer_open_text(f, "fuzz.model", json, strlen(json), tokenizer);
  tn_release(f, json);
  return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static const char line[] = "\n====\n";
  fuzz f;
  tn_tokenizer *tokenizer;
  const char *json = (const char *)bytes, *text = size > 0 ? memmem(bytes, size, line, strlen(line)) : NULL;
  size_t n = text != NULL ? (size_t)(text - json) : size;
  text = text != NULL ? text + strlen(line) : json;
  fuzz_open(&f);
  tn_status status = open_file(&f, json, n, &tokenizer);
  fuzz_judge(&f, status);
  if (status == TN_OK) encode(&f, tokenizer, text, size - (size_t)(text - json));
  tn_host_tokenizer_close(&f, tokenizer);
  fuzz_close(&f);
  return 0;
}
