/* backends/cuda/modules/ahead.c: see ahead.h. */
#include "backends/cuda/modules/ahead.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct ahead_head {
  char magic[8];
  char key[40];
  int32_t nvcc_version, n;
  tn_cuda_hash sum; /* of the entries */
} ahead_head;

static const char ahead_magic[8] = "tnahead";

static tn_cuda_hash ahead_sum(const void *bytes, size_t n) {
  tn_cuda_hash h = tn_cuda_hash_new();
  tn_cuda_hash_add(&h, bytes, n);
  return h;
}

static bool ahead_path(char path[4096], const char *folder, int32_t arch) {
  int n = snprintf(path, 4096, "%s/tenon-cuda.sm_%d.images", folder, (int)arch);
  return n > 0 && n < 4096;
}

/* ---- reading ---- */

/* Whether an image is within the file. */
static bool ahead_entry_fits(const tn_cuda_ahead_entry *entry, uint64_t file_bytes) {
  return memchr(entry->name, '\0', sizeof entry->name) != NULL && entry->bytes > 0 &&
         entry->at <= file_bytes && entry->bytes <= file_bytes - entry->at;
}

static tn_cuda_ahead_state ahead_read_table(int fd, tn_cuda_ahead *ahead) {
  struct stat info;
  ahead_head head;
  char key[TN_CUDA_KEY];
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || !tn_cuda_read_all(fd, &head, sizeof head) ||
      memcmp(head.magic, ahead_magic, sizeof ahead_magic) != 0 || head.n < 0 || head.n > TN_CUDA_AHEAD_IMAGES)
    return TN_CUDA_AHEAD_DAMAGED;
  tn_cuda_sources_key(ahead->arch, key);
  if (memcmp(head.key, key, sizeof key) != 0) return TN_CUDA_AHEAD_STALE;
  size_t bytes = (size_t)head.n * sizeof *ahead->entries;
  if (!tn_cuda_read_all(fd, ahead->entries, bytes)) return TN_CUDA_AHEAD_DAMAGED;
  tn_cuda_hash sum = ahead_sum(ahead->entries, bytes);
  if (memcmp(&sum, &head.sum, sizeof sum) != 0) return TN_CUDA_AHEAD_DAMAGED;
  ahead->nvcc_version = head.nvcc_version;
  ahead->n = head.n;
  for (int32_t i = 0; i < ahead->n; i++)
    if (!ahead_entry_fits(&ahead->entries[i], (uint64_t)info.st_size)) return TN_CUDA_AHEAD_DAMAGED;
  return TN_CUDA_AHEAD_READY;
}

tn_cuda_ahead_state tn_cuda_ahead_open(const char *folder, int32_t arch, tn_cuda_ahead *ahead) {
  ahead->arch = arch;
  ahead->n = 0;
  if (!ahead_path(ahead->path, folder, arch)) return TN_CUDA_AHEAD_MISSING;
  int fd = open(ahead->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return TN_CUDA_AHEAD_MISSING;
  tn_cuda_ahead_state state = ahead_read_table(fd, ahead);
  close(fd);
  return state;
}

bool tn_cuda_ahead_read(const tn_cuda_ahead *ahead, const char *name, tn_cuda_image *image, bool *damaged) {
  const tn_cuda_ahead_entry *entry = NULL;
  *image = (tn_cuda_image){NULL, 0};
  *damaged = false;
  for (int32_t i = 0; i < ahead->n && entry == NULL; i++)
    if (strcmp(ahead->entries[i].name, name) == 0) entry = &ahead->entries[i];
  if (entry == NULL) return false;
  int fd = open(ahead->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  image->bytes = fd >= 0 ? malloc(entry->bytes) : NULL;
  bool done = image->bytes != NULL && lseek(fd, (off_t)entry->at, SEEK_SET) >= 0 &&
              tn_cuda_read_all(fd, image->bytes, entry->bytes);
  if (fd >= 0) close(fd);
  tn_cuda_hash sum = done ? ahead_sum(image->bytes, entry->bytes) : tn_cuda_hash_new();
  if (done && memcmp(&sum, &entry->sum, sizeof sum) == 0) {
    image->n = entry->bytes;
    return true;
  }
  free(image->bytes);
  image->bytes = NULL;
  *damaged = true;
  return false;
}

/* ---- finding ---- */

static tn_cuda_ahead_state ahead_search(const char *folder, int32_t arch, tn_cuda_ahead *ahead) {
  tn_cuda_ahead_state state = TN_CUDA_AHEAD_MISSING;
  for (int32_t a = arch; a / 10 == arch / 10 && a > 0 && state == TN_CUDA_AHEAD_MISSING; a--)
    state = tn_cuda_ahead_open(folder, a, ahead);
  return state;
}

/* The folder of the shared object that contains this function; "": unknown. */
static void ahead_own_folder(char folder[PATH_MAX]) {
  Dl_info info;
  *folder = '\0';
  if (dladdr((const void *)tn_cuda_ahead_find, &info) == 0 || info.dli_fname == NULL ||
      realpath(info.dli_fname, folder) == NULL)
    *folder = '\0';
  char *end = strrchr(folder, '/');
  if (end != NULL) *end = '\0';
}

/* The files lie beside the plugin. Where the plugin is linked into libtenon, they lie below it: in the folder
 * of plugins, or in the build tree. */
tn_cuda_ahead_state tn_cuda_ahead_find(const char *folder, int32_t arch, tn_cuda_ahead *ahead) {
  static const char *const below[] = {"", "/tenon/plugins", "/backends/cuda"};
  char own[PATH_MAX], path[PATH_MAX + 32];
  if (*folder != '\0') return ahead_search(folder, arch, ahead);
  ahead_own_folder(own);
  tn_cuda_ahead_state state = TN_CUDA_AHEAD_MISSING;
  for (int i = 0; i < 3 && *own != '\0' && state == TN_CUDA_AHEAD_MISSING; i++) {
    snprintf(path, sizeof path, "%s%s", own, below[i]);
    state = ahead_search(path, arch, ahead);
  }
  return state;
}

/* ---- writing ---- */

static bool ahead_write_file(int fd, tn_cuda_ahead *ahead, const tn_cuda_image *images) {
  size_t bytes = (size_t)ahead->n * sizeof *ahead->entries;
  ahead_head head = {.nvcc_version = ahead->nvcc_version, .n = ahead->n};
  uint64_t at = sizeof head + bytes;
  memcpy(head.magic, ahead_magic, sizeof ahead_magic);
  tn_cuda_sources_key(ahead->arch, head.key);
  for (int32_t i = 0; i < ahead->n; i++) {
    ahead->entries[i].at = at;
    ahead->entries[i].bytes = images[i].n;
    ahead->entries[i].sum = ahead_sum(images[i].bytes, images[i].n);
    at += images[i].n;
  }
  head.sum = ahead_sum(ahead->entries, bytes);
  bool done = tn_cuda_write_all(fd, &head, sizeof head) && tn_cuda_write_all(fd, ahead->entries, bytes);
  for (int32_t i = 0; i < ahead->n && done; i++) done = tn_cuda_write_all(fd, images[i].bytes, images[i].n);
  return done;
}

bool tn_cuda_ahead_write(const char *path, tn_cuda_ahead *ahead, const tn_cuda_image *images) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  bool done = fd >= 0 && ahead_write_file(fd, ahead, images);
  int reason = errno;
  if (fd >= 0 && close(fd) != 0 && done) done = false, reason = errno;
  if (!done && fd >= 0) (void)unlink(path);
  errno = reason;
  return done;
}
