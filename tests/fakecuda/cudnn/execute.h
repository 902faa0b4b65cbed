/* tests/fakecuda/cudnn/execute.h: variant packs as they finalize. */
#pragma once

#include "tests/fakecuda/cudnn/body.h"

cudnnStatus_t fakednn_finalize_pack(const fakednn_body *body);
