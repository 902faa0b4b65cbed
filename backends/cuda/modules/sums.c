/* backends/cuda/modules/sums.c: see sums.h. */
#include "backends/cuda/modules/sums.h"

#include <errno.h>
#include <unistd.h>

tn_cuda_hash tn_cuda_hash_new(void) { return (tn_cuda_hash){{0xcbf29ce484222325u, 0x84222325cbf29ce4u}}; }

void tn_cuda_hash_add(tn_cuda_hash *h, const void *bytes, size_t n) {
  const unsigned char *at = bytes;
  for (size_t i = 0; i < n; i++) {
    h->v[0] = (h->v[0] ^ at[i]) * 0x100000001b3u;
    h->v[1] = (h->v[1] ^ (at[i] + 0x9eu)) * 0x100000001b3u;
  }
}

bool tn_cuda_read_all(int fd, void *to, size_t bytes) {
  char *at = to;
  while (bytes > 0) {
    ssize_t n = read(fd, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= (size_t)n;
  }
  return true;
}

bool tn_cuda_write_all(int fd, const void *from, size_t bytes) {
  const char *at = from;
  while (bytes > 0) {
    ssize_t n = write(fd, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    at += n;
    bytes -= (size_t)n;
  }
  return true;
}
