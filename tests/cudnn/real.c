/* tests/cudnn/real.c: see real.h. */
#include "tests/cudnn/real.h"

#include <dlfcn.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

tn_cudnn_library *real_library(void) {
  static tn_cudnn_library library;
  tn_cudnn_library *l = &library;
  if (l->version == 0 && *l->absent == '\0') tn_cudnn_library_open("", l);
  if (*l->absent == '\0') return l;
  printf("skipped: %s\n", l->absent);
  return NULL;
}

bool real_driver(const char *folder) {
  char path[512];
  snprintf(path, sizeof path, "%s/libcuda.so.1", folder);
  void *driver = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return driver != NULL && dlsym(driver, "cuLibraryLoadData") != NULL;
}

static double device_number(const json_t *json, const char *key) {
  return json_number_value(json_object_get(json, key));
}

/* The texts live as long as the process. */
tn_device_properties real_device(const char *name) {
  char path[512];
  tn_device_properties p = {.struct_size = sizeof p, .threads = 1};
  snprintf(path, sizeof path, DEVICES "/%s.json", name);
  json_t *json = json_load_file(path, 0, NULL);
  const json_t *rates = json_object_get(json, "matrix_flops_per_s");
  if (json == NULL) abort();
  p.bytes_per_s = device_number(json, "bytes_per_s");
  p.vector_flops_per_s = device_number(json, "vector_flops_per_s");
  p.matrix_flops_per_s[TN_F16] = device_number(rates, "f16");
  p.matrix_flops_per_s[TN_BF16] = device_number(rates, "bf16");
  p.launch_s = device_number(json, "launch_s");
  static char details[4][4096];
  static int n;
  char *text = json_dumps(json_object_get(json, "details"), 0);
  snprintf(details[n % 4], sizeof details[0], "%s", text);
  p.details = details[n++ % 4];
  free(text);
  json_decref(json);
  return p;
}

tn_type real_image(int32_t dtype, int64_t n, int64_t c, int64_t h, int64_t w) {
  return (tn_type){dtype, 4, {n, c, h, w}};
}
