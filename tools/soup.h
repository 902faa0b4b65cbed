/* tools/soup.h: `tenon checkpoint average PATH... -o FILE.safetensors`. */
#pragma once

#include "tools/cli/cli.h"

/* The words behind "average" are paths of weights. Returns the exit code. */
int soup_command(tn_context *context, const cli_args *args);
