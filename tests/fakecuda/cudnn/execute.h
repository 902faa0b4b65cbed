/* tests/fakecuda/cudnn/execute.h: variant packs as they finalize. */
#ifndef TN_TESTS_FAKECUDA_CUDNN_EXECUTE_H
#define TN_TESTS_FAKECUDA_CUDNN_EXECUTE_H

#include "tests/fakecuda/cudnn/body.h"

cudnnStatus_t fakednn_finalize_pack(const fakednn_body *body);

#endif
