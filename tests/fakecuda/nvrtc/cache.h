/* tests/fakecuda/nvrtc/cache.h: images that have been built, in this process and in the folder
 * FAKECUDA_CACHE. */
#pragma once

#include "tests/fakecuda/nvrtc/build.h"

typedef struct nvrtc_key {
  uint64_t words[2];
} nvrtc_key;

nvrtc_key nvrtc_cache_key(const nvrtc_source *source);
/* Of the text that each source begins with, the compiler and the standard. */
nvrtc_key nvrtc_cache_key_of_host(const char *standard);
/* True: appended the image and the log. Files with wrong content count as absent. Any thread. */
bool nvrtc_cache_find(nvrtc_key key, nvrtc_text *image, nvrtc_text *log);
void nvrtc_cache_keep(nvrtc_key key, const nvrtc_text *image, const nvrtc_text *log);
