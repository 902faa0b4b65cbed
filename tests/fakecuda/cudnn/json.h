/* tests/fakecuda/cudnn/json.h: plans as text: JSON with the program in hexadecimal digits, for a file on
 * disk. */
#pragma once

#include "tests/fakecuda/cudnn/engines.h"

/* The caller frees the text; NULL: no memory. */
char *fakednn_plan_to_json(const fakednn_plan *plan);
/* Fills in program, engine, arch and workspace. The text needs no zero at its end. */
cudnnStatus_t fakednn_plan_from_json(const char *text, int64_t bytes, fakednn_plan *plan);
