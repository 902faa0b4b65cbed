/* core/plugin/negotiate.c: negotiation. A plugin's descriptors, built against some version of the headers,
 * are copied into structs of the host's size; members that the plugin lacks are zero. So no other file of the
 * host depends on a plugin's version. A descriptor that cannot be adapted is refused with the field, the
 * value found, the value wanted, and a remedy.
 *
 * Texts, and the structs that callbacks point to, stay in the plugin, which is never unloaded. */
#include "core/plugin/registry.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/text/text.h"
#include "core/plugin/default_callbacks.h"
#include "core/plugin/kinds.h"

/* Feature bits of tn_plugin.requires that this host knows; version 0 defines no bit. */
static const uint64_t known_features = 0;

/* Limits that find a table without its end. */
enum {
  MOST_ITEMS = 4096,
  MOST_OPTIONS = 256,
  LONGEST_NAME = 63,
  MOST_STRIDE = 4096,
  MOST_OPTIONS_BYTES = 1 << 20
};

static const char rebuild[] = "rebuild the plugin against the headers of this Tenon";

typedef struct negotiation {
  const void *handle;
  tn_arena *arena;
  const tn_plugin *from;
  const char *file;
  uint16_t major, minor; /* of the host */
} negotiation;

/* ---- the plugin as a whole ---------------------------------------------------------------------- */

/* Adds "field: found X, wanted Y" to the list of differences. */
static void negotiate_differ(tn_text *list, const char *field, const char *found, const char *wanted) {
  tn_text_addf(list, "%s%s: found %s, wanted %s", list->n > 0 ? "; " : "", field, found, wanted);
}

static void negotiate_differ_number(tn_text *list, const char *field, unsigned found, const char *relation,
                                    unsigned wanted) {
  tn_text_addf(list, "%s%s: found %u, wanted %s%u", list->n > 0 ? "; " : "", field, found, relation, wanted);
}

/* While the major version is 0, minor versions may change anything, so both numbers must be equal. From 1 on,
 * a plugin of an older minor version is accepted. */
static void compare_version(const negotiation *n, tn_text *list) {
  unsigned minor = n->from->minor;
  if (n->from->major != n->major) negotiate_differ_number(list, "major", n->from->major, "", n->major);
  if (n->from->major != n->major) return;
  if (n->major == 0 && minor != n->minor) negotiate_differ_number(list, "minor", minor, "", n->minor);
  if (n->major > 0 && minor > n->minor) negotiate_differ_number(list, "minor", minor, "at most ", n->minor);
}

/* The next word of a build text, or an empty one at its end. */
static size_t negotiate_next_word(const char **text) {
  *text += strspn(*text, " ");
  return strcspn(*text, " ");
}

/* "build asan" for the word "asan=0"; the first two words have no '='. */
static void negotiate_field_name(char *name, size_t capacity, int index, const char *word, size_t n) {
  static const char *const bare[] = {"build pointers", "build byte order"};
  const char *equals = memchr(word, '=', n);
  if (equals != NULL && (size_t)(equals - word) + 7 < capacity) {
    memcpy(name, "build ", 6);
    memcpy(name + 6, word, (size_t)(equals - word));
    name[6 + (equals - word)] = '\0';
  } else {
    const char *text = index < 2 ? bare[index] : "build";
    memcpy(name, text, strlen(text) + 1);
  }
}

static void negotiate_add_word(tn_text *list, const char *before, const char *word, size_t n) {
  tn_text_add(list, before);
  tn_text_addn(list, n > 0 ? word : "nothing", n > 0 ? n : 7);
}

/* "ptr64 le asan=0", word by word: the words and their order are fixed within a major version. */
static void compare_build(const char *found, const char *wanted, tn_text *list) {
  for (int i = 0;; i++) {
    size_t nf = negotiate_next_word(&found), nw = negotiate_next_word(&wanted);
    if (nf == 0 && nw == 0) return;
    if (nf != nw || memcmp(found, wanted, nf) != 0) {
      char name[32];
      negotiate_field_name(name, sizeof(name), i, nw > 0 ? wanted : found, nw > 0 ? nw : nf);
      tn_text_addf(list, "%s%s: found ", list->n > 0 ? "; " : "", name);
      negotiate_add_word(list, "", found, nf);
      negotiate_add_word(list, ", wanted ", wanted, nw);
    }
    found += nf;
    wanted += nw;
  }
}

static void compare_features(const negotiation *n, tn_text *list) {
  uint64_t unknown = n->from->requires & ~known_features;
  if (unknown == 0) return;
  tn_text_addf(list,
               "%srequires: found the feature bits 0x%" PRIx64 ", wanted none but 0x%" PRIx64
               " (what this host can do)",
               list->n > 0 ? "; " : "", unknown, known_features);
}

/* Members after the version numbers; read only where the version fits. */
static void compare_rest(const negotiation *n, tn_text *list) {
  const tn_plugin *p = n->from;
  size_t required = offsetof(tn_plugin, items) + sizeof(p->items);
  if (p->struct_size < required) {
    negotiate_differ_number(list, "struct_size", p->struct_size, "at least ", (unsigned)required);
    return;
  }
  compare_features(n, list);
  if (p->name == NULL || p->name[0] == '\0') negotiate_differ(list, "name", "nothing", "a name");
  if (p->version == NULL) negotiate_differ(list, "version", "nothing", "a text such as \"1.0\"");
  if (p->licence == NULL) negotiate_differ(list, "licence", "nothing", "a text such as \"MIT\"");
  if (p->items == NULL) negotiate_differ(list, "items", "nothing", "a list of items ended by NULL");
  if (p->build == NULL)
    negotiate_differ(list, "build", "nothing", TN_BUILD_TEXT);
  else
    compare_build(p->build, TN_BUILD_TEXT, list);
}

/* The version numbers are compared first, so that a plugin of another major version gets that message. */
static tn_status negotiate_check_plugin(const negotiation *n) {
  const tn_plugin *p = n->from;
  if (p == NULL)
    return tn_failf(n->handle, TN_EABI, "%s: its entry returned no descriptor; write it with TN_PLUGIN(...)",
                    n->file);
  tn_text list = tn_text_new(n->handle);
  size_t head = offsetof(tn_plugin, minor) + sizeof(p->minor);
  if (p->struct_size < head)
    negotiate_differ_number(&list, "struct_size", p->struct_size, "at least ", (unsigned)head);
  else
    compare_version(n, &list);
  if (list.n == 0) compare_rest(n, &list);
  tn_status status = TN_OK;
  if (list.failed)
    status = TN_ENOMEM;
  else if (list.n > 0)
    status = tn_failf(n->handle, TN_EABI, "%s: does not fit this host: %s; %s (interface %u.%u)", n->file,
                      list.v, rebuild, n->major, n->minor);
  tn_text_free(&list);
  return status;
}

/* ---- one item ----------------------------------------------------------------------------------- */

static tn_status negotiate_no_memory(const negotiation *n) {
  return tn_failf(n->handle, TN_ENOMEM, "out of memory while the descriptors of %s were copied", n->file);
}

static const char *negotiate_shown_name(const tn_item *item) {
  return item->name != NULL ? item->name : "(no name)";
}

static tn_status negotiate_refuse_item(const negotiation *n, const tn_item *item, const char *field,
                                       const char *found, const char *wanted) {
  return tn_failf(n->handle, TN_EABI, "%s: %s \"%s\": %s: found %s, wanted %s; correct its descriptor",
                  n->file, tn_kind_name(item->kind), negotiate_shown_name(item), field, found, wanted);
}

/* isalnum would ask the application's locale. */
static bool is_name_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         (c != '\0' && strchr("_.+-", c) != NULL);
}

/* Names occur in INI files, graph text and the index: each is one word. */
static bool negotiate_is_name(const char *name) {
  size_t length = strnlen(name, LONGEST_NAME + 1);
  for (size_t i = 0; i < length; i++)
    if (!is_name_letter(name[i])) return false;
  return length > 0 && length <= LONGEST_NAME;
}

static tn_status negotiate_check_name(const negotiation *n, const tn_item *item, const char *field,
                                      const char *name) {
  if (name != NULL && negotiate_is_name(name)) return TN_OK;
  char found[96] = "nothing";
  if (name != NULL && name[0] != '\0') snprintf(found, sizeof(found), "\"%.80s\"", name);
  return negotiate_refuse_item(n, item, field, found,
                               "letters, digits, '_', '.', '+' or '-', at most 63 of them");
}

/* Rows of an options table up to its end, or -1 when there is none. */
static int negotiate_count_options(const tn_item *item) {
  for (int i = 0; i < MOST_OPTIONS; i++) {
    const tn_option *row = (const tn_option *)((const char *)item->options + (size_t)i * item->option_stride);
    if (row->name == NULL) return i;
  }
  return -1;
}

/* The struct is allocated for each node that uses the item. */
static tn_status negotiate_check_options_bytes(const negotiation *n, const tn_item *item) {
  char found[32], wanted[32];
  if (item->options_bytes <= MOST_OPTIONS_BYTES) return TN_OK;
  snprintf(found, sizeof(found), "%u", item->options_bytes);
  snprintf(wanted, sizeof(wanted), "at most %d", MOST_OPTIONS_BYTES);
  return negotiate_refuse_item(n, item, "options_bytes", found, wanted);
}

/* The plugin's rows may be shorter or longer than the host's; option_stride is their distance. */
static tn_status negotiate_copy_options(const negotiation *n, tn_item *item) {
  if (item->options == NULL) return TN_OK;
  size_t required = offsetof(tn_option, doc) + sizeof(item->options->doc), stride = item->option_stride;
  char found[32], wanted[48];
  snprintf(found, sizeof(found), "%zu", stride);
  snprintf(wanted, sizeof(wanted), "%zu to %d, a multiple of %zu", required, MOST_STRIDE, sizeof(void *));
  if (stride < required || stride > MOST_STRIDE || stride % sizeof(void *) != 0)
    return negotiate_refuse_item(n, item, "option_stride", found, wanted);
  int count = negotiate_count_options(item);
  if (count < 0)
    return negotiate_refuse_item(n, item, "options", "256 rows and no end",
                                 "a table that ends with TN_OPT_END");
  tn_option *rows = tn_arena_alloc(n->arena, (size_t)(count + 1) * sizeof(tn_option));
  if (rows == NULL) return negotiate_no_memory(n);
  size_t bytes = stride < sizeof(tn_option) ? stride : sizeof(tn_option);
  for (int i = 0; i < count; i++) memcpy(&rows[i], (const char *)item->options + (size_t)i * stride, bytes);
  item->options = rows;
  item->option_stride = (uint32_t)sizeof(tn_option);
  return TN_OK;
}

static tn_status negotiate_check_item(const negotiation *n, const tn_item *item) {
  TN_TRY(negotiate_check_name(n, item, "name", item->name));
  const char *missing = tn_item_missing(item);
  if (missing != NULL)
    return negotiate_refuse_item(n, item, missing, "NULL", "a value, for this kind requires it");
  const tn_kind *kind = tn_kind_find(item->kind);
  const char *wrong = kind->check != NULL ? kind->check(item) : NULL;
  if (wrong != NULL)
    return tn_failf(n->handle, TN_EABI, "%s: %s \"%s\": %s; correct its descriptor", n->file, kind->name,
                    item->name, wrong);
  if (item->kind == TN_KERNEL) return negotiate_check_name(n, item, "family", tn_item_family(item));
  return TN_OK;
}

static tn_status negotiate_check_size(const negotiation *n, const tn_item *item, size_t required) {
  if (item->struct_size >= required) return TN_OK;
  char found[32], wanted[32];
  snprintf(found, sizeof(found), "%u", item->struct_size);
  snprintf(wanted, sizeof(wanted), "at least %zu", required);
  bool has_head = item->struct_size >= sizeof(tn_item);
  if (has_head) return negotiate_refuse_item(n, item, "struct_size", found, wanted);
  return tn_failf(n->handle, TN_EABI, "%s: an item: struct_size: found %s, wanted %s; correct its descriptor",
                  n->file, found, wanted);
}

/* *out is NULL for an item of an unknown kind, which a newer plugin may have. */
static tn_status negotiate_copy_item(const negotiation *n, const tn_item *from, const tn_item **out) {
  *out = NULL;
  TN_TRY(negotiate_check_size(n, from, offsetof(tn_item, options_bytes) + sizeof(from->options_bytes)));
  const tn_kind *kind = tn_kind_find(from->kind);
  if (kind == NULL) {
    tn_logf(n->handle, TN_LOG_WARN, "%s: item \"%s\" is of kind %u, which this host does not know; left out",
            n->file, negotiate_shown_name(from), from->kind);
    return TN_OK;
  }
  TN_TRY(negotiate_check_size(n, from, kind->required));
  tn_item *item = tn_arena_alloc(n->arena, kind->bytes);
  if (item == NULL) return negotiate_no_memory(n);
  memcpy(item, from, from->struct_size < kind->bytes ? from->struct_size : kind->bytes);
  item->struct_size = (uint32_t)kind->bytes;
  if (item->doc == NULL) item->doc = "";
  TN_TRY(negotiate_check_item(n, item));
  if (item->kind == TN_BACKEND) tn_backend_fill_callbacks((tn_backend *)item);
  TN_TRY(negotiate_check_options_bytes(n, item));
  TN_TRY(negotiate_copy_options(n, item));
  *out = item;
  return TN_OK;
}

/* ---- all items ---------------------------------------------------------------------------------- */

static tn_status negotiate_check_unique(const negotiation *n, const tn_item *const *items, int count) {
  const tn_item *last = items[count - 1];
  for (int i = 0; i < count - 1; i++)
    if (items[i]->kind == last->kind && tn_text_equal(items[i]->name, last->name) &&
        tn_text_equal(tn_item_family(items[i]), tn_item_family(last)))
      return tn_failf(n->handle, TN_EABI, "%s: %s \"%s\" is there twice; rename one of the two", n->file,
                      tn_kind_name(last->kind), last->name);
  return TN_OK;
}

static tn_status negotiate_copy_items(const negotiation *n, const tn_item *const **out) {
  int count = 0, kept = 0;
  while (count < MOST_ITEMS && n->from->items[count] != NULL) count++;
  if (count == MOST_ITEMS)
    return tn_failf(n->handle, TN_EABI,
                    "%s: items: found %d and no end, wanted a list ended by NULL; write it "
                    "with TN_PLUGIN(...)",
                    n->file, count);
  const tn_item **items = tn_arena_alloc(n->arena, (size_t)(count + 1) * sizeof(tn_item *));
  if (items == NULL) return negotiate_no_memory(n);
  for (int i = 0; i < count; i++) {
    TN_TRY(negotiate_copy_item(n, n->from->items[i], &items[kept]));
    if (items[kept] == NULL) continue;
    TN_TRY(negotiate_check_unique(n, items, ++kept));
  }
  *out = items;
  return TN_OK;
}

tn_status tn_negotiate_plugin(const void *handle, tn_arena *arena, const tn_plugin *plugin,
                              uint16_t host_major, uint16_t host_minor, const char *file,
                              const tn_plugin **out) {
  negotiation n = {handle,     arena,     plugin, file[0] != '\0' ? file : "a plugin that is linked in",
                   host_major, host_minor};
  *out = NULL;
  TN_TRY(negotiate_check_plugin(&n));
  tn_plugin *copy = tn_arena_alloc(arena, sizeof(tn_plugin));
  if (copy == NULL) return negotiate_no_memory(&n);
  memcpy(copy, plugin, plugin->struct_size < sizeof(tn_plugin) ? plugin->struct_size : sizeof(tn_plugin));
  copy->struct_size = (uint32_t)sizeof(tn_plugin);
  TN_TRY(negotiate_copy_items(&n, &copy->items));
  *out = copy;
  return TN_OK;
}
