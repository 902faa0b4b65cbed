/* tests/fakecuda/cudnn/finalize.h: what each kind of descriptor does when it is finalized. */
#pragma once

#include "tests/fakecuda/cudnn/body.h"

/* Checks a body whose required attributes are there, and makes what depends on them. */
cudnnStatus_t fakednn_finalize(fakednn_body *body);
