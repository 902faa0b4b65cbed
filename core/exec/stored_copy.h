/* core/exec/stored_copy.h: copies of elements between storage in a layout and row-major memory, on the host.
 */
#pragma once

#include "core/compile/layout/layout.h"

/* store: into the storage, whose padding is left unchanged. An unset layout is row-major. */
void tn_stored_copy(const tn_type *type, const tn_layout *layout, void *stored, void *plain, bool store);
