/* plugins/sources/tokens/tokens.c: files of tokens as windows, for models that predict the next token.
 *
 * The tokens of a part of a file, or of a document, are a segment; its windows begin every `stride` tokens. A
 * document begins with the token of the option and ends in front of the next one, which is its last target,
 * so that it does not matter whether a file has the token in front of its documents or behind them. */
#include <stdio.h>
#include <string.h>

#include "plugins/sources/tokens/token_files.h"
#include "tenon/tokenizer.h"

typedef struct tokens_options {
  const char *folder, *files, *valid, *tokenizer;
  int32_t type, crossing; /* TOKEN_TYPE_..., CROSSING_... */
  int64_t tokens, stride, document, classes;
  double split;
} tokens_options;

enum { CROSSING_NO = 0, CROSSING_MASK = 1, CROSSING_YES = 2 };
enum { NO_TARGET = -100 };

static const tn_option options[] = {
    TN_OPT(tokens_options, folder, TN_OPT_PATH, "", NULL, "the folder where paths of files begin"),
    TN_OPT(tokens_options, files, TN_OPT_TEXT, NULL, NULL,
           "files of tokens in their order, separated by commas or lines; ranges, choices and "
           "patterns stand for several: train_{00..15}.bin, train_*.bin"),
    TN_OPT(tokens_options, valid, TN_OPT_TEXT, "", NULL, "the files of validation, as files"),
    TN_OPT(tokens_options, split, TN_OPT_FLOAT, "0", "[0, 1)",
           "part of the tokens that is for validation, at the end of the last files; 0: none"),
    TN_OPT(tokens_options, type, TN_OPT_ENUM, "auto", "auto|u16|u32",
           "how a token is stored; auto: as the header says (llm.c, .npy), and without one u16, as nanoGPT "
           "does"),
    TN_OPT(tokens_options, tokens, TN_OPT_INT, "1024", "[1, 1048576]", "length of a window"),
    TN_OPT(tokens_options, stride, TN_OPT_INT, "0", ">= 0",
           "tokens from the start of a window to the next; 0: the length of a window"),
    TN_OPT(tokens_options, document, TN_OPT_INT, "-1", "[-1, 2147483647]",
           "the token between documents, 50256 in GPT-2; -1: documents are not told apart"),
    TN_OPT(
        tokens_options, crossing, TN_OPT_ENUM, "no", "no|mask|yes",
        "windows and the ends of documents: no: a window ends with its document, and is filled with the "
        "token of document and targets -100; mask: it goes on, with targets -100 behind the first end; yes: "
        "it goes on"),
    TN_OPT(tokens_options, classes, TN_OPT_INT, "0", "[0, 2147483647]",
           "number of different tokens; 0: those of the tokenizer, and without one the greatest of all files "
           "+ 1, "
           "which reads them once"),
    TN_OPT(tokens_options, tokenizer, TN_OPT_PATH, "", "bytes",
           "the tokenizer.json or SentencePiece .model that has written the tokens; it travels with the "
           "weights, and `tenon generate` "
           "needs it"),
    TN_OPT_END};

/* Tokens whose windows do not reach into others. */
typedef struct token_segment {
  const uint8_t *tokens;
  int64_t inputs; /* tokens that have a next one */
  int64_t before; /* windows of the segments in front */
} token_segment;

typedef struct tokens {
  tokens_options options;
  token_files files;
  token_segment *segments;
  int64_t n_segments, count; /* count: windows */
  int64_t classes;
  tn_tokenizer *tokenizer; /* NULL: unknown */
  tn_field fields[2];
} tokens;

static int64_t tokens_stride(const tokens *t) {
  return t->options.stride > 0 ? t->options.stride : t->options.tokens;
}

static int32_t tokens_by_document(const tokens *t) {
  return t->options.document >= 0 && t->options.crossing == CROSSING_NO;
}

/* ---- segments ---- */

/* Windows of a segment: full ones; of a document as many as it takes. */
static int64_t tokens_windows(const tokens *t, int64_t inputs) {
  int64_t n = t->options.tokens, stride = tokens_stride(t);
  if (!tokens_by_document(t)) return inputs < n ? 0 : (inputs - n) / stride + 1;
  return inputs <= n ? inputs > 0 : (inputs - n + stride - 1) / stride + 1;
}

/* Counts the windows of a segment, and writes it where there is room already. */
static void tokens_add(tokens *t, const uint8_t *at, int64_t inputs) {
  int64_t windows = tokens_windows(t, inputs);
  if (windows == 0) return;
  if (t->segments != NULL) t->segments[t->n_segments] = (token_segment){at, inputs, t->count};
  t->n_segments++;
  t->count += windows;
}

/* The segments of tokens [first, first + n) of a file. */
static tn_status tokens_divide(tn_env *env, tokens *t, const token_file *f, int64_t first, int64_t n) {
  size_t size = t->files.size;
  const uint8_t *at = f->tokens + (size_t)first * size;
  int64_t start = 0;
  if (n < 2) return TN_OK;
  for (int64_t i = 1; tokens_by_document(t) && i < n; i++) {
    if (i % (1 << 24) == 0 && tn_env_stopping(env))
      return tn_fail(env, TN_ESTOPPED, NULL, "%s: stopped while it was read", f->path);
    if (token_at(at, size, i) != t->options.document) continue;
    tokens_add(t, at + (size_t)start * size, i - start);
    start = i;
  }
  tokens_add(t, at + (size_t)start * size, n - 1 - start);
  return TN_OK;
}

/* The segments of the tokens [from, to) of all files. */
static tn_status tokens_divide_all(tn_env *env, tokens *t, int64_t from, int64_t to) {
  t->n_segments = t->count = 0;
  for (int64_t k = 0, at = 0; k < t->files.n; at += t->files.v[k++].count) {
    const token_file *f = &t->files.v[k];
    int64_t first = from > at ? from - at : 0, last = to - at < f->count ? to - at : f->count;
    if (first < last) TN_TRY(tokens_divide(env, t, f, first, last - first));
  }
  return TN_OK;
}

/* Counts the segments, then writes them. */
static tn_status tokens_find_segments(tn_env *env, tokens *t, int64_t from, int64_t to) {
  TN_TRY(tokens_divide_all(env, t, from, to));
  if (t->count == 0)
    return tn_fail(env, TN_EINVAL, "tokens",
                   "%s: this part has %lld tokens%s, expected more than %lld, the window", t->files.v[0].path,
                   (long long)(to - from), t->files.n > 1 ? " in several files" : "",
                   (long long)t->options.tokens);
  t->segments = tn_new(env, (size_t)t->n_segments * sizeof *t->segments);
  return t->segments != NULL ? tokens_divide_all(env, t, from, to) : TN_ENOMEM;
}

/* ---- opening ---- */

static tn_status tokens_check_split(tn_env *env, const tokens_options *o, int32_t split) {
  int32_t others = o->valid[0] != '\0';
  if (others && o->split > 0)
    return tn_fail(env, TN_EINVAL, "split", "split = %g has no effect beside valid; leave one of them out",
                   o->split);
  if (others || o->split > 0 || split == TN_SPLIT_TRAIN) return TN_OK;
  return tn_fail(env, TN_EUNAVAILABLE, "split",
                 "no tokens are for validation; set split = 0.1 to take a part, or valid to other files");
}

/* That of the weights, if there are any, is that of their training. */
static tn_status tokens_open_tokenizer(tn_env *env, tokens *t) {
  const char *learnt = tn_env_learnt(env), *path = t->options.tokenizer;
  if (learnt != NULL)
    TN_TRY(
        tn_tokenizer_open_text(env, "the tokenizer of the weights", learnt, strlen(learnt), &t->tokenizer));
  else if (path[0] != '\0')
    TN_TRY(tn_tokenizer_open(env, path, &t->tokenizer));
  t->classes = t->options.classes;
  if (t->classes == 0 && t->tokenizer != NULL) t->classes = tn_tokenizer_size(env, t->tokenizer);
  return TN_OK;
}

/* Classes that are found are those of all files, so that training and validation have the same. */
static tn_status tokens_open_files(tn_env *env, tokens *t, int32_t split) {
  const tokens_options *o = &t->options;
  token_files other = {.n = 0};
  int32_t is_valid = split == TN_SPLIT_VALID && o->valid[0] != '\0';
  int32_t both = o->valid[0] != '\0' && t->classes == 0;
  int64_t greatest = 0;
  TN_TRY(token_files_open(env, is_valid ? "valid" : "files", o->folder, is_valid ? o->valid : o->files,
                          o->type, &t->files));
  if (t->classes > 0) return TN_OK;
  tn_status status = token_files_greatest(env, &t->files, &greatest);
  if (status == TN_OK && both)
    status = token_files_open(env, is_valid ? "files" : "valid", o->folder, is_valid ? o->files : o->valid,
                              o->type, &other);
  if (status == TN_OK) status = token_files_greatest(env, &other, &greatest);
  token_files_close(env, &other);
  t->classes = greatest + 1;
  if (status != TN_OK || t->classes <= INT32_MAX) return status;
  return tn_fail(env, TN_EINVAL, "type", "%s: has token %lld, expected tokens below %d; is type another one?",
                 t->files.v[0].path, (long long)greatest, INT32_MAX);
}

static void tokens_close(tn_env *env, void *source) {
  tokens *t = source;
  tn_tokenizer_close(env, t->tokenizer);
  token_files_close(env, &t->files);
  tn_delete(env, t->segments);
  tn_delete(env, t);
}

static tn_status tokens_prepare(tn_env *env, tokens *t, int32_t split) {
  TN_TRY(tokens_check_split(env, &t->options, split));
  TN_TRY(tokens_open_tokenizer(env, t));
  TN_TRY(tokens_open_files(env, t, split));
  if (t->options.document >= t->classes)
    return tn_fail(env, TN_EINVAL, "document", "document = %lld, but the %lld classes are tokens below it",
                   (long long)t->options.document, (long long)t->classes);
  int64_t all = t->files.tokens, border = all - (int64_t)((double)all * t->options.split);
  int32_t end = t->options.split > 0 && split == TN_SPLIT_VALID;
  return tokens_find_segments(env, t, end ? border : 0, end ? all : border);
}

static tn_status tokens_open(tn_env *env, const void *opts, int32_t split, uint64_t seed, void **source) {
  (void)seed;
  tokens *t = tn_new(env, sizeof(*t));
  if (t == NULL) return TN_ENOMEM;
  t->options = *(const tokens_options *)opts;
  tn_status status = tokens_prepare(env, t, split);
  if (status != TN_OK) {
    tokens_close(env, t);
    return status;
  }
  tn_type type = {TN_I32, 1, {t->options.tokens}};
  t->fields[0] = (tn_field){sizeof(tn_field), "tokens", type, TN_FIELD_INPUT, 0, NULL};
  t->fields[1] = (tn_field){sizeof(tn_field), "next", type, TN_FIELD_TARGET, t->classes, NULL};
  *source = t;
  return TN_OK;
}

static tn_status tokens_describe(tn_env *env, void *source, tn_description *description) {
  (void)env;
  tokens *t = source;
  description->count = t->count;
  description->n_fields = 2;
  description->fields = t->fields;
  return TN_OK;
}

/* ---- reading ---- */

/* The segment of a window: the last one in front of which no more windows are. Bisection. */
static const token_segment *tokens_find(const tokens *t, int64_t window) {
  int64_t low = 0, high = t->n_segments;
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    if (t->segments[middle].before <= window)
      low = middle;
    else
      high = middle;
  }
  return &t->segments[low];
}

/* Writes n tokens; returns the greatest. */
static int64_t tokens_copy(const uint8_t *from, size_t size, int64_t n, int32_t *to) {
  int64_t most = 0;
  for (int64_t i = 0; i < n; i++) {
    int64_t token = token_at(from, size, i);
    to[i] = (int32_t)token;
    most = token > most ? token : most;
  }
  return most;
}

static void tokens_mask(const tokens *t, const int32_t *inputs, int32_t *targets) {
  int64_t i = 1, n = t->options.tokens;
  if (t->options.document < 0 || t->options.crossing != CROSSING_MASK) return;
  while (i < n && inputs[i] != t->options.document) i++;
  for (; i < n; i++) targets[i] = NO_TARGET;
}

static tn_status tokens_read(tn_sample *s, void *source) {
  const tokens *t = source;
  int32_t *inputs = tn_sample_field(s, 0, NULL), *targets = tn_sample_field(s, 1, NULL);
  if (inputs == NULL || targets == NULL) return TN_ENOMEM;
  const token_segment *segment = tokens_find(t, s->index);
  int64_t first = (s->index - segment->before) * tokens_stride(t), n = segment->inputs - first;
  if (n > t->options.tokens) n = t->options.tokens;
  size_t size = t->files.size;
  const uint8_t *at = segment->tokens + (size_t)first * size;
  int64_t most = tokens_copy(at, size, n, inputs), next = tokens_copy(at + size, size, n, targets);
  if (most >= t->classes || next >= t->classes)
    return tn_fail(s, TN_EINVAL, "classes",
                   "window %lld has token %lld, expected tokens below classes = %lld", (long long)s->index,
                   (long long)(most > next ? most : next), (long long)t->classes);
  for (int64_t i = n; i < t->options.tokens; i++) {
    inputs[i] = (int32_t)t->options.document;
    targets[i] = NO_TARGET;
  }
  tokens_mask(t, inputs, targets);
  return TN_OK;
}

static tn_status tokens_name(tn_env *env, void *source, int64_t index, char *text, size_t size) {
  (void)env;
  const tokens *t = source;
  const token_segment *segment = tokens_find(t, index);
  const token_file *f = t->files.v;
  while (f + 1 < t->files.v + t->files.n &&
         (segment->tokens < f->tokens || segment->tokens >= f->tokens + (size_t)f->count * t->files.size))
    f++;
  int64_t first = (segment->tokens - f->tokens) / (int64_t)t->files.size;
  snprintf(text, size, "%s, token %lld", f->path,
           (long long)(first + (index - segment->before) * tokens_stride(t)));
  return TN_OK;
}

static tn_status tokens_learnt(tn_env *env, void *source, const char **json) {
  const tokens *t = source;
  *json = t->tokenizer != NULL ? tn_tokenizer_json(env, t->tokenizer) : NULL;
  return TN_OK;
}

const tn_source tokens_source = {
    .item = TN_ITEM(tn_source, TN_SOURCE, "tokens",
                    "files of tokens of 16 or 32 bits, as nanoGPT and llm.c write them, as windows",
                    tokens_options, options),
    .types = "tokens: i32[tokens], next: i32[tokens]",
    .example = "source = tokens\nfolder = .\nfiles = train.bin\nvalid = val.bin\ntokens = 256",
    .open = tokens_open,
    .close = tokens_close,
    .describe = tokens_describe,
    .read = tokens_read,
    .name = tokens_name,
    .learnt = tokens_learnt,
};
