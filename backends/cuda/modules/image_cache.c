/* backends/cuda/modules/image_cache.c: see image_cache.h. */
#include "backends/cuda/modules/image_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/cuda/modules/device_text.h"

enum { PATH_BYTES = 4096, LARGEST_IMAGE = 1 << 28 };

typedef struct image_head {
  char magic[8];
  uint64_t bytes, sum[2];
} image_head;

static const char image_magic[8] = "tncuda1";

/* ---- keys ---- */

static void hash_add_text(tn_cuda_hash *h, const char *text) { tn_cuda_hash_add(h, text, strlen(text) + 1); }

static void hash_print(const tn_cuda_hash *h, char key[TN_CUDA_KEY]) {
  snprintf(key, TN_CUDA_KEY, "%016llx%016llx", (unsigned long long)h->v[0], (unsigned long long)h->v[1]);
}

void tn_cuda_image_key(const tn_cuda_compiler *compiler, const char *text, char key[TN_CUDA_KEY]) {
  tn_cuda_hash h = tn_cuda_hash_new();
  tn_cuda_hash_add(&h, &compiler->headers, sizeof compiler->headers);
  hash_add_text(&h, compiler->arch);
  tn_cuda_hash_add(&h, &compiler->libraries->nvrtc_version, sizeof compiler->libraries->nvrtc_version);
  hash_add_text(&h, compiler->libraries->path[TN_CUDA_LIBRARY_NVRTC]);
  hash_add_text(&h, text);
  hash_print(&h, key);
}

void tn_cuda_sources_key(int32_t arch, char key[TN_CUDA_KEY]) {
  tn_cuda_hash h = tn_cuda_hash_new();
  tn_cuda_hash_add(&h, &arch, sizeof arch);
  for (const char *const *flag = tn_cuda_flags; *flag != NULL; flag++) hash_add_text(&h, *flag);
  for (const tn_cuda_text *t = tn_cuda_texts; t->path != NULL; t++) {
    hash_add_text(&h, t->path);
    hash_add_text(&h, t->text);
  }
  hash_print(&h, key);
}

/* ---- reading ---- */

static bool image_head_fits(const image_head *head, const struct stat *info) {
  return memcmp(head->magic, image_magic, sizeof image_magic) == 0 && head->bytes > 0 &&
         head->bytes <= LARGEST_IMAGE && (uint64_t)info->st_size == sizeof *head + head->bytes;
}

static bool image_read_file(int fd, tn_cuda_image *image) {
  struct stat info;
  image_head head;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || !tn_cuda_read_all(fd, &head, sizeof head) ||
      !image_head_fits(&head, &info))
    return false;
  image->n = head.bytes;
  image->bytes = malloc(image->n);
  tn_cuda_hash h = tn_cuda_hash_new();
  bool done = image->bytes != NULL && tn_cuda_read_all(fd, image->bytes, image->n);
  if (done) tn_cuda_hash_add(&h, image->bytes, image->n);
  if (done && memcmp(h.v, head.sum, sizeof h.v) == 0) return true;
  free(image->bytes);
  *image = (tn_cuda_image){NULL, 0};
  return false;
}

static bool image_path(char path[PATH_BYTES], const char *folder, const char *key, const char *suffix) {
  int n = snprintf(path, PATH_BYTES, "%s/%s.cubin%s", folder, key, suffix);
  return n > 0 && n < PATH_BYTES;
}

bool tn_cuda_image_read(const char *folder, const char *key, tn_cuda_image *image, bool *corrupt) {
  char path[PATH_BYTES];
  *image = (tn_cuda_image){NULL, 0};
  *corrupt = false;
  if (*folder == '\0' || !image_path(path, folder, key, "")) return false;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  bool done = image_read_file(fd, image);
  close(fd);
  *corrupt = !done;
  return done;
}

/* ---- writing ---- */

static bool image_write_file(int fd, const tn_cuda_image *image) {
  image_head head = {.bytes = image->n};
  tn_cuda_hash h = tn_cuda_hash_new();
  tn_cuda_hash_add(&h, image->bytes, image->n);
  memcpy(head.magic, image_magic, sizeof image_magic);
  memcpy(head.sum, h.v, sizeof h.v);
  return tn_cuda_write_all(fd, &head, sizeof head) && tn_cuda_write_all(fd, image->bytes, image->n);
}

bool tn_cuda_image_write(const char *folder, const char *key, const tn_cuda_image *image,
                         char error[TN_CUDA_ERROR_TEXT]) {
  char path[PATH_BYTES], temporary[PATH_BYTES];
  if (*folder == '\0') return true;
  if (!image_path(path, folder, key, "") || !image_path(temporary, folder, key, ".XXXXXX")) return false;
  int fd = mkostemp(temporary, O_CLOEXEC);
  bool done = fd >= 0 && image_write_file(fd, image);
  int reason = errno;
  if (fd >= 0 && close(fd) != 0 && done) done = false, reason = errno;
  if (done && rename(temporary, path) != 0) done = false, reason = errno;
  if (done) return true;
  if (fd >= 0) (void)unlink(temporary);
  snprintf(error, TN_CUDA_ERROR_TEXT, "%.1024s: %s", path, strerror(reason));
  return false;
}
