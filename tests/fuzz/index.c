/* The index of a plugin folder: a damaged index never leads to a failure. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/plugin/index.h"
#include "tests/fuzz/fuzz.h"

static void write_index(const char *folder, const uint8_t *bytes, size_t size) {
  char path[128];
  snprintf(path, sizeof path, "%s/" TN_INDEX_NAME, folder);
  FILE *file = fopen(path, "wb");
  fuzz_expect(file != NULL && fwrite(bytes, 1, size, file) == size && fclose(file) == 0, path);
  chmod(path, 0644);
}

static void remove_index(const char *folder) {
  char path[128];
  snprintf(path, sizeof path, "%s/" TN_INDEX_NAME, folder);
  unlink(path);
  rmdir(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  char folder[] = "/tmp/tenon-fuzz-XXXXXX";
  fuzz f;
  fuzz_open(&f);
  fuzz_expect(mkdtemp(folder) != NULL, folder);
  write_index(folder, bytes, size);
  tn_arena arena = tn_arena_new(&f);
  tn_plugin_files files = {0};
  tn_plugin_file one = {.path = "/p/a.so", .relative = "a.so", .changed_ns = 1000000000, .bytes = 10};
  tn_status status = tn_vec_push(&f, &files, one);
  if (status == TN_OK) status = tn_index_read(&f, &arena, folder, &files, 0);
  fuzz_judge(&f, status);
  fuzz_expect(status == TN_OK || status == TN_ENOMEM, "an index that fails");
  for (int32_t i = 0; files.n > 0 && i < files.v[0].n_items; i++)
    fuzz_expect(files.v[0].items[i].name != NULL && files.v[0].items[i].kind < 64, "an item without a name");
  tn_vec_free(&f, &files);
  tn_arena_free(&arena);
  fuzz_close(&f);
  remove_index(folder);
  return 0;
}
