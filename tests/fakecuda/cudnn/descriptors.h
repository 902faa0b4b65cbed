/* tests/fakecuda/cudnn/descriptors.h: the descriptors of users, which refer to bodies. */
#pragma once

#include "tests/fakecuda/cudnn/body.h"

/* The body of a live descriptor, kept for the caller; refuses NULL and descriptors that have been destroyed.
 */
cudnnStatus_t fakednn_body_of(cudnnBackendDescriptor_t descriptor, fakednn_body **body);
/* The same, of a finalized descriptor of a kind. */
cudnnStatus_t fakednn_finalized_of(cudnnBackendDescriptor_t descriptor, int32_t type, const char *what,
                                   fakednn_body **body);
