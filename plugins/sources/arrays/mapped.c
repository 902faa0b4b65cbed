/* plugins/sources/arrays/mapped.c: files mapped into memory. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugins/sources/arrays/array.h"

/* An empty file cannot be mapped. */
static const uint8_t mapped_nothing[1];

static tn_status mapped_map(const void *handle, const char *path, int fd, mapped_file *file) {
  struct stat info;
  if (fstat(fd, &info) != 0)
    return tn_fail(handle, TN_EIO, NULL, "%s: cannot examine: %s", path, strerror(errno));
  if (info.st_size == 0) return TN_OK;
  void *at = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return tn_fail(handle, TN_EIO, NULL, "%s: cannot map: %s", path, strerror(errno));
  *file = (mapped_file){at, (size_t)info.st_size};
  return TN_OK;
}

tn_status mapped_open(const void *handle, const char *path, mapped_file *file) {
  int fd;
  *file = (mapped_file){mapped_nothing, 0};
  TN_TRY(source_open_file(handle, path, &fd));
  tn_status status = mapped_map(handle, path, fd, file);
  close(fd);
  return status;
}

void mapped_close(mapped_file *file) {
  if (file->count > 0) munmap((void *)(uintptr_t)file->bytes, file->count);
  *file = (mapped_file){mapped_nothing, 0};
}

uint16_t bytes_u16(const uint8_t *at) { return (uint16_t)(at[0] | at[1] << 8); }
uint32_t bytes_u32(const uint8_t *at) { return bytes_u16(at) | (uint32_t)bytes_u16(at + 2) << 16; }
uint64_t bytes_u64(const uint8_t *at) { return bytes_u32(at) | (uint64_t)bytes_u32(at + 4) << 32; }
