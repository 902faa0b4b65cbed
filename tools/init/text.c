/* tools/init/text.c: the configuration for a text. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/cli.h"
#include "tools/init/init.h"

enum { TEXT_CODE_POINTS = 0x110000 };

/* The character at the beginning of n bytes and its length; 0: it is not UTF-8. */
static int text_character(const unsigned char *at, size_t n, unsigned *code) {
  int length = at[0] < 0x80 ? 1 : at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : at[0] >= 0xc2 ? 2 : 0;
  static const unsigned char first[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (length == 0 || (size_t)length > n || at[0] > 0xf4) return 0;
  *code = at[0] & first[length];
  for (int i = 1; i < length; i++) {
    if ((at[i] & 0xc0) != 0x80) return 0;
    *code = *code << 6 | (at[i] & 0x3fu);
  }
  bool valid = *code >= least[length] && *code < TEXT_CODE_POINTS && (*code < 0xd800 || *code > 0xdfff);
  return valid ? length : 0;
}

/* Counts characters; a text that is not UTF-8 consists of bytes. */
static void text_count(const unsigned char *bytes, size_t n, unsigned char *seen, text_survey *found) {
  found->utf8 = true;
  for (size_t at = 0; at < n && found->utf8;) {
    unsigned code = 0;
    int length = text_character(bytes + at, n - at, &code);
    found->utf8 = length > 0;
    if (!found->utf8) break;
    found->characters += !seen[code];
    seen[code] = 1;
    found->length++;
    at += (size_t)length;
  }
  if (found->utf8) return;
  found->characters = 256;
  found->length = (long long)n;
}

unsigned char *init_read_bytes(const char *path, size_t *n) {
  FILE *file = fopen(path, "rbe");
  unsigned char *bytes = NULL;
  if (file != NULL && fseek(file, 0, SEEK_END) == 0) {
    long size = ftell(file);
    rewind(file);
    bytes = size >= 0 ? malloc((size_t)size + 1) : NULL;
    if (bytes != NULL) *n = fread(bytes, 1, (size_t)size, file);
  }
  if (file != NULL) fclose(file);
  return bytes;
}

int init_survey_text(const cli_args *args, const char *path, text_survey *found) {
  size_t n = 0;
  *found = (text_survey){.bytes = 0};
  unsigned char *bytes = init_read_bytes(path, &n), *seen = calloc(TEXT_CODE_POINTS, 1);
  if (bytes == NULL || seen == NULL) {
    int reason = errno;
    free(bytes);
    free(seen);
    return cli_refuse(args, CLI_IO, "%s: cannot be read: %s", path, strerror(reason));
  }
  found->bytes = (long long)n;
  text_count(bytes, n, seen, found);
  free(bytes);
  free(seen);
  if (found->length >= 200) return CLI_OK;
  return cli_refuse(args, CLI_DATA, "%s: has %lld characters, expected at least 200 to learn from", path,
                    found->length);
}

static const char text_block[] = "[block block]\n"
                                 "args = width, heads\n"
                                 "layers =\n"
                                 "    ln_1: layer_norm\n"
                                 "    qkv:  linear(3*width, init=normal(0, 0.02), bias_init=zeros)\n"
                                 "    q, k, v: split(3, axis=-1)\n"
                                 "    y:    attention(heads, causal=yes) <- q, k, v\n"
                                 "    proj: linear(width, init=normal(0, 0.007), bias_init=zeros)\n"
                                 "    a:    add <- in, proj\n"
                                 "    ln_2: layer_norm\n"
                                 "    up:   linear(4*width, init=normal(0, 0.02), bias_init=zeros)\n"
                                 "          gelu(tanh)\n"
                                 "    down: linear(width, init=normal(0, 0.007), bias_init=zeros)\n"
                                 "          add <- a, down\n";

static void text_write_model(const init_file *f, long long tokens, long long characters, bool large) {
  int width = large ? 128 : 64, layers = large ? 4 : 2;
  fprintf(f->to, "\n[model]\ninputs = tokens: i32[%lld]\ntargets = next: i32[%lld]\nlayers =\n", tokens,
          tokens);
  fprintf(f->to, "    wte:  embedding(%lld, %d, init=normal(0, 0.02))\n", characters, width);
  fprintf(f->to, "    wpe:  positions(%d, init=normal(0, 0.02)) <- tokens\n", width);
  fprintf(f->to, "    x:    add <- wte, wpe\n    h:    block(%d, heads=4) * %d\n    ln_f: layer_norm\n",
          width, layers);
  fprintf(f->to, "    head: linear(%lld, bias=no, init=normal(0, 0.02))\nloss = cross_entropy\n\n%s",
          characters, text_block);
}

/* A tenth of the text is for validation, and must hold a window and the character behind it. */
init_choice init_choose_text(const text_survey *found) {
  long long tokens = 64;
  while (tokens > 8 && tokens * 20 > found->length) tokens /= 2;
  long long windows = found->length * 9 / 10 / tokens, batch = 16;
  while (batch > 1 && batch * 4 > windows) batch /= 2;
  return (init_choice){tokens, batch, 2000 * batch / (windows ? windows : 1) + 1};
}

/* The sections of the model and of its training. */
void init_write_transformer(const init_file *f, const text_survey *found, const init_choice *c) {
  long long windows = found->length * 9 / 10 / c->side, warmup = c->epochs * (windows / c->batch) / 20;
  text_write_model(f, c->side, found->characters, found->length >= 100000);
  fprintf(f->to,
          "\n[optimizer]\ntype = adamw\nlr = 1e-3\nbeta2 = 0.99\nweight_decay = 0.1\nclip = 1.0\n"
          "\n[group.no_decay]\nmatch = *.bias, *ln_*\nweight_decay = 0\n"
          "\n[schedule]\ntype = cosine\nwarmup = %lld\nfloor = 0.1\n",
          warmup < 100 ? warmup : 100);
}

void init_write_text(const init_file *f, const text_survey *found, init_choice *c) {
  *c = init_choose_text(found);
  fprintf(f->to, "# A small transformer that predicts the next %s of a text of %lld.\n",
          found->utf8 ? "character" : "byte", found->length);
  fprintf(f->to, "[run]\nname = %s\nepochs = %lld\n\n", f->name, c->epochs);
  fprintf(f->to, "[data]\nsource = text\nfile = %s\n%stokens = %lld\nbatch = %lld\n", f->path,
          found->utf8 ? "" : "tokenizer = bytes\n", c->side, c->batch);
  init_write_transformer(f, found, c);
}
