/* pack_images OUT ARCH NVCC_VERSION IMAGE...: a program of the build: writes the images that nvcc made,
 * "softmax.sm_90.cubin", to one file (ahead.h). It has the texts of device/, and thus their key. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/cuda/modules/ahead.h"

static tn_cuda_ahead packed;
static tn_cuda_image images[TN_CUDA_AHEAD_IMAGES];

static bool pack_read(const char *path, tn_cuda_image *image) {
  struct stat info;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &info) != 0) return false;
  image->n = (size_t)info.st_size;
  image->bytes = malloc(image->n + 1);
  bool done = image->bytes != NULL && tn_cuda_read_all(fd, image->bytes, image->n);
  close(fd);
  return done;
}

/* "softmax.cu" from ".../softmax.sm_90.cubin". */
static void pack_name(const char *path, char name[TN_CUDA_AHEAD_NAME]) {
  const char *base = strrchr(path, '/');
  base = base != NULL ? base + 1 : path;
  snprintf(name, TN_CUDA_AHEAD_NAME, "%.*s.cu", (int)strcspn(base, "."), base);
}

/* 13000 from "13.0.88" or "13.0". */
static int32_t pack_version(const char *text) {
  int major = 0, minor = 0;
  return sscanf(text, "%d.%d", &major, &minor) >= 1 ? major * 1000 + minor * 10 : 0;
}

int main(int argc, char **argv) {
  if (argc < 4 || argc - 4 > TN_CUDA_AHEAD_IMAGES)
    return fprintf(stderr, "%s: wrong arguments\n", argv[0]), 2;
  packed.arch = atoi(argv[2]);
  packed.nvcc_version = pack_version(argv[3]);
  packed.n = argc - 4;
  for (int32_t i = 0; i < packed.n; i++) {
    pack_name(argv[4 + i], packed.entries[i].name);
    if (!pack_read(argv[4 + i], &images[i]))
      return fprintf(stderr, "%s: %s\n", argv[4 + i], strerror(errno)), 1;
  }
  bool done = tn_cuda_ahead_write(argv[1], &packed, images);
  if (!done) fprintf(stderr, "%s: %s\n", argv[1], strerror(errno));
  for (int32_t i = 0; i < packed.n; i++) free(images[i].bytes);
  return !done;
}
