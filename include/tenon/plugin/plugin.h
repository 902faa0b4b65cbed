/* tenon/plugin/plugin.h: plugins and their descriptors.
 *
 * A plugin is a shared object with one exported function that returns a constant descriptor: name, version,
 * licence and items. TN_PLUGIN defines it:
 *
 *     TN_PLUGIN(acme, "1.2", "MIT", &acme_swish.item, &acme_swish_cpu.item)
 *
 * Life cycle: the host loads the file (any thread, once per context), copies every item into a zero-filled
 * struct of the host's own size, and calls the items' callbacks as their headers say. `tenon inspect` reads
 * descriptors and calls nothing. The host never unloads a file. A plugin has no mutable globals and never
 * prints, aborts, exits or throws.
 *
 * Arguments: a callback that can fail takes its handle first, a tn_env * or a struct that begins with a
 * tn_env; then the object; then inputs; then outputs. Copies name the destination before the source, like
 * memcpy. Three pure functions cannot fail and take no handle: tn_op.cost, tn_precision.decide,
 * tn_schedule.factor.
 *
 * Verbs: open and close for objects that stand for something outside (backend, device, source, observer,
 * communicator), new and delete for objects in memory, begin and end for scopes, prepare and release for
 * kernels.
 *
 * Versions: the major number is part of the symbol's name. A minor version appends members to growing
 * structs:
 *   - items begin with a tn_item, whose struct_size is that of the whole item;
 *   - handles (tn_query, tn_prepare, tn_launch, tn_infer, tn_sample, tn_transform_call) have struct_size
 *     right after their tn_env; the host sets it;
 *   - other structs that cross by pointer begin with struct_size; the side that makes the struct sets it,
 *     and of structs that a callback fills (tn_device_properties, tn_description, tn_cost) the host does;
 *   - rows of options have the stride tn_item.option_stride, fields the stride tn_field.struct_size;
 *   - attribute structs (attributes.h) are made by the host; a kernel reads the members that it knows.
 *
 * A reader asks TN_HAS(pointer, member) (base.h) for a member of a later minor version. The host is at least
 * as new as its plugins, so a plugin needs no check for members of the headers that it was built against. A
 * plugin that copies a host's struct (tn_launch, tn_api) sets struct_size of the copy to the size copied.
 *
 * Frozen structs never change, since they lie in arrays or in other structs or are passed by value: tn_env,
 * tn_type, tn_block, tn_layout, tn_ints, tn_floats, tn_item, tn_match_node, tn_operand_layout, tn_view,
 * tn_metric, tn_scratch, tn_build, tn_philox, tn_rng, tn_storage, tn_storage_axis.
 *
 * core/plugin/abi_asserts.c, written by tools/pin-abi, pins all sizes and offsets. */
#ifndef TENON_PLUGIN_PLUGIN_H
#define TENON_PLUGIN_PLUGIN_H

#include "tenon/api.h"
#include "tenon/option.h"

TN_BEGIN_C

/* Kinds of items. The numbers are part of the ABI and are never reused. */
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

/* The head of every item. Texts are constants of the plugin. */
typedef struct tn_item {
  uint32_t struct_size; /* of the whole item that it heads */
  uint32_t kind;
  const char *name, *doc;
  const tn_option *options; /* ends with TN_OPT_END; NULL: no options */
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
  uint64_t requires;     /* feature bits; a host that lacks one refuses the plugin */
  const char *name, *version, *licence;
  const char *build;           /* "ptr64 le asan=0": the host refuses a plugin that differs in a word */
  const tn_item *const *items; /* ends with NULL */
} tn_plugin;

#if defined(__SANITIZE_ADDRESS__)
#define TN_BUILD_ASAN "1"
#else
#define TN_BUILD_ASAN "0"
#endif
#define TN_BUILD_TEXT "ptr64 le asan=" TN_BUILD_ASAN

/* The exported symbol; its number is TN_ABI_MAJOR. With TN_STATIC the plugin is linked into libtenon. */
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
