/* plugins/sources/shards/shard_record.c: see shard_record.h. */
#include "plugins/sources/shards/shard_record.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugins/sources/shards/shard_name.h"

/* No picture with an allowed number of pixels is larger. */
static const int64_t RECORD_LARGEST = (int64_t)1 << 30;

/* ---- records ---- */

void shard_record_free(const void *handle, shard_record *record) {
  if (record == NULL) return;
  for (int32_t i = 0; i < SHARD_FIELDS; i++) tn_delete(handle, record->member[i].bytes);
  tn_delete(handle, record->name);
  tn_delete(handle, record->fault);
  tn_delete(handle, record);
}

static char *record_text(const void *handle, const char *path, const char *name, size_t n) {
  size_t bytes = strlen(path) + n + 3;
  char *text = tn_new(handle, bytes);
  if (text != NULL) snprintf(text, bytes, "%s%s%.*s", path, n > 0 ? ": " : "", (int)n, name);
  return text;
}

static const char *records_path(const shard_records *r) {
  return r->is_input ? "standard input" : r->paths.v[r->order[r->file]];
}

static shard_record *record_new(const void *handle, const shard_records *r, const char *name, size_t n) {
  shard_record *record = tn_new(handle, sizeof *record);
  if (record == NULL) return NULL;
  record->name = record_text(handle, records_path(r), name, n);
  if (record->name != NULL) return record;
  tn_delete(handle, record);
  return NULL;
}

/* ---- bytes ---- */

static shard_records *records_of(tar_input *in) {
  return (shard_records *)(void *)((char *)in - offsetof(shard_records, input));
}

static tn_status records_fill(table_input *in) {
  return in->at == in->end && !in->ended ? table_input_more(in) : TN_OK;
}

static tn_status records_read(tar_input *input, void *to, size_t n, size_t *got) {
  table_input *in = &records_of(input)->in;
  for (*got = 0; *got < n;) {
    TN_TRY(records_fill(in));
    size_t here = in->end - in->at < n - *got ? in->end - in->at : n - *got;
    if (here == 0) break;
    memcpy((char *)to + *got, in->bytes + in->at, here);
    in->at += here;
    *got += here;
  }
  return TN_OK;
}

static tn_status records_skip(tar_input *input, int64_t n, int64_t *got) {
  table_input *in = &records_of(input)->in;
  for (*got = 0; *got < n;) {
    TN_TRY(records_fill(in));
    int64_t here = (int64_t)(in->end - in->at) < n - *got ? (int64_t)(in->end - in->at) : n - *got;
    if (here == 0) break;
    in->at += (size_t)here;
    *got += here;
  }
  return TN_OK;
}

tn_status shard_file_is_packed(const void *handle, const char *path, int32_t *is_packed) {
  static const uint8_t gzip[] = {0x1F, 0x8B}, zstd[] = {0x28, 0xB5, 0x2F, 0xFD};
  uint8_t magic[4] = {0};
  int fd;
  TN_TRY(source_open_file(handle, path, &fd));
  ssize_t n = pread(fd, magic, sizeof magic, 0);
  close(fd);
  *is_packed = (n >= 2 && memcmp(magic, gzip, 2) == 0) || (n == 4 && memcmp(magic, zstd, 4) == 0);
  return TN_OK;
}

/* ---- files ---- */

/* The handle of the call before may be gone. */
static void records_close_file(const void *handle, shard_records *r) {
  r->in.env = handle;
  if (r->is_open) table_input_close(&r->in);
  r->is_open = r->has_member = 0;
}

/* Another order of the files in each pass (Fisher and Yates). */
static void records_order(shard_records *r) {
  tn_rng rng = tn_rng_at(tn_hash_mix(r->seed, (uint64_t)r->pass), 0);
  for (int64_t i = 0; i < r->paths.n; i++) r->order[i] = i;
  for (int64_t i = r->paths.n - 1; i > 0 && r->shuffles; i--) {
    int64_t k = (int64_t)tn_rng_below(&rng, (uint32_t)(i + 1)), kept = r->order[i];
    r->order[i] = r->order[k];
    r->order[k] = kept;
  }
}

static tn_status records_open_file(const void *handle, shard_records *r) {
  tn_status status = r->is_input ? table_input_open_standard(handle, records_path(r), &r->in)
                                 : table_input_open(handle, records_path(r), &r->in);
  r->is_open = 1;
  r->input = (tar_input){records_read, records_skip};
  tar_begin(r->tar, handle, &r->input, 0);
  r->is_damaged = status == TN_EINVAL;
  return r->is_damaged ? TN_OK : status;
}

tn_status shard_records_begin(const void *handle, shard_records *r) {
  r->pass = r->file = r->found = 0;
  if (r->tar == NULL) r->tar = tn_new(handle, sizeof *r->tar);
  if (r->order == NULL)
    r->order = tn_new(handle, (size_t)(r->paths.n > 0 ? r->paths.n : 1) * sizeof *r->order);
  if (r->tar == NULL || r->order == NULL) return TN_ENOMEM;
  records_close_file(handle, r);
  records_order(r);
  return records_open_file(handle, r);
}

void shard_records_end(const void *handle, shard_records *r) {
  records_close_file(handle, r);
  source_paths_free(handle, &r->paths);
  tn_delete(handle, r->order);
  tn_delete(handle, r->tar);
}

static tn_status records_next_file(const void *handle, shard_records *r) {
  records_close_file(handle, r);
  if (r->is_input) return TN_EOF;
  if (++r->file == r->paths.n) {
    if (r->found == 0)
      return tn_fail(handle, TN_EINVAL, "files",
                     "%s: holds no member that ends with .%s, as field '%s' has it", r->paths.v[0],
                     r->fields->v[0].endings, r->fields->v[0].name);
    r->file = r->found = 0;
    r->pass++;
    records_order(r);
  }
  return records_open_file(handle, r);
}

/* ---- samples ---- */

/* Reads the member for field i. A damaged archive is TN_EINVAL, with its fault in the tar. */
static tn_status record_take_field(const void *handle, shard_records *r, shard_record *record, int32_t i) {
  shard_bytes *m = &record->member[i];
  if (m->bytes != NULL) {
    record->several[i] = 1;
    return TN_OK;
  }
  if (r->tar->size > RECORD_LARGEST) return TN_OK; /* it counts as missing */
  m->bytes = tn_new(handle, (size_t)r->tar->size + 1);
  if (m->bytes == NULL) return TN_ENOMEM;
  TN_TRY(tar_read(r->tar, m->bytes));
  m->n = (size_t)r->tar->size;
  m->bytes[m->n] = '\0';
  m->where = record->name;
  return TN_OK;
}

/* A member is read once: another field of the same ending gets a copy. */
static tn_status record_take_member(const void *handle, shard_records *r, shard_record *record,
                                    const char *ending, int32_t *taken) {
  int32_t first = -1;
  for (int32_t i = 0; i < r->fields->n; i++) {
    if (!shard_field_takes(&r->fields->v[i], ending)) continue;
    ++*taken;
    if (first < 0 || record->member[i].bytes != NULL || record->member[first].bytes == NULL) {
      TN_TRY(record_take_field(handle, r, record, i));
      first = i;
      continue;
    }
    shard_bytes *m = &record->member[i];
    *m = record->member[first];
    m->bytes = tn_new(handle, m->n + 1);
    if (m->bytes == NULL) return TN_ENOMEM;
    memcpy(m->bytes, record->member[first].bytes, m->n + 1);
  }
  return TN_OK;
}

/* The next member of a sample; TN_EOF: the end of the archive. */
static tn_status records_next_member(shard_records *r, size_t *stem) {
  for (;;) {
    if (!r->has_member) TN_TRY(tar_next(r->tar));
    r->has_member = 0;
    *stem = tar_is_plain_file(r->tar) ? shard_name_stem(r->tar->name) : 0;
    if (*stem > 0) return TN_OK;
  }
}

/* Reads the members of one name. *taken: how many of them fields take. */
static tn_status record_read(const void *handle, shard_records *r, shard_record **record, int32_t *taken) {
  char name[TAR_NAME];
  size_t stem, n;
  if (r->is_damaged) return TN_EINVAL;
  tn_status status = records_next_member(r, &n);
  if (status != TN_OK) return status;
  memcpy(name, r->tar->name, n);
  *record = record_new(handle, r, name, n);
  if (*record == NULL) return TN_ENOMEM;
  for (stem = n; status == TN_OK && stem == n && memcmp(name, r->tar->name, n) == 0;) {
    status = record_take_member(handle, r, *record, r->tar->name + n + 1, taken);
    if (status == TN_OK) status = records_next_member(r, &stem);
  }
  r->has_member = status == TN_OK;
  return status;
}

/* A part of the archive that cannot be read takes the place of its samples. */
static tn_status records_take_fault(const void *handle, shard_records *r, shard_record **record) {
  const char *fault = r->tar->fault[0] != '\0' ? r->tar->fault : "the packed data are damaged";
  shard_record_free(handle, *record);
  *record = record_new(handle, r, "", 0);
  if (*record == NULL) return TN_ENOMEM;
  (*record)->fault = record_text(handle, fault, "", 0);
  if ((*record)->fault == NULL) return TN_ENOMEM;
  tn_env_log(handle, TN_LOG_WARN, "%s: %s; its samples from there on are missing", (*record)->name, fault);
  return TN_OK;
}

/* One sample, or nothing where *taken is 0: members that no field takes, or the end of a file. */
static tn_status records_step(const void *handle, shard_records *r, shard_record **record, int32_t *taken) {
  tn_status status = r->is_open ? record_read(handle, r, record, taken) : TN_EOF;
  if (status != TN_EOF && status != TN_EINVAL) return status;
  if (status == TN_EINVAL) TN_TRY(records_take_fault(handle, r, record));
  if (status == TN_EINVAL) *taken = 1;
  status = records_next_file(handle, r);
  return status == TN_EOF && *taken > 0 ? TN_OK : status;
}

tn_status shard_records_next(const void *handle, shard_records *r, shard_record **record) {
  *record = NULL;
  r->in.env = handle;
  r->tar->handle = handle;
  for (;;) {
    int32_t taken = 0;
    tn_status status = records_step(handle, r, record, &taken);
    if (status == TN_OK && taken > 0) {
      r->found++;
      return TN_OK;
    }
    shard_record_free(handle, *record);
    *record = NULL;
    if (status != TN_OK) return status;
  }
}
