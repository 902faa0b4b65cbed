/* The model language: the [model] of a configuration becomes a valid graph, or an error. */
#include "core/model/model.h"
#include "tests/fuzz/ops.h"

const tn_plugin *tn_static_layers(void);
const tn_plugin *tn_static_losses(void);

static tn_status build(fuzz *f, const fuzz_ops *ops, tn_ini *ini) {
  tn_model model;
  tn_model_request request = {.ini = ini,
                              .registry = ops->registry,
                              .ops = ops->table,
                              .batch = 2,
                              .length = 4,
                              .seed = 1,
                              .training = true,
                              .measured = true};
  tn_status status = tn_model_build(&f->env, &request, &model);
  if (status != TN_OK) return status;
  tn_status verified = tn_graph_verify(model.graph);
  fuzz_expect(verified == TN_OK || verified == TN_ENOMEM, tn_error_text(f));
  tn_model_free(&model);
  return TN_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static fuzz_ops ops;
  const tn_plugin *const plugins[] = {tn_static_layers(), tn_static_losses(), NULL};
  fuzz f;
  tn_ini ini;
  char *text = fuzz_text(bytes, size);
  fuzz_ops_make(&ops, plugins);
  fuzz_open(&f);
  tn_status status = tn_ini_parse(&f, text, "fuzz.ini", "/nowhere", &ini);
  if (status == TN_OK) status = build(&f, &ops, &ini);
  fuzz_judge(&f, status);
  tn_ini_free(&ini);
  fuzz_close(&f);
  free(text);
  return 0;
}
