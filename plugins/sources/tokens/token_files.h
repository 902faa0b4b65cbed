/* plugins/sources/tokens/token_files.h: files of tokens, as nanoGPT and llm.c write them. */
#pragma once

#include <string.h>

#include "plugins/sources/arrays/array.h"

enum { TOKEN_TYPE_AUTO = 0, TOKEN_TYPE_U16 = 1, TOKEN_TYPE_U32 = 2 };

typedef struct token_file {
  char *path;
  mapped_file file;
  const uint8_t *tokens; /* in the file */
  int64_t count;
} token_file;

typedef struct token_files {
  int64_t n;
  token_file *v;
  size_t size;    /* bytes of a token, in all files */
  int64_t tokens; /* of all files */
} token_files;

/* Opens the files of a list of paths and patterns (paths.h), in their order. `option` names the list. After a
 * failure the caller closes them, too. */
tn_status token_files_open(tn_env *env, const char *option, const char *folder, const char *list,
                           int32_t type, token_files *files);
void token_files_close(const void *handle, token_files *files);
/* The greatest token. */
tn_status token_files_greatest(tn_env *env, const token_files *files, int64_t *greatest);

/* The file may have the tokens at any address. */
static inline int64_t token_at(const uint8_t *tokens, size_t size, int64_t i) {
  uint16_t half;
  uint32_t word;
  if (size == sizeof half) {
    memcpy(&half, tokens + (size_t)i * sizeof half, sizeof half);
    return half;
  }
  memcpy(&word, tokens + (size_t)i * sizeof word, sizeof word);
  return word;
}
