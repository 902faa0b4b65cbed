/* tests/unit/backends/cuda/rig.h: a handle for the backend's functions, without the core. */
#pragma once

#include <stdbool.h>

#include "backends/cuda/driver/libraries.h"

/* Keeps the text of the last failure or line of the log. */
extern char cuda_rig_text[4096];
tn_env cuda_rig_env(void);

/* Opens NVRTC where there is one; false: the reason is in cuda_rig_text. */
bool cuda_rig_find_nvrtc(tn_cuda_libraries *libraries);
