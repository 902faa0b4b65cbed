/* A plugin with a kernel that declines each region after writing it as CUDA C, in each layout that the
 * backend cuda offers, to the folder in PROBE_FOLDER; files are named by their text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/pointwise/printed.h"

static uint64_t probe_hash(const char *text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (; *text; text++) hash = (hash ^ (uint8_t)*text) * 0x100000001b3u;
  return hash;
}

static void probe_write(const char *folder, const char *text) {
  char path[512];
  snprintf(path, sizeof path, "%s/%016llx.cu", folder, (unsigned long long)probe_hash(text));
  FILE *f = fopen(path, "w");
  if (f == NULL || fputs(text, f) < 0 || fclose(f) != 0) abort();
}

static tn_status probe_print(const void *handle, const tn_match *m, const tn_layout *layout,
                             const char *folder) {
  tn_cuda_printed *printed = tn_new(handle, sizeof *printed);
  if (printed == NULL) abort();
  tn_status status = tn_cuda_print(handle, m, layout, printed);
  if (status == TN_OK && folder != NULL) probe_write(folder, printed->text);
  tn_cuda_drop_printed(handle, printed);
  tn_delete(handle, printed);
  return status;
}

static tn_status probe_query(tn_query *q) {
  tn_variant v = {
      .struct_size = sizeof v, .name = "probe", .cost_s = 1e-9, .deterministic = 1, .capturable = 1};
  tn_status status = probe_print(q, q->match, NULL, NULL);
  if (status == TN_OK) tn_add_variant(q, &v);
  return status;
}

static tn_status probe_prepare(tn_prepare *p, void **made) {
  static const tn_layout channels_last = {.set = 1, .order = {0, 2, 3, 1}};
  const char *folder = getenv("PROBE_FOLDER");
  *made = NULL;
  tn_status status = probe_print(p, p->match, NULL, folder);
  if (status == TN_OK && p->match->out[0]->rank == 4 && !tn_cuda_takes_any_layout(p->match))
    status = probe_print(p, p->match, &channels_last, folder);
  return status;
}

static tn_status probe_launch(tn_launch *l) { return tn_fail(l, TN_EINTERNAL, NULL, "a probe"); }

/* Regions ask kernels in the order of their names. */
static const tn_kernel probe = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "a_probe", "prints regions"),
                                .family = "cpu",
                                .pattern = "pointwise+",
                                .query = probe_query,
                                .prepare = probe_prepare,
                                .launch = probe_launch};

TN_PLUGIN(probe, "1.0", "MIT", &probe.item)
