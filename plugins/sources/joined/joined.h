/* plugins/sources/joined/joined.h: what the sources that join others have in common: their parts, the fields
 * of these, and samples that are read by a part. */
#pragma once

#include "plugins/sources/sources.h"

enum { JOINED_FIELDS = 64, JOINED_NAME = 64, JOINED_DROPPED = -1 };

/* The options of both sources. */
typedef struct joined_options {
  const char *sources, *inputs, *targets;
  tn_floats weights; /* of concat */
} joined_options;

/* A part, and where its fields go. */
typedef struct joined_part {
  char name[JOINED_NAME];
  const tn_source *source;
  void *self; /* NULL: not open */
  tn_description description;
  int32_t to[JOINED_FIELDS]; /* by its field: the field of the whole; JOINED_DROPPED */
  /* Of concat. By field of the whole: the number that each of the part's classes has there; NULL: its own. */
  int32_t *classes[JOINED_FIELDS];
  int64_t first, count; /* the samples of the whole that are this part's */
  int32_t is_weighted;  /* whether the part gives its samples weights */
  double weight;        /* of concat: the factor of the weights of its samples */
} joined_part;

typedef struct joined {
  tn_env env; /* that of open, for messages */
  joined_part *parts;
  int32_t n_parts, reads_files;
  int32_t is_weighted; /* whether samples have weights */
  int32_t n_fields;
  tn_field fields[JOINED_FIELDS];
  char names[JOINED_FIELDS][JOINED_NAME];
  const char **class_names[JOINED_FIELDS]; /* that were joined; NULL: the part's */
  int32_t n_class_names[JOINED_FIELDS];
  char *learnt; /* NULL: nothing, or not asked for yet */
} joined;

/* ---- joined.c: opening and closing ---- */

/* Makes a joined source without open parts from the names of `sources`. */
tn_status joined_new(tn_env *env, const joined_options *o, joined **out);
void joined_close(tn_env *env, void *source);
/* The end of open: gives the source away, or closes it after a failure, which it returns. */
tn_status joined_take(tn_status status, joined *j, void **source);
/* Opens a part and describes it. TN_EUNAVAILABLE: it has no such split. */
tn_status joined_open_part(joined *j, int32_t part, int32_t split, uint64_t seed);
/* Opens files by one part, which is the only one from then on. TN_EUNSUPPORTED: it reads none. */
tn_status joined_open_files(joined *j, int32_t part, const char *const *paths, int32_t n);

/* ---- joined_learnt.c ---- */

/* The part's text in the learnt state of the whole, or NULL. The caller frees it (free). */
tn_status joined_learnt_of(const joined *j, const char *part, char **text);
/* tn_source.learnt: {"PART": {...}}. */
tn_status joined_learnt(tn_env *env, void *source, const char **text);

/* ---- joined_fields.c: the lists `inputs` and `targets` ---- */

/* Finds the fields of the whole by the options' lists, or by the names of the parts' fields. With `alike`
 * every part has all of them (concat), otherwise one part has each (zip). */
tn_status joined_find_fields(joined *j, const joined_options *o, int32_t alike);
/* Whether a list names fields of this part, or of no part. */
int32_t joined_list_names(const char *list, const char *part);

/* ---- joined_sample.c ---- */

/* Reads sample `index` of a part as a part of sample `s`, with this random key. */
tn_status joined_read_part(tn_sample *s, const joined_part *part, int64_t index, uint64_t key);
/* The class of a sample of a part, by the part's class_of, as a class of field `field`. */
tn_status joined_class_of(tn_env *env, const joined *j, int32_t field, const joined_part *part, int64_t index,
                          int64_t *number);
/* The first target with classes; -1: none. */
int32_t joined_class_field(const joined *j);
/* "cats: sample 7", or the name that the part gives. */
tn_status joined_name_of(tn_env *env, const joined_part *part, int64_t index, char *text, size_t size);

/* ---- joined_weights.c ---- */

/* Sets joined_part.weight of the parts, so that each is drawn in proportion to its number of samples, or to
 * `weights` where there are some. Of concat. */
tn_status joined_set_weights(joined *j, const tn_floats *weights);
/* The weight that a part itself gives a sample, 1 where it gives none. */
tn_status joined_weight_of(tn_env *env, const joined_part *part, int64_t index, double *weight);

/* ---- joined_classes.c: of concat ---- */

/* Joins the classes of a field over all parts, by their names. */
tn_status joined_join_classes(joined *j, int32_t field);
