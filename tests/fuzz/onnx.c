/* onnx: a model becomes a configuration and a file of weights, or an error. */
#include <stdio.h>
#include <unistd.h>

#include "core/onnx/onnx.h"
#include "tests/fuzz/ops.h"

const tn_plugin *tn_static_layers(void);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static fuzz_ops ops;
  const tn_plugin *const plugins[] = {tn_static_layers(), NULL};
  fuzz f;
  char path[64], weights[64];
  int input = fuzz_file(bytes, size, path);
  fuzz_ops_make(&ops, plugins);
  fuzz_open(&f);
  snprintf(weights, sizeof weights, "/dev/shm/fuzz-onnx-%d.safetensors", (int)getpid());
  const tn_onnx_request request = {
      .path = path, .weights_path = weights, .weights_name = "weights.safetensors"};
  tn_onnx_imported made;
  tn_status status = tn_onnx_import(&f.env, ops.registry, ops.table, &request, &made);
  fuzz_judge(&f, status);
  fuzz_expect((status == TN_OK) == (made.text != NULL), "a configuration, or a failure");
  tn_release(&f, made.text);
  unlink(weights);
  fuzz_close(&f);
  fuzz_file_end(input);
  return 0;
}
