/* backends/onednn/options.c: the options of the backend as kernels read them. */
#include "backends/onednn/onednn.h"

tn_onednn_options tn_onednn_options_of(const void *backend) {
  const tn_onednn *b = backend;
  return b != NULL ? b->options : (tn_onednn_options){0};
}

int32_t tn_onednn_isa_of(const void *backend) {
  int32_t best = tn_onednn_isa(), asked = tn_onednn_options_of(backend).isa - 1;
  return asked < 0 || asked >= TN_ISA_AVX512 || asked > best ? best : asked;
}

int32_t tn_onednn_code_isa(const void *backend) {
  return tn_onednn_options_of(backend).code == TN_CODE_AUTO ? tn_onednn_isa_of(backend) : TN_ISA_PLAIN;
}
