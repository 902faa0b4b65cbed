/* tenon/option.h: options and attributes. An item describes a C struct of its own with a table of tn_option
 * rows. The host fills the struct, typed and checked, before it calls the item, and callbacks read its
 * fields. The same table serves validation, `tenon inspect` and completion.
 *
 *     struct leaky { double slope; };
 *     static const tn_option leaky_options[] = {
 *         TN_OPT(struct leaky, slope, TN_OPT_FLOAT, "0.01", ">= 0", "slope below zero"),
 *         TN_OPT_END};
 *
 * Schema order is positional order: `leaky_relu(0.2)` sets slope. */
#ifndef TENON_OPTION_H
#define TENON_OPTION_H

#include "tenon/base.h"

TN_BEGIN_C

/* Lists: n values at v, which live as long as the struct that holds the list. */
typedef struct tn_ints {
  int64_t n;
  const int64_t *v;
} tn_ints;
typedef struct tn_floats {
  int64_t n;
  const double *v;
} tn_floats;

/* Transforms with their options (plugin/transform.h), likewise. */
typedef struct tn_transform_part {
  const struct tn_transform *transform;
  const void *options;
} tn_transform_part;
typedef struct tn_transforms {
  int64_t n;
  const tn_transform_part *v;
} tn_transforms;

/* Schedules with their options (plugin/schedule.h), likewise. */
typedef struct tn_schedule_part {
  const struct tn_schedule *schedule;
  const void *options;
} tn_schedule_part;
typedef struct tn_schedules {
  int64_t n;
  const tn_schedule_part *v;
} tn_schedules;

/* Types of options, and the C type of the field that each fills. */
enum {
  TN_OPT_NONE = 0,
  TN_OPT_FLAG = 1,  /* int32_t: yes/no, true/false, on/off, 1/0 */
  TN_OPT_INT = 2,   /* int64_t */
  TN_OPT_FLOAT = 3, /* double */
  TN_OPT_TEXT = 4,  /* const char * */
  /* const char *, made absolute against the file that names it; a word of the range stays as it is */
  TN_OPT_PATH = 5,
  TN_OPT_ENUM = 6,      /* int32_t: index into range, "a|b|c" */
  TN_OPT_INTS = 7,      /* tn_ints; a single number where a list is expected is a list of one */
  TN_OPT_FLOATS = 8,    /* tn_floats, likewise */
  TN_OPT_SIZE = 9,      /* int64_t bytes: 64MiB, 2GB, 512 */
  TN_OPT_DURATION = 10, /* double seconds: 90s, 5min, 2h, 0.5 */
  TN_OPT_DTYPE = 11,    /* int32_t: f32 and so on; "any" is TN_ANY */
  TN_OPT_INIT = 12,     /* const char *: an initializer, "normal(0, 0.02)"; see tn_build_param in build.h */
  /* const char *: folders that code is loaded from, separated by ':', made absolute against the file that
   * names them. The host refuses those that other users can change, as it does with plugins, and leaves out
   * those that the configuration of a run folder names, unless the user trusts it. */
  TN_OPT_CODE = 13,
  /* tn_transforms: [random_flip, color_jitter(0.4)]. Of transforms only: those that it applies. */
  TN_OPT_TRANSFORMS = 14,
  /* tn_schedules: [linear(0.1, 1), cosine]. Of schedules only: those that it puts together. */
  TN_OPT_SCHEDULES = 15
};

enum {
  TN_OPT_SCHEDULED = 1, /* optimizers: may differ by parameter group and by step; read it with
                           tn_build_option_value; the field holds the first group's value */
  /* May have a schedule, [schedule.OPTION] of an optimizer, [schedule.ITEM.OPTION] of others. Optimizers and
   * layers: tn_build_option_value gives the value where there is one, else 0: then the field holds it, and a
   * formula knows it while compiling. Transforms that run on the host: the host writes the value into the
   * field between two epochs, so no result of infer may depend on it. */
  TN_OPT_SCHEDULABLE = 2
};

/* One option. Strings are constants of the plugin. */
typedef struct tn_option {
  const char *name;
  uint32_t type, flags;
  uint32_t offset, bytes;   /* of the field in the options struct */
  const char *default_text; /* the default, in INI syntax; NULL: the option is required */
  /* "> 0", ">= 1", "[0, 1]", "[0, 1)", "a|b|c" for enums, texts and paths; NULL: any. Infinity is outside
   * where a side has no bound; a scheduled option must fit f32. */
  const char *range;
  const char *doc; /* one line */
} tn_option;

#define TN_OPT_FIELD_BYTES(S, field) ((uint32_t)sizeof(((S *)0)->field))
#define TN_OPT(S, field, TYPE, default_text, range, doc)                                                     \
  { #field, TYPE, 0, (uint32_t)offsetof(S, field), TN_OPT_FIELD_BYTES(S, field), default_text, range, doc }
#define TN_OPT_WITH(S, field, TYPE, flags, default_text, range, doc)                                         \
  {                                                                                                          \
#field, TYPE, flags, (uint32_t)offsetof(S, field), TN_OPT_FIELD_BYTES(S, field), default_text, range,    \
        doc                                                                                                  \
  }
#define TN_OPT_END                                                                                           \
  { NULL, TN_OPT_NONE, 0, 0, 0, NULL, NULL, NULL }

TN_END_C
#endif
