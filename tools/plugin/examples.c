/* tools/plugin/examples.c: see examples.h. */
#include "tools/plugin/examples.h"

#include <stddef.h>

const plugin_example plugin_examples[] = {
#include "plugin_examples.inc"
    {NULL, NULL}};
