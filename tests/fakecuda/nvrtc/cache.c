#include "tests/fakecuda/nvrtc/cache.h"

#include "tests/fakecuda/nvrtc/compiler.h"

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct cache_entry {
  struct cache_entry *next;
  nvrtc_key key;
  nvrtc_text image, log;
} cache_entry;

enum { CACHE_BUCKETS = 256 };
static cache_entry *cache_buckets[CACHE_BUCKETS];
static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;

/* A file: this, the log, the image. */
typedef struct cache_head {
  uint64_t mark, log_bytes, image_bytes;
  nvrtc_key content;
} cache_head;
static const uint64_t cache_mark = 0x31656b6166636e74u;

static void cache_hash(nvrtc_key *key, const void *from, size_t bytes) {
  const unsigned char *at = from;
  for (size_t i = 0; i < bytes; i++) {
    key->words[0] = (key->words[0] ^ at[i]) * 0x100000001b3u;
    key->words[1] = (key->words[1] + at[i]) * 0x9e3779b97f4a7c15u;
    key->words[1] ^= key->words[1] >> 29;
  }
}

static void cache_hash_text(nvrtc_key *key, const char *text) { cache_hash(key, text, strlen(text) + 1); }

nvrtc_key nvrtc_cache_key_of_host(const char *standard) {
  nvrtc_key key = {{0xcbf29ce484222325u, 0x2545f4914f6cdd1du}};
  cache_hash_text(&key, nvrtc_host_text);
  cache_hash_text(&key, nvrtc_compiler());
  cache_hash_text(&key, nvrtc_fma());
  cache_hash_text(&key, __VERSION__);
  cache_hash_text(&key, standard);
  return key;
}

nvrtc_key nvrtc_cache_key(const nvrtc_source *source) {
  nvrtc_key key = nvrtc_cache_key_of_host(source->options->standard);
  cache_hash_text(&key, source->text);
  cache_hash_text(&key, source->name);
  const int32_t counts[] = {source->n_headers, source->n_expressions, source->options->n_preprocessor};
  cache_hash(&key, counts, sizeof counts);
  for (int32_t i = 0; i < source->n_headers; i++) {
    cache_hash_text(&key, source->header_names[i]);
    cache_hash_text(&key, source->headers[i]);
  }
  for (int32_t i = 0; i < source->n_expressions; i++) cache_hash_text(&key, source->expressions[i]);
  for (int32_t i = 0; i < source->options->n_preprocessor; i++)
    cache_hash_text(&key, source->options->preprocessor[i]);
  return key;
}

static cache_entry *cache_look(nvrtc_key key) {
  cache_entry *entry = cache_buckets[key.words[0] % CACHE_BUCKETS];
  while (entry && memcmp(&entry->key, &key, sizeof key) != 0) entry = entry->next;
  return entry;
}

static void cache_remember(nvrtc_key key, const nvrtc_text *image, const nvrtc_text *log) {
  cache_entry *entry = calloc(1, sizeof *entry);
  if (!entry) return;
  entry->key = key;
  nvrtc_add_bytes(&entry->image, image->at, image->bytes);
  nvrtc_add_bytes(&entry->log, log->at, log->bytes);
  pthread_mutex_lock(&cache_lock);
  bool known = entry->image.failed || entry->log.failed || cache_look(key);
  if (!known) {
    cache_entry **bucket = &cache_buckets[key.words[0] % CACHE_BUCKETS];
    entry->next = *bucket;
    *bucket = entry;
  }
  pthread_mutex_unlock(&cache_lock);
  if (!known) return;
  nvrtc_text_free(&entry->image);
  nvrtc_text_free(&entry->log);
  free(entry);
}

/* The library is unloaded when the last backend is closed. */
__attribute__((destructor)) static void cache_forget(void) {
  for (int i = 0; i < CACHE_BUCKETS; i++)
    for (cache_entry *entry = cache_buckets[i], *next; entry; entry = next) {
      next = entry->next;
      nvrtc_text_free(&entry->image);
      nvrtc_text_free(&entry->log);
      free(entry);
    }
}

static bool cache_path(nvrtc_key key, char path[PATH_MAX]) {
  const char *folder = getenv("FAKECUDA_CACHE");
  if (!folder || !*folder) return false;
  int n = snprintf(path, PATH_MAX - 32, "%s/%016" PRIx64 "%016" PRIx64 ".image", folder, key.words[0],
                   key.words[1]);
  return n > 0 && n < PATH_MAX - 32;
}

static nvrtc_key cache_content(const char *log, size_t log_bytes, const char *image, size_t image_bytes) {
  nvrtc_key content = {{1, 2}};
  cache_hash(&content, log, log_bytes);
  cache_hash(&content, image, image_bytes);
  return content;
}

static bool cache_read(nvrtc_key key, nvrtc_text *image, nvrtc_text *log) {
  char path[PATH_MAX];
  nvrtc_text file = {0};
  cache_head head;
  bool found = cache_path(key, path) && nvrtc_read_file(path, &file) == 0 && file.bytes >= sizeof head;
  if (found) {
    memcpy(&head, file.at, sizeof head);
    const char *content = file.at + sizeof head;
    size_t bytes = file.bytes - sizeof head;
    found = head.mark == cache_mark && head.log_bytes <= bytes && head.image_bytes == bytes - head.log_bytes;
    nvrtc_key sum =
        found ? cache_content(content, head.log_bytes, content + head.log_bytes, head.image_bytes) : key;
    found = found && memcmp(&sum, &head.content, sizeof sum) == 0;
    if (found) {
      nvrtc_add_bytes(log, content, head.log_bytes);
      nvrtc_add_bytes(image, content + head.log_bytes, head.image_bytes);
    }
  }
  nvrtc_text_free(&file);
  return found;
}

/* A process that stops in the middle leaves a file of another name. */
static void cache_write(nvrtc_key key, const nvrtc_text *image, const nvrtc_text *log) {
  char path[PATH_MAX], begun[PATH_MAX];
  if (!cache_path(key, path)) return;
  snprintf(begun, sizeof begun, "%.*s.%d.%lx", PATH_MAX - 33, path, (int)getpid(),
           (unsigned long)pthread_self());
  cache_head head = {cache_mark, log->bytes, image->bytes,
                     cache_content(log->at, log->bytes, image->at, image->bytes)};
  nvrtc_text file = {0};
  nvrtc_add_bytes(&file, (const char *)&head, sizeof head);
  nvrtc_add_bytes(&file, log->at, log->bytes);
  nvrtc_add_bytes(&file, image->at, image->bytes);
  if (file.failed || nvrtc_write_file(begun, file.at, file.bytes) != 0 || rename(begun, path) != 0)
    unlink(begun);
  nvrtc_text_free(&file);
}

bool nvrtc_cache_find(nvrtc_key key, nvrtc_text *image, nvrtc_text *log) {
  pthread_mutex_lock(&cache_lock);
  const cache_entry *entry = cache_look(key);
  pthread_mutex_unlock(&cache_lock); /* entries are never freed */
  if (entry) {
    nvrtc_add_bytes(image, entry->image.at, entry->image.bytes);
    nvrtc_add_bytes(log, entry->log.at, entry->log.bytes);
    return true;
  }
  if (!cache_read(key, image, log)) return false;
  cache_remember(key, image, log);
  return true;
}

void nvrtc_cache_keep(nvrtc_key key, const nvrtc_text *image, const nvrtc_text *log) {
  cache_remember(key, image, log);
  cache_write(key, image, log);
}
