/* tests/fakecuda/cudnn/operations.h: the finalization of tensors, of what describes operations, and of
 * operations. */
#pragma once

#include "tests/fakecuda/cudnn/body.h"

cudnnStatus_t fakednn_finalize_tensor(fakednn_body *body);
cudnnStatus_t fakednn_finalize_convolution(fakednn_body *body);
cudnnStatus_t fakednn_finalize_pointwise(fakednn_body *body);
/* Shapes that do not fit are refused. */
cudnnStatus_t fakednn_finalize_operation(const fakednn_body *body);
