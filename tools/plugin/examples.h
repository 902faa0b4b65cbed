/* tools/plugin/examples.h: the plugins of docs/plugins/examples, in the program. */
#ifndef TENON_TOOLS_PLUGIN_EXAMPLES_H
#define TENON_TOOLS_PLUGIN_EXAMPLES_H

typedef struct plugin_example {
  const char *file, *text;
} plugin_example;

/* Ended by a NULL. */
extern const plugin_example plugin_examples[];

#endif
