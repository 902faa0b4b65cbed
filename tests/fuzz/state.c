/* state.json of a checkpoint. */
#include "core/train/checkpoints/checkpoint_files.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  fuzz f;
  char path[64];
  tn_state_record record;
  tn_run run;
  int input = fuzz_file(bytes, size, path);
  fuzz_open(&f);
  memset(&run, 0, sizeof run);
  run.env = f.env;
  run.arena = tn_arena_new(&run.env);
  tn_status status = tn_state_record_read(&run, path, &record);
  fuzz_judge(&f, status);
  if (status == TN_OK)
    fuzz_expect(record.progress.step >= 0 && record.progress.sums.n >= 0, "a number below zero");
  tn_arena_free(&run.arena);
  fuzz_close(&f);
  fuzz_file_end(input);
  return 0;
}
