/* tools/plugin/kinds.h: the kinds of plugins that `tenon new-plugin` begins. */
#pragma once

#include <stdbool.h>

/* In the texts, @NAME@ stands for the plugin's name. */
typedef struct plugin_kind {
  const char *name;
  const char *item;    /* the kind of the item, as `tenon inspect` prints it */
  const char *example; /* of docs/plugins/examples; it is the name that is replaced */
  const char *also;    /* another name in it that is replaced; NULL: none */
  const char *page;    /* of docs/plugins */
  const char *data;    /* lines of test.ini */
  const char *layers;
  const char *loss;
  const char *sections; /* what uses the plugin, where the lines above do not */
  const char
      *conformance; /* arguments of `tenon conformance`, separated by blanks; NULL: the kind has no cases */
} plugin_kind;

/* Ended by a name that is NULL. */
extern const plugin_kind plugin_kinds[];

/* NULL: there is no kind of this name. */
const plugin_kind *plugin_kind_find(const char *name);
