/* plugins/sources/shards/shard_index.c: see shard_index.h. One pass reads the header of every member, and
 * passes over the rest. */
#include "plugins/sources/shards/shard_index.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugins/sources/shards/shard_name.h"

/* No picture with an allowed number of pixels is larger. */
static const uint64_t SHARD_LARGEST = (uint64_t)1 << 30;
enum { INDEX_STOP_EVERY = 1024 };

/* ---- growing ---- */

/* A larger block with the first `used` bytes of the old one, which is freed. */
static void *index_grow(const tn_env *env, void *block, size_t used, size_t size) {
  void *larger = tn_new(env, size);
  if (larger == NULL) return NULL;
  if (used > 0) memcpy(larger, block, used);
  tn_delete(env, block);
  return larger;
}

static tn_status index_make_room(shard_index *x) {
  if (x->count < x->room) return TN_OK;
  size_t n = (size_t)x->count, room = 2 * n + 256, fields = (size_t)x->fields->n;
  shard_sample *samples = index_grow(x->env, x->samples, n * sizeof *samples, room * sizeof *samples);
  if (samples == NULL) return TN_ENOMEM;
  x->samples = samples;
  shard_member *members =
      index_grow(x->env, x->members, n * fields * sizeof *members, room * fields * sizeof *members);
  if (members == NULL) return TN_ENOMEM;
  x->members = members;
  x->room = (int64_t)room;
  return TN_OK;
}

static tn_status index_keep_name(shard_index *x, const char *name, size_t n, size_t *start) {
  if (x->used + n + 1 > x->size) {
    size_t size = 2 * (x->used + n) + 4096;
    char *larger = index_grow(x->env, x->names, x->used, size);
    if (larger == NULL) return TN_ENOMEM;
    x->names = larger;
    x->size = size;
  }
  *start = x->used;
  memcpy(x->names + x->used, name, n);
  x->names[x->used + n] = '\0';
  x->used += n + 1;
  return TN_OK;
}

static tn_status index_begin_sample(shard_index *x, int32_t file, const char *name, size_t n) {
  TN_TRY(index_make_room(x));
  shard_sample *s = &x->samples[x->count];
  *s = (shard_sample){.file = file, .class = -1};
  TN_TRY(index_keep_name(x, name, n, &s->name));
  for (int32_t i = 0; i < x->fields->n; i++)
    x->members[x->count * x->fields->n + i] = (shard_member){SHARD_LACKS, 0};
  x->count++;
  return TN_OK;
}

/* A part of the file that cannot be read takes the place of its samples, whose number is not known. */
static tn_status index_add_fault(shard_index *x, int32_t file, const char *fault) {
  if (x->n_faults == x->faults_room) {
    int32_t room = 2 * x->faults_room + 4;
    void *larger = index_grow(x->env, x->faults, (size_t)x->n_faults * TAR_FAULT, (size_t)room * TAR_FAULT);
    if (larger == NULL) return TN_ENOMEM;
    x->faults = larger;
    x->faults_room = room;
  }
  TN_TRY(index_begin_sample(x, file, "", 0));
  snprintf(x->faults[x->n_faults], TAR_FAULT, "%s", fault);
  x->samples[x->count - 1].fault = ++x->n_faults;
  tn_env_log(x->env, TN_LOG_WARN, "%s: %s; its samples from there on are missing", x->paths.v[file], fault);
  return TN_OK;
}

/* ---- files ---- */

typedef struct index_file {
  tar_input input;
  const tn_env *env;
  const char *path;
  int fd;
  int64_t at, size;
} index_file;

static tn_status index_fail_read(const void *handle, const char *path) {
  return tn_fail(handle, TN_EIO, NULL, "%s: cannot read: %s", path, strerror(errno));
}

/* Fewer bytes at the end of the file. */
static tn_status index_read_at(const void *handle, const char *path, int fd, int64_t at, void *to, size_t n,
                               size_t *got) {
  *got = 0;
  while (*got < n) {
    ssize_t more = pread(fd, (char *)to + *got, n - *got, at + (int64_t)*got);
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) return index_fail_read(handle, path);
    if (more == 0) break;
    *got += (size_t)more;
  }
  return TN_OK;
}

static tn_status index_input_read(tar_input *in, void *to, size_t n, size_t *got) {
  index_file *f = (index_file *)in;
  TN_TRY(index_read_at(f->env, f->path, f->fd, f->at, to, n, got));
  f->at += (int64_t)*got;
  return TN_OK;
}

static tn_status index_input_skip(tar_input *in, int64_t n, int64_t *got) {
  index_file *f = (index_file *)in;
  int64_t left = f->size - f->at;
  *got = n < left ? n : left;
  f->at += *got;
  return TN_OK;
}

/* ---- members ---- */

/* Classes are read now, for [data] balance and the number of classes. One that is damaged is named when the
 * sample is read. */
static tn_status index_take_class(shard_index *x, const index_file *f, int32_t i, int64_t at, uint64_t size) {
  enum { LONGEST = 65536 };
  int64_t number;
  size_t got;
  if (size > LONGEST) return TN_OK;
  char *bytes = tn_new(x->env, (size_t)size + 1);
  if (bytes == NULL) return TN_ENOMEM;
  tn_status status = index_read_at(x->env, f->path, f->fd, at, bytes, (size_t)size, &got);
  const shard_bytes member = {f->path, bytes, (size_t)size};
  if (status == TN_OK && got == size && shard_field_peek_class(&x->fields->v[i], &member, &number)) {
    if (number > x->most_class[i]) x->most_class[i] = number;
    if (i == shard_fields_first_class(x->fields)) x->samples[x->count - 1].class = (int32_t)number;
  }
  tn_delete(x->env, bytes);
  return status;
}

static tn_status index_take_member(shard_index *x, const index_file *f, const tar *t, const char *ending) {
  shard_member *members = &x->members[(x->count - 1) * x->fields->n];
  for (int32_t i = 0; i < x->fields->n; i++) {
    if (!shard_field_takes(&x->fields->v[i], ending)) continue;
    members[i].at = members[i].at == SHARD_LACKS ? f->at : SHARD_TWICE;
    members[i].size = (uint64_t)t->size;
    if (x->fields->v[i].kind == SHARD_CLASS) TN_TRY(index_take_class(x, f, i, f->at, members[i].size));
  }
  return TN_OK;
}

static int32_t index_lacks(const shard_index *x, int64_t sample) {
  int32_t n = 0;
  for (int32_t i = 0; i < x->fields->n; i++) n += x->members[sample * x->fields->n + i].at == SHARD_LACKS;
  return n;
}

/* Ends the sample that began last. A file of notes, which has no field, is left out. */
static void index_end_sample(shard_index *x, int64_t first) {
  if (x->count == first || x->samples[x->count - 1].fault != 0) return;
  if (index_lacks(x, x->count - 1) < x->fields->n) return;
  x->used = x->samples[x->count - 1].name;
  x->count--;
}

static tn_status index_note_other(shard_index *x, const tar *t) {
  if (t->type != '5' && x->others++ == 0) snprintf(x->other, sizeof x->other, "%.200s", t->name);
  return TN_OK;
}

/* A member begins a sample if its name has another stem than the one before. */
static tn_status index_add_member(shard_index *x, const index_file *f, const tar *t, int32_t file,
                                  int64_t first) {
  if (!tar_is_plain_file(t)) return index_note_other(x, t);
  size_t n = shard_name_stem(t->name);
  if (n == 0) return TN_OK;
  const char *last = x->count > first ? x->names + x->samples[x->count - 1].name : "";
  if (strncmp(last, t->name, n) != 0 || last[n] != '\0') {
    index_end_sample(x, first);
    TN_TRY(index_begin_sample(x, file, t->name, n));
  }
  return index_take_member(x, f, t, t->name + n + 1);
}

/* Behind the last member, with what ended the archive. */
static tn_status index_end_file(shard_index *x, const tar *t, int32_t file, int64_t first, tn_status status) {
  int32_t is_cut = tar_is_plain_file(t) && t->at < t->behind; /* inside its last member */
  if (status == TN_EINVAL && x->count > first && (is_cut || index_lacks(x, x->count - 1) > 0))
    x->used = x->samples[--x->count].name; /* it is a part of the damage */
  index_end_sample(x, first);
  if (status == TN_EINVAL) return index_add_fault(x, file, t->fault);
  return status == TN_EOF ? TN_OK : status;
}

static tn_status index_scan_members(shard_index *x, index_file *f, int32_t file) {
  int64_t first = x->count, n = 0;
  tar *t = tn_new(x->env, sizeof *t);
  tn_status status = t != NULL ? TN_OK : TN_ENOMEM;
  if (t != NULL) tar_begin(t, x->env, &f->input, 0);
  while (status == TN_OK && (status = tar_next(t)) == TN_OK) {
    status = index_add_member(x, f, t, file, first);
    if (status == TN_OK && ++n % INDEX_STOP_EVERY == 0 && tn_env_stopping(x->env))
      status = tn_fail(x->env, TN_ESTOPPED, NULL, "stopped while %s was scanned", f->path);
  }
  if (t != NULL) status = index_end_file(x, t, file, first, status);
  tn_delete(x->env, t);
  return status;
}

static tn_status index_scan_file(shard_index *x, int32_t file) {
  index_file f = {{index_input_read, index_input_skip}, x->env, x->paths.v[file], -1, 0, 0};
  TN_TRY(source_open_file(x->env, f.path, &f.fd));
  f.size = lseek(f.fd, 0, SEEK_END);
  tn_status status = f.size < 0 ? index_fail_read(x->env, f.path) : index_scan_members(x, &f, file);
  close(f.fd);
  return status;
}

static void index_warn_others(const shard_index *x, const char *pattern) {
  if (x->others > 0)
    tn_env_log(x->env, TN_LOG_WARN,
               "%s: %lld members are links, sparse files or devices and are skipped, such as %s", pattern,
               (long long)x->others, x->other);
}

tn_status shard_index_scan(const tn_env *env, const char *option, const char *const *patterns, int32_t n,
                           const shard_fields *fields, shard_index *x) {
  x->env = env;
  x->fields = fields;
  for (int32_t i = 0; i < fields->n; i++) x->most_class[i] = -1;
  for (int32_t i = 0; i < n; i++) TN_TRY(source_paths_find(env, option, patterns[i], &x->paths));
  for (int32_t i = 0; i < x->paths.n; i++) TN_TRY(index_scan_file(x, i));
  index_warn_others(x, patterns[0]);
  if (x->count > x->n_faults) return TN_OK;
  if (x->n_faults > 0)
    return tn_fail(env, TN_EINVAL, option, "%s: %s", x->paths.v[x->samples[0].file], x->faults[0]);
  return tn_fail(env, TN_EINVAL, option, "%s: holds no member that ends with .%s, as field '%s' has it",
                 patterns[0], fields->v[0].endings, fields->v[0].name);
}

void shard_index_keep_part(shard_index *x, double share, int32_t chosen) {
  int64_t n = x->count, m = (int64_t)((double)n * share + 0.5), kept = 0;
  size_t fields = (size_t)x->fields->n;
  if (m < 1 && n > 1) m = 1;
  if (m >= n && n > 0) m = n - 1;
  for (int64_t i = 0; i < n; i++) {
    int32_t is_chosen = (i + 1) * m / n > i * m / n;
    if (is_chosen != chosen) continue;
    x->samples[kept] = x->samples[i];
    memmove(x->members + (size_t)kept * fields, x->members + (size_t)i * fields, fields * sizeof *x->members);
    kept++;
  }
  x->count = kept;
}

void shard_index_free(shard_index *x) {
  if (x->env == NULL) return;
  source_paths_free(x->env, &x->paths);
  tn_delete(x->env, x->samples);
  tn_delete(x->env, x->members);
  tn_delete(x->env, x->names);
  tn_delete(x->env, x->faults);
  *x = (shard_index){0};
}

/* ---- reading ---- */

void shard_index_name(const shard_index *x, int64_t sample, char *text, size_t size) {
  const shard_sample *s = &x->samples[sample];
  const char *name = x->names + s->name;
  snprintf(text, size, "%s%s%s", x->paths.v[s->file], *name != '\0' ? ": " : "", name);
}

tn_status shard_index_open(const void *handle, const shard_index *x, int64_t sample, int *fd) {
  const shard_sample *s = &x->samples[sample];
  const char *path = x->paths.v[s->file];
  *fd = -1;
  if (s->fault != 0) return tn_fail(handle, TN_EINVAL, NULL, "%s: %s", path, x->faults[s->fault - 1]);
  return source_open_file(handle, path, fd);
}

static tn_status index_check_member(const void *handle, const shard_field *f, const shard_member *m,
                                    const char *where) {
  if (m->at == SHARD_LACKS)
    return tn_fail(handle, TN_EINVAL, NULL,
                   "%s: has no member that ends with .%s, expected one for field '%s'", where, f->endings,
                   f->name);
  if (m->at == SHARD_TWICE)
    return tn_fail(handle, TN_EINVAL, NULL,
                   "%s: has several members that end with .%s, expected one for field '%s'", where,
                   f->endings, f->name);
  if (m->size <= SHARD_LARGEST) return TN_OK;
  return tn_fail(handle, TN_EINVAL, NULL, "%s: field '%s' has %llu bytes, expected at most %llu", where,
                 f->name, (unsigned long long)m->size, (unsigned long long)SHARD_LARGEST);
}

tn_status shard_index_read(const void *handle, const shard_index *x, int64_t sample, int32_t i, int fd,
                           tn_scratch *scratch, char *where, size_t where_size, shard_bytes *member) {
  const shard_member *m = &x->members[sample * x->fields->n + i];
  const shard_field *f = &x->fields->v[i];
  size_t got;
  shard_index_name(x, sample, where, where_size);
  TN_TRY(index_check_member(handle, f, m, where));
  size_t used = strlen(where);
  snprintf(where + used, where_size - used, ".%s", f->endings);
  char *bytes = tn_scratch_take(handle, scratch, (size_t)m->size + 1);
  if (bytes == NULL) return TN_ENOMEM;
  TN_TRY(index_read_at(handle, x->paths.v[x->samples[sample].file], fd, m->at, bytes, (size_t)m->size, &got));
  bytes[got] = '\0';
  *member = (shard_bytes){where, bytes, got};
  if (got == m->size) return TN_OK;
  return tn_fail(handle, TN_EINVAL, NULL, "%s: ends at byte %zu of %llu: the file has become shorter", where,
                 got, (unsigned long long)m->size);
}
