/* backends/cuda/modules/sums.h: checksums, and whole reads and writes, for files with compiled code. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Two hashes FNV-1a of 64 bits with different starts (Fowler, Noll, Vo). */
typedef struct tn_cuda_hash {
  uint64_t v[2];
} tn_cuda_hash;

tn_cuda_hash tn_cuda_hash_new(void);
void tn_cuda_hash_add(tn_cuda_hash *h, const void *bytes, size_t n);

/* false: an error (errno says which), or the file ends before. */
bool tn_cuda_read_all(int fd, void *to, size_t bytes);
bool tn_cuda_write_all(int fd, const void *from, size_t bytes);
