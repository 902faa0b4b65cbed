/* tests/fakecuda/driver/find.h: how another double, such as that of cuBLASLt, finds the functions of the
 * double of libcuda.so.1. */
#pragma once

#include <stdbool.h>

/* A function of the driver's double, "fakecuda_call"; NULL: the driver's double is not loaded. It stays
 * loaded while the library that has called this one is. Any thread. */
__attribute__((visibility("hidden"))) void *fakecuda_find(const char *name);
/* The same for a library that the driver's double may be loaded anew beside: it is not kept. */
__attribute__((visibility("hidden"))) void *fakecuda_find_unkept(const char *name);
/* Whether a libcuda.so.1 is loaded, or functions of one are in the program. */
__attribute__((visibility("hidden"))) bool fakecuda_is_loaded(void);
