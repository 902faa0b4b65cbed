/* tools/plugin/examples.h: the plugins of docs/plugins/examples, in the program. */
#pragma once

typedef struct plugin_example {
  const char *file, *text;
} plugin_example;

/* Ended by a NULL. */
extern const plugin_example plugin_examples[];
