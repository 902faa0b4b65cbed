/* tools/init/tokens.c: the configuration for a file of tokens, as nanoGPT and llm.c write them. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli/cli.h"
#include "tools/init/init.h"

enum { TOKENS_HEADER = 1024 };
/* Sizes of vocabularies that files of tokens have: bytes, GPT-2, GPT-4, Llama 3. */
static const long long tokens_vocabularies[] = {256, 50257, 100277, 128256};

/* A header of llm.c gives the size of a token. 0 without a header. */
static int tokens_header(const unsigned char *bytes, size_t n) {
  uint32_t magic;
  if (n < TOKENS_HEADER) return 0;
  memcpy(&magic, bytes, sizeof magic);
  return magic == 20240520 ? 2 : magic == 20240801 ? 4 : 0;
}

static void tokens_count(const unsigned char *bytes, size_t n, tokens_survey *found) {
  int headed = tokens_header(bytes, n), size = headed > 0 ? headed : 2;
  size_t start = headed > 0 ? TOKENS_HEADER : 0;
  long long greatest = 0;
  found->tokens = (long long)((n - start) / (size_t)size);
  for (long long i = 0; i < found->tokens; i++) {
    uint32_t token = 0;
    memcpy(&token, bytes + start + (size_t)i * (size_t)size, (size_t)size); /* little-endian */
    if (token > greatest) greatest = token;
  }
  found->classes = greatest + 1;
  for (size_t i = sizeof tokens_vocabularies / sizeof *tokens_vocabularies; i > 0; i--) {
    long long size_of = tokens_vocabularies[i - 1];
    if (greatest < size_of && greatest >= size_of - size_of / 4) found->classes = size_of;
  }
}

/* "val.bin" beside "train.bin", and the like. */
static void tokens_find_valid(const char *path, const char *name, tokens_survey *found) {
  static const char *const others[] = {"val", "valid", "validation", "test"};
  const char *part = strstr(name, "train");
  found->valid[0] = '\0';
  for (size_t i = 0; part != NULL && found->valid[0] == '\0' && i < sizeof others / sizeof *others; i++) {
    char whole[8192];
    snprintf(found->valid, sizeof found->valid, "%.*s%s%s", (int)(part - name), name, others[i],
             part + strlen("train"));
    snprintf(whole, sizeof whole, "%.*s%s", (int)(strlen(path) - strlen(name)), path, found->valid);
    if (access(whole, R_OK) != 0) found->valid[0] = '\0';
  }
}

/* A file of the system, such as /proc/kmsg, has no size, and reading it may wait. */
bool init_is_tokens(const char *path) {
  struct stat info;
  unsigned char head[TOKENS_HEADER];
  size_t n = strlen(path), got = 0;
  if (n > 4 && strcmp(path + n - 4, ".bin") == 0) return true;
  if (stat(path, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size < TOKENS_HEADER) return false;
  FILE *file = fopen(path, "rbe");
  if (file != NULL) got = fread(head, 1, sizeof head, file);
  if (file != NULL) fclose(file);
  return tokens_header(head, got) > 0;
}

int init_survey_tokens(const cli_args *args, const char *path, tokens_survey *found) {
  struct stat info;
  const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  void *at = MAP_FAILED;
  *found = (tokens_survey){.tokens = 0};
  if (fd >= 0 && fstat(fd, &info) == 0 && info.st_size > 0)
    at = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  int reason = errno;
  if (fd >= 0) close(fd);
  if (at != MAP_FAILED) {
    tokens_count(at, (size_t)info.st_size, found);
    munmap(at, (size_t)info.st_size);
  } else if (fd < 0) {
    return cli_refuse(args, CLI_IO, "%s: cannot be read: %s", path, strerror(reason));
  }
  snprintf(found->name, sizeof found->name, "%s", name);
  tokens_find_valid(path, name, found);
  if (found->tokens >= 200) return CLI_OK;
  return cli_refuse(args, CLI_DATA,
                    "%s: has %lld tokens of 16 or 32 bits, expected at least 200 to learn from", path,
                    found->tokens);
}

void init_write_tokens(const init_file *f, const tokens_survey *found, init_choice *c) {
  text_survey text = {.length = found->tokens, .characters = found->classes};
  *c = init_choose_text(&text);
  fprintf(f->to,
          "# A small transformer that predicts the next token of %lld.\n[run]\nname = %s\nepochs = %lld\n\n",
          found->tokens, f->name, c->epochs);
  fprintf(f->to, "[data]\nsource = tokens\nfolder = %s\nfiles = %s\n", f->path, found->name);
  if (found->valid[0] != '\0')
    fprintf(f->to, "valid = %s\n", found->valid);
  else
    fprintf(f->to, "split = 0.1\n");
  fprintf(f->to, "tokens = %lld\nclasses = %lld\nbatch = %lld\n", c->side, found->classes, c->batch);
  init_write_transformer(f, &text, c);
}
