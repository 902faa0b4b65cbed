/* state.json of a checkpoint. */
#include "core/records/checkpoints/checkpoint_files.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  fuzz f;
  char path[64];
  tn_state_record record;
  int input = fuzz_file(bytes, size, path);
  fuzz_open(&f);
  tn_arena arena = tn_arena_new(&f.env);
  tn_status status = tn_state_record_read(&arena, path, &record);
  fuzz_judge(&f, status);
  if (status == TN_OK)
    fuzz_expect(record.progress.step >= 0 && record.progress.sums.n >= 0, "a number below zero");
  tn_arena_free(&arena);
  fuzz_close(&f);
  fuzz_file_end(input);
  return 0;
}
