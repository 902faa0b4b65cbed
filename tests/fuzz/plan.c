/* The plan that process 0 sends, and that a resumed run reads: choices that are taken can be looked up. */
#include "core/records/runs/plan_file.h"
#include "core/run/run.h"
#include "tests/fuzz/fuzz.h"

static void use_choices(const tn_recorded_choices *c) {
  static const tn_item item = {.name = "matmul"};
  const tn_entry entry = {.item = &item, .plugin = "cpu"};
  for (int32_t i = 0; i < c->n_kernels; i++)
    fuzz_expect(c->kernels[i].kernel != NULL && c->kernels[i].plugin != NULL, "a kernel without a name");
  for (int32_t i = 0; i < c->n_choices; i++) {
    const tn_recorded_choice *one = &c->choices[i], *found = tn_recorded_find(c, one->program, one->key);
    fuzz_expect(found != NULL && found->key == one->key && found->kernel != NULL, "a choice is not found");
    fuzz_expect(i == 0 || c->choices[i - 1].key <= one->key, "choices are not sorted");
  }
  for (int32_t i = 0; i < c->n_states; i++)
    fuzz_expect(tn_recorded_layout(c, c->states[i].path) != NULL, "a layout is not found");
  for (int32_t i = 0; i < c->n_buckets; i++) fuzz_expect(c->buckets[i] != NULL, "a bucket without a name");
  tn_recorded_has_kernel(c, &entry);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  fuzz f;
  tn_run run = {0};
  char *text = fuzz_text(bytes, size);
  fuzz_open(&f);
  tn_error_record_init(&run.env, &run.record, &f.env);
  run.arena = tn_arena_new(&run.env);
  tn_status status = tn_plan_file_take(&run, text, strlen(text));
  fuzz_expect(status == TN_OK || tn_error_text(&run.env)[0] != '\0' || status == TN_ENOMEM,
              "a failure without a message");
  fuzz_expect(status != TN_EINTERNAL, tn_error_text(&run.env));
  fuzz_expect((status == TN_OK) == (run.recorded_choices != NULL), "choices without a plan");
  if (status == TN_OK) use_choices(run.recorded_choices);
  tn_arena_free(&run.arena);
  fuzz_close(&f);
  free(text);
  return 0;
}
