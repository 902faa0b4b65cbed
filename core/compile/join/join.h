/* core/compile/join/join.h: pass `join`: regions join the launches of the statements that read them. */
#pragma once

#include "core/compile/select/cover.h"

tn_status tn_pass_join(tn_cover *cover);
