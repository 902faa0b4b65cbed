/* tools/tokenize.c: `tenon tokenize FILE... --tokenizer T`: ids or tokens of texts on stdout, or a file of
 * tokens, u16 or u32 without a header, as `source = tokens` reads it. A file is cut into documents, which are
 * encoded on all processors, some tens of megabytes at a time. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tools/cli/cli.h"
#include "tenon/tokenizer.h"

static const size_t ROUND_BYTES = (size_t)1 << 26; /* of text that is encoded at once */

typedef struct tokenize_work {
  tn_context *context;
  const cli_args *args;
  tn_tokenizer *tokenizer;
  int32_t end; /* the id behind every document; -1: none */
  FILE *file;  /* of tokens; NULL: ids are printed */
  char *temporary;
  bool wide; /* u32 */
  /* of the file that is read */
  const char *path, *bytes;
  size_t n, at, line;
  /* of a round */
  tn_token_text *texts;
  json_t **parsed; /* the lines that texts lie in; NULL: the file */
  size_t *ends, n_texts, room;
  tn_token_ids ids;
  /* in all */
  long long documents, text_bytes, tokens;
} tokenize_work;

/* ---- documents ---- */

static int tokenize_add(tokenize_work *w, const char *text, size_t bytes, json_t *parsed) {
  if (w->n_texts == w->room) {
    w->room = w->room > 0 ? 2 * w->room : 1024;
    w->texts = realloc(w->texts, w->room * sizeof *w->texts);
    w->parsed = realloc(w->parsed, w->room * sizeof *w->parsed);
    w->ends = realloc(w->ends, w->room * sizeof *w->ends);
    if (w->texts == NULL || w->parsed == NULL || w->ends == NULL)
      return cli_refuse(w->args, CLI_UNAVAILABLE, "%s: out of memory for its documents", w->path);
  }
  w->texts[w->n_texts] = (tn_token_text){text, bytes};
  w->parsed[w->n_texts++] = parsed;
  w->text_bytes += (long long)bytes;
  w->documents++;
  return CLI_OK;
}

/* A line of JSON with the text in a member. Empty lines are no documents. */
static int tokenize_add_line(tokenize_work *w, const char *line, size_t bytes) {
  json_error_t error;
  w->line++;
  if (strspn(line, " \t\r") >= bytes) return CLI_OK;
  json_t *parsed = json_loadb(line, bytes, JSON_ALLOW_NUL, &error);
  const json_t *text = json_object_get(parsed, w->args->field);
  int code = CLI_OK;
  if (parsed == NULL)
    code = cli_refuse(w->args, CLI_DATA, "%s:%zu: is no JSON: %s", w->path, w->line, error.text);
  else if (!json_is_string(text))
    code =
        cli_refuse(w->args, CLI_DATA, "%s:%zu: has no text '%s' (--field)", w->path, w->line, w->args->field);
  else
    code = tokenize_add(w, json_string_value(text), json_string_length(text), parsed);
  if (code != CLI_OK) json_decref(parsed);
  return code;
}

/* The next document: up to a line end, the separator, or the end of the file. */
static int tokenize_next(tokenize_work *w) {
  const char *separator = w->args->field != NULL ? "\n" : w->args->separator, *start = w->bytes + w->at;
  size_t left = w->n - w->at, length = separator != NULL ? strlen(separator) : 0;
  const char *found = length > 0 ? memmem(start, left, separator, length) : NULL;
  size_t bytes = found != NULL ? (size_t)(found - start) : left;
  w->at += bytes + (found != NULL ? length : 0);
  if (w->args->field != NULL) return tokenize_add_line(w, start, bytes);
  return bytes > 0 || separator == NULL ? tokenize_add(w, start, bytes, NULL) : CLI_OK;
}

/* ---- results ---- */

static void tokenize_write_id(const tokenize_work *w, int32_t id) {
  uint16_t narrow = (uint16_t)id;
  fwrite(w->wide ? (const void *)&id : &narrow, w->wide ? sizeof id : sizeof narrow, 1, w->file);
}

static void tokenize_print_piece(const tokenize_work *w, int32_t id) {
  size_t bytes;
  const char *token = tn_tokenizer_token(w->context, w->tokenizer, id, &bytes);
  json_t *text = token != NULL ? json_stringn(token, bytes) : NULL;
  if (text != NULL)
    json_dumpf(text, stdout, JSON_ENCODE_ANY);
  else
    printf("%d", id);
  json_decref(text);
}

static void tokenize_put(const tokenize_work *w, int32_t id, bool first) {
  if (w->file != NULL) {
    tokenize_write_id(w, id);
    return;
  }
  if (w->args->json) return;
  if (!first) printf(" ");
  if (w->args->pieces)
    tokenize_print_piece(w, id);
  else
    printf("%d", id);
}

static void tokenize_put_document(tokenize_work *w, size_t start, size_t end) {
  for (size_t i = start; i < end; i++) tokenize_put(w, w->ids.v[i], i == start);
  if (w->end >= 0) tokenize_put(w, w->end, start == end);
  if (w->file == NULL && !w->args->json) printf("\n");
  w->tokens += (long long)(end - start) + (w->end >= 0);
}

static int tokenize_round(tokenize_work *w) {
  w->ids.n = 0;
  uint32_t flags = w->args->template_ids ? TN_TOKENIZE_TEMPLATE : 0;
  tn_status status =
      tn_tokenizer_encode_all(w->context, w->tokenizer, w->texts, w->n_texts, flags, 0, &w->ids, w->ends);
  if (status != TN_OK)
    return cli_refuse(w->args, status == TN_EINVAL ? CLI_DATA : CLI_UNAVAILABLE,
                      "%s: behind %lld documents: %s", w->path, w->documents - (long long)w->n_texts,
                      tn_error_text(w->context));
  for (size_t i = 0; i < w->n_texts; i++) tokenize_put_document(w, i > 0 ? w->ends[i - 1] : 0, w->ends[i]);
  if (w->file != NULL && ferror(w->file))
    return cli_refuse(w->args, CLI_IO, "%s: cannot be written: %s", w->temporary, strerror(errno));
  return CLI_OK;
}

static void tokenize_forget(tokenize_work *w) {
  for (size_t i = 0; i < w->n_texts; i++) json_decref(w->parsed[i]);
  w->n_texts = 0;
}

/* ---- files ---- */

static int tokenize_mapped(tokenize_work *w) {
  int code = CLI_OK;
  w->at = w->line = 0;
  do {
    long long before = w->text_bytes;
    while (code == CLI_OK && (w->at < w->n || (w->n == 0 && w->n_texts == 0))) {
      code = tokenize_next(w);
      if (w->n == 0 || (size_t)(w->text_bytes - before) >= ROUND_BYTES) break;
    }
    if (code == CLI_OK) code = tokenize_round(w);
    tokenize_forget(w);
  } while (code == CLI_OK && w->at < w->n);
  return code;
}

static int tokenize_file(tokenize_work *w, const char *path) {
  struct stat status;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    int code = cli_refuse(w->args, CLI_IO, "%s: cannot be read: %s", path,
                          fd >= 0 ? "it is no regular file" : strerror(errno));
    if (fd >= 0) close(fd);
    return code;
  }
  w->path = path;
  w->n = (size_t)status.st_size;
  void *mapped = w->n > 0 ? mmap(NULL, w->n, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
  close(fd);
  if (mapped == MAP_FAILED)
    return cli_refuse(w->args, CLI_IO, "%s: cannot be mapped: %s", path, strerror(errno));
  w->bytes = mapped != NULL ? mapped : "";
  int code = tokenize_mapped(w);
  if (mapped != NULL) munmap(mapped, w->n);
  return code;
}

/* The file appears under its name when it is complete. */
static int tokenize_open_output(tokenize_work *w) {
  const char *output = w->args->output;
  if (output == NULL) return CLI_OK;
  w->temporary = malloc(strlen(output) + sizeof ".part");
  if (w->temporary == NULL) return cli_refuse(w->args, CLI_UNAVAILABLE, "out of memory");
  stpcpy(stpcpy(w->temporary, output), ".part");
  w->file = fopen(w->temporary, "wbe");
  return w->file != NULL
             ? CLI_OK
             : cli_refuse(w->args, CLI_IO, "%s: cannot be made: %s", w->temporary, strerror(errno));
}

static int tokenize_close_output(tokenize_work *w, int code) {
  if (w->file == NULL) return code;
  bool written = fflush(w->file) == 0 && fsync(fileno(w->file)) == 0;
  if (fclose(w->file) != 0) written = false;
  if (code == CLI_OK && (!written || rename(w->temporary, w->args->output) != 0))
    code = cli_refuse(w->args, CLI_IO, "%s: cannot be written: %s", w->args->output, strerror(errno));
  if (code != CLI_OK) unlink(w->temporary);
  return code;
}

/* ---- the command ---- */

static int tokenize_open(tokenize_work *w) {
  const cli_args *args = w->args;
  if (args->tokenizer == NULL)
    return cli_refuse(args, CLI_USAGE, "expected --tokenizer FILE.json, or --tokenizer bytes");
  if (args->field != NULL && args->separator != NULL)
    return cli_refuse(args, CLI_USAGE,
                      "expected --field for lines of JSON or --separator for text, not both");
  tn_status status = tn_tokenizer_open(w->context, args->tokenizer, &w->tokenizer);
  if (status != TN_OK) return cli_fail(args, w->context, status);
  w->wide = tn_tokenizer_size(w->context, w->tokenizer) > UINT16_MAX + 1;
  w->end = args->end_token != NULL
               ? tn_tokenizer_id(w->context, w->tokenizer, args->end_token, strlen(args->end_token))
               : -1;
  if (args->end_token != NULL && w->end < 0)
    return cli_refuse(args, CLI_USAGE, "%s has no token '%s' (--end)", args->tokenizer, args->end_token);
  return tokenize_open_output(w);
}

static void tokenize_print_summary(const tokenize_work *w, double seconds) {
  double rate = seconds > 0 ? (double)w->text_bytes / 1e6 / seconds : 0;
  double each = w->tokens > 0 ? (double)w->text_bytes / (double)w->tokens : 0;
  const char *dtype = w->wide ? "u32" : "u16";
  if (w->args->json) {
    json_t *result = json_pack("{s:I, s:I, s:I, s:f, s:f, s:f, s:i}", "documents", (json_int_t)w->documents,
                               "bytes", (json_int_t)w->text_bytes, "tokens", (json_int_t)w->tokens,
                               "bytes_per_token", each, "seconds", seconds, "mb_per_s", rate, "vocabulary",
                               tn_tokenizer_size(w->context, w->tokenizer));
    if (w->file != NULL) json_object_set_new(result, "output", json_string(w->args->output));
    if (w->file != NULL) json_object_set_new(result, "dtype", json_string(dtype));
    json_dumpf(result, stdout, 0);
    printf("\n");
    json_decref(result);
  } else if (!w->args->quiet) {
    fprintf(w->file != NULL ? stdout : stderr,
            "%lld documents, %lld bytes, %lld tokens%s%s, %.2f bytes each, %.1f MB/s\n", w->documents,
            w->text_bytes, w->tokens, w->file != NULL ? " of " : "", w->file != NULL ? dtype : "", each,
            rate);
  }
}

static double tokenize_clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int tokenize_command_run(tn_context *context, const cli_args *args) {
  tokenize_work w = {.context = context, .args = args};
  int code = tokenize_open(&w);
  double start = tokenize_clock();
  for (int i = 0; code == CLI_OK && i < args->n_words; i++) code = tokenize_file(&w, args->words[i]);
  code = tokenize_close_output(&w, code);
  if (code == CLI_OK) tokenize_print_summary(&w, tokenize_clock() - start);
  tn_tokenizer_close(context, w.tokenizer);
  tn_delete(context, w.ids.v);
  free(w.temporary);
  free(w.texts);
  free(w.parsed);
  free(w.ends);
  return code;
}

const cli_command command_tokenize = {.name = "tokenize",
                                      .words = "FILE...",
                                      .doc = "texts as ids of a tokenizer, and files of tokens",
                                      .min_words = 1,
                                      .max_words = CLI_MAX_WORDS,
                                      .options = CLI_JSON | CLI_OUTPUT | CLI_TOKENIZE,
                                      .run = tokenize_command_run};
