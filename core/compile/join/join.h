/* core/compile/join/join.h: pass `join`: regions join the launches of the statements that read them. */
#ifndef TN_CORE_COMPILE_JOIN_JOIN_H
#define TN_CORE_COMPILE_JOIN_JOIN_H

#include "core/compile/select/cover.h"

tn_status tn_pass_join(tn_cover *cover);

#endif
