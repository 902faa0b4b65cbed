/* tenon/api.h: the table of host functions that every handle points to. Code calls it through the inline
 * functions of build.h, ops.h and the plugin headers, in applications that link libtenon and in plugins that
 * do not.
 *
 * Versions: a minor version appends entries to the table. While the major version is 0, the host loads
 * plugins of exactly its own major and minor version. */
#ifndef TENON_API_H
#define TENON_API_H

#include "tenon/env.h"

TN_BEGIN_C

enum { TN_ABI_MAJOR = 0, TN_ABI_MINOR = 2 };

typedef uint32_t tn_val;              /* a value in a graph; 0: absent, or an earlier call failed */
typedef struct tn_build tn_build;     /* build.h */
typedef struct tn_query tn_query;     /* plugin/kernel.h */
typedef struct tn_variant tn_variant; /* plugin/kernel.h */
typedef struct tn_launch tn_launch;   /* plugin/kernel.h */
typedef struct tn_sample tn_sample;   /* plugin/source.h */

/* tokenizer.h */
typedef struct tn_tokenizer tn_tokenizer;
typedef struct tn_token_stream tn_token_stream;
struct tn_token_ids;
struct tn_token_text;

/* plugin/source.h */
struct tn_part;
struct tn_part_use;

struct tn_api {
  uint32_t struct_size;
  uint16_t major, minor;

  /* any handle */
  tn_status (*fail)(const void *handle, tn_status code, const char *option, const char *format, ...)
      TN_PRINTF(4, 5);
  void (*log)(const void *handle, int32_t level, const char *format, ...) TN_PRINTF(3, 4);
  void *(*alloc)(const void *handle, size_t bytes);
  void (*free)(const void *handle, void *block);

  /* graph under construction: documented in build.h */
  void (*begin)(tn_build *b, const char *op);
  void (*arg)(tn_build *b, tn_val value);
  void (*set_int)(tn_build *b, const char *name, int64_t value);
  void (*set_float)(tn_build *b, const char *name, double value);
  void (*set_ints)(tn_build *b, const char *name, int64_t n, const int64_t *values);
  void (*set_floats)(tn_build *b, const char *name, int64_t n, const double *values);
  void (*set_text)(tn_build *b, const char *name, const char *value);
  tn_val (*end)(tn_build *b);
  tn_val (*result)(tn_build *b, tn_val first, int32_t index);
  const tn_type *(*type)(tn_build *b, tn_val value);
  int32_t (*n_in)(tn_build *b);
  tn_val (*in)(tn_build *b, int32_t index);
  tn_val (*out)(tn_build *b, int32_t index);
  tn_val (*dout)(tn_build *b, int32_t index);
  int32_t (*want)(tn_build *b, int32_t index);
  void (*yield)(tn_build *b, int32_t index, tn_val value);
  tn_val (*param)(tn_build *b, const char *name, const tn_type *type, const char *init);
  tn_val (*state)(tn_build *b, const char *name, const tn_type *type, const char *init);
  void (*commit)(tn_build *b, tn_val state, tn_val now);
  tn_val (*layer)(tn_build *b, const char *name, const char *line, const tn_val *in, int32_t n_in);
  tn_val (*option_value)(tn_build *b, const char *option);
  tn_val (*counter)(tn_build *b, int32_t which);
  uint64_t (*random_stream)(tn_build *b, const char *use);
  int32_t (*training)(tn_build *b);
  int32_t (*ranks)(tn_build *b);
  tn_status (*status)(tn_build *b);

  /* kernels: documented in plugin/kernel.h */
  void (*variant)(tn_query *q, const tn_variant *variant);
  void (*parallel)(tn_launch *l, int64_t chunks, void (*body)(void *arg, int64_t chunk), void *arg);

  /* sources and transforms: documented in plugin/source.h */
  void *(*field)(tn_sample *s, int32_t field, const tn_type *type);

  /* any handle: tn_make_folder */
  tn_status (*make_folder)(const void *handle, const char *path);

  /* graph under construction: tn_build_frozen */
  int32_t (*frozen)(tn_build *b, const char *name);

  /* any handle: tn_env_stopping */
  int32_t (*stopping)(const void *handle);

  /* any handle: documented in tokenizer.h */
  tn_status (*tokenizer_open)(const void *handle, const char *path, tn_tokenizer **tokenizer);
  tn_status (*tokenizer_open_text)(const void *handle, const char *name, const char *json, size_t bytes,
                                   tn_tokenizer **tokenizer);
  tn_status (*tokenizer_of_characters)(const void *handle, const char *name, const char *text, size_t bytes,
                                       int32_t most, tn_tokenizer **tokenizer);
  void (*tokenizer_close)(const void *handle, tn_tokenizer *tokenizer);
  const char *(*tokenizer_json)(const tn_tokenizer *tokenizer);
  int32_t (*tokenizer_size)(const tn_tokenizer *tokenizer);
  int32_t (*tokenizer_id)(const tn_tokenizer *tokenizer, const char *token, size_t bytes);
  const char *(*tokenizer_token)(const tn_tokenizer *tokenizer, int32_t id, size_t *bytes);
  tn_status (*tokenizer_encode)(const void *handle, const tn_tokenizer *tokenizer, const char *text,
                                size_t bytes, uint32_t flags, struct tn_token_ids *ids);
  tn_status (*tokenizer_decode)(const void *handle, const tn_tokenizer *tokenizer, const int32_t *ids,
                                size_t n, uint32_t flags, char **text, size_t *bytes);
  tn_status (*token_stream_open)(const void *handle, const tn_tokenizer *tokenizer, uint32_t flags,
                                 tn_token_stream **stream);
  tn_status (*token_stream_next)(const void *handle, tn_token_stream *stream, int32_t id, const char **text,
                                 size_t *bytes);
  tn_status (*token_stream_end)(const void *handle, tn_token_stream *stream, const char **text,
                                size_t *bytes);
  void (*token_stream_close)(const void *handle, tn_token_stream *stream);
  tn_status (*tokenizer_encode_all)(const void *handle, const tn_tokenizer *tokenizer,
                                    const struct tn_token_text *texts, size_t n, uint32_t flags,
                                    int32_t threads, struct tn_token_ids *ids, size_t *ends);

  /* handle of a source: tn_env_learnt */
  const char *(*learnt)(const void *handle);

  /* handle of open and open_files of a source: tn_part_open */
  tn_status (*part_open)(tn_env *env, const char *name, const struct tn_part_use *use, struct tn_part *part);

  /* handle of open and open_files of a source: tn_env_shards */
  int32_t (*shards)(const void *handle);

  /* any handle: tn_fail_in */
  tn_status (*wrap)(const void *handle, tn_status status, const char *format, ...) TN_PRINTF(3, 4);
};

/* tn_fail records the text of a failure in the handle and returns `code`, so a callback ends with
 * `return tn_fail(...)`. `option` names the option that is wrong, or is NULL; a text that does not name it
 * gets "OPTION: " in front, and the host adds file and line. tn_env_log writes a line to the application's
 * log; levels are those of env.h. (The parentheses around the member keep a test library's macro `fail` from
 * expanding.) */
#define tn_fail(handle, code, option, ...)                                                                   \
  ((((const tn_env *)(handle))->api->fail)((handle), (code), (option), __VA_ARGS__))
#define tn_env_log(handle, level, ...)                                                                       \
  ((((const tn_env *)(handle))->api->log)((handle), (level), __VA_ARGS__))

/* Puts "CONTEXT: " in front of the text of a failure that another call has recorded in the handle, such as
 * the file that it is about, and returns `status`; of TN_OK and TN_EOF it only returns it. So a callback ends
 * with `return tn_fail_in(handle, status, "%s", path)`. */
#define tn_fail_in(handle, status, ...)                                                                      \
  ((((const tn_env *)(handle))->api->wrap)((handle), (status), __VA_ARGS__))

/* Host memory for a plugin's own objects. tn_new: `bytes` zero bytes, aligned for every type; NULL with
 * TN_ENOMEM in the handle where memory ran out. tn_delete frees them, through any handle of the same context;
 * accepts NULL. Threads: any, each with its own handle. */
static inline void *tn_new(const void *handle, size_t bytes) {
  return ((const tn_env *)handle)->api->alloc(handle, bytes);
}
static inline void tn_delete(const void *handle, void *block) {
  ((const tn_env *)handle)->api->free(handle, block);
}

/* Makes a folder that only the user can write to, and the folders above it, unless it exists. TN_EIO: it
 * cannot be made, for the reason in errno, or others can write to it (errno is 0). For the caches of backends
 * (plugin/backend.h). */
static inline tn_status tn_make_folder(const void *handle, const char *path) {
  return ((const tn_env *)handle)->api->make_folder(handle, path);
}

/* Whether the host was asked to stop, and waits for this call only. For calls before the first step that take
 * longer than a moment, such as one that compiles: they ask four times a second or more, and return
 * TN_ESTOPPED. A sample's reader asks tn_sample_stopping (plugin/source.h). Threads: any. */
static inline int32_t tn_env_stopping(const void *handle) {
  const tn_api *api = ((const tn_env *)handle)->api;
  return api->stopping != NULL && api->stopping(handle);
}

/* The learnt state of the training part's source (tn_source.learnt), for open and open_files of the same
 * source: of validation data, of files that are predicted, and of the training data of a resumed run.
 * Valid during the call. NULL before anything is learnt, so the source learns from the training part. */
static inline const char *tn_env_learnt(const void *handle) {
  const tn_api *api = ((const tn_env *)handle)->api;
  return api->learnt != NULL ? api->learnt(handle) : NULL;
}

/* How many ranks open this source, of which each reads other samples: for open and open_files of sources
 * whose data cannot be read several times. At least 1. */
static inline int32_t tn_env_shards(const void *handle) {
  const tn_api *api = ((const tn_env *)handle)->api;
  return api->shards != NULL ? api->shards(handle) : 1;
}

TN_END_C
#endif
