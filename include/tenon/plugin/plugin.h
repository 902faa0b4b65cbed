/* tenon/plugin/plugin.h: what makes a shared object a plugin.
 *
 * A plugin is one shared object with one exported function that returns a const descriptor: name,
 * version, licence, and items. TN_PLUGIN writes it:
 *
 *     TN_PLUGIN(acme, "1.2", "MIT", &acme_swish.item, &acme_swish_cpu.item)
 *
 * Everything in the descriptor is constant and can be read without calling the plugin; that is what
 * `tenon inspect` does. Life cycle: the host opens the file (any thread, once per context), copies
 * every descriptor into its own zero-filled structs of its own size, and from then on calls the
 * items' callbacks as their headers say. The file is never closed again. A plugin keeps no mutable
 * globals, never prints, aborts, exits, or throws.
 *
 * Versions: the major number is in the symbol's name; a minor version only appends members. Every
 * struct starts with its size. The host negotiates, so a plugin contains no version checks. */
#ifndef TENON_PLUGIN_PLUGIN_H
#define TENON_PLUGIN_PLUGIN_H

#include "tenon/api.h"
#include "tenon/option.h"

TN_BEGIN_C

/* Kinds of items; part of the ABI, never reused. */
enum {
  TN_BACKEND = 1,
  TN_OP = 2,
  TN_KERNEL = 3,
  TN_LAYER = 4,
  TN_OPTIMIZER = 5,
  TN_SCHEDULE = 6,
  TN_SOURCE = 7,
  TN_TRANSFORM = 8,
  TN_PRECISION = 9,
  TN_COMMUNICATOR = 10,
  TN_OBSERVER = 11,
  TN_KINDS = 12 /* one more than the last */
};

/* The head of every item. */
typedef struct tn_item {
  uint32_t struct_size; /* of the whole item that it heads */
  uint32_t kind;
  const char *name, *doc;
  const tn_option *options; /* ended by TN_OPT_END; NULL: none */
  uint32_t option_stride;   /* sizeof(tn_option) where the plugin was built */
  uint32_t options_bytes;   /* of the struct that options fill; 0: none */
} tn_item;

/* The head for an item of type T whose options fill struct S, or that has none. */
#define TN_ITEM(T, kind, name, doc, S, options)                                                              \
  { (uint32_t)sizeof(T), kind, name, doc, options, (uint32_t)sizeof(tn_option), (uint32_t)sizeof(S) }
#define TN_ITEM_PLAIN(T, kind, name, doc)                                                                    \
  { (uint32_t)sizeof(T), kind, name, doc, NULL, (uint32_t)sizeof(tn_option), 0 }

typedef struct tn_plugin {
  uint32_t struct_size;
  uint16_t major, minor; /* of the headers it was built against */
  uint64_t requires;     /* feature bits the host must know; unknown ones refuse */
  const char *name, *version, *licence;
  const char *build;           /* "ptr64 le asan=0": compared field by field */
  const tn_item *const *items; /* NULL-ended */
} tn_plugin;

#if defined(__SANITIZE_ADDRESS__)
#define TN_BUILD_ASAN "1"
#else
#define TN_BUILD_ASAN "0"
#endif
#define TN_BUILD_TEXT "ptr64 le asan=" TN_BUILD_ASAN

/* The exported symbol; the number is TN_ABI_MAJOR. */
#define TN_PLUGIN_SYMBOL "tn_plugin_v0"
#if defined(TN_STATIC)
#define TN_PLUGIN_ENTRY(id) const tn_plugin *tn_static_##id(void)
#elif defined(__cplusplus)
#define TN_PLUGIN_ENTRY(id) extern "C" TN_EXPORT const tn_plugin *tn_plugin_v0(void)
#else
#define TN_PLUGIN_ENTRY(id) TN_EXPORT const tn_plugin *tn_plugin_v0(void)
#endif

#define TN_PLUGIN(id, version, licence, ...)                                                                 \
  TN_PLUGIN_ENTRY(id);                                                                                       \
  TN_PLUGIN_ENTRY(id) {                                                                                      \
    static const tn_item *const items[] = {__VA_ARGS__, NULL};                                               \
    static const tn_plugin plugin = {(uint32_t)sizeof(tn_plugin),                                            \
                                     TN_ABI_MAJOR,                                                           \
                                     TN_ABI_MINOR,                                                           \
                                     0,                                                                      \
                                     #id,                                                                    \
                                     version,                                                                \
                                     licence,                                                                \
                                     TN_BUILD_TEXT,                                                          \
                                     items};                                                                 \
    return &plugin;                                                                                          \
  }

TN_END_C
#endif
