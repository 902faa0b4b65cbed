/* core/records/checkpoints/mapped_weights.c: maps a safetensors file. Its tensors in f32 of one or two
 * dimensions are used in place; kernels of the others, convolutions, prefer another order of elements than
 * the file's. Pages that are not written are the page cache's, which processes share. */
#include "core/records/checkpoints/mapped_weights.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/file/file.h"
#include "core/formats/safetensors.h"
#include "core/records/checkpoints/checkpoint_files.h"
#include "core/records/checkpoints/weights_names.h"

/* [weights] map = auto: a small file is read, and checked, in no time. */
enum { MAPPED_FROM = 64 << 20, MAPPED_RANK = 2 };

struct tn_mapped_weights {
  tn_env *env;
  tn_arena arena;
  char *base; /* of the whole file */
  size_t bytes;
  tn_mapped_states states;
};

static bool mapped_is_wanted(const tn_run *run, const tn_device *device, const char *path) {
  const tn_weights_section *w = &run->settings.weights;
  size_t n = strlen(path);
  static const char end[] = ".safetensors";
  return w->map != TN_MAP_NO && device->target.properties.host_addressable != 0 &&
         device->rehearsed == NULL && run->settings.adapters.n == 0 && *w->transpose == '\0' &&
         n > sizeof end && strcmp(path + n - sizeof end + 1, end) == 0;
}

static bool mapped_is_usable(const tn_safetensor *t) {
  return t->type.dtype == TN_F32 && t->type.rank >= 1 && t->type.rank <= MAPPED_RANK && t->bytes > 0 &&
         t->offset % sizeof(float) == 0;
}

/* The tensors that are used in place; the first of them begins the memory. */
static tn_status mapped_list(tn_mapped_weights *m, const tn_weights_names *names) {
  uint64_t first = UINT64_MAX;
  tn_mapped_tensor *v = tn_arena_alloc(&m->arena, tn_size_mul((size_t)names->n + 1, sizeof *v));
  if (v == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < names->n; i++) {
    const tn_safetensor *t = names->v[i].tensor;
    if (!mapped_is_usable(t)) continue;
    v[m->states.n] = (tn_mapped_tensor){tn_arena_strdup(&m->arena, names->v[i].name), t->type,
                                        (int64_t)(t->offset / sizeof(float))};
    if (v[m->states.n++].path == NULL) return TN_ENOMEM;
    if (t->offset < first) first = t->offset;
  }
  for (int32_t i = 0; i < m->states.n; i++) v[i].offset -= (int64_t)(first / sizeof(float));
  m->states.v = v;
  m->states.memory = m->states.n > 0 ? m->base + first : NULL;
  return TN_OK;
}

/* Writes are private to the process, so that a session can change its weights. */
static tn_status mapped_weights_map(tn_mapped_weights *m, const char *path) {
  tn_open_file file;
  TN_TRY(tn_file_open(m->env, path, O_RDONLY, &file));
  void *base = file.bytes > 0 ? mmap(NULL, (size_t)file.bytes, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_NORESERVE, file.fd, 0)
                              : MAP_FAILED;
  close(file.fd);
  if (base == MAP_FAILED) return TN_OK;
  m->base = base;
  m->bytes = (size_t)file.bytes;
  return TN_OK;
}

static tn_status mapped_read_names(tn_run *run, tn_mapped_weights *m, const tn_weights_source *source,
                                   tn_safetensors *file) {
  const char *path = source->path;
  tn_weights_names names;
  if (tn_safetensors_gguf(file) != NULL) return TN_OK;
  TN_TRY(tn_weights_names_make(&run->env, &m->arena, file, path, source->prefix, source->rename, &names));
  TN_TRY(mapped_weights_map(m, path));
  return m->base != NULL ? mapped_list(m, &names) : TN_OK;
}

/* A file whose checksum is recorded is read whole, to be compared. */
static tn_status mapped_open_file(tn_run *run, tn_mapped_weights *m, const tn_weights_source *source) {
  const char *path = source->path;
  tn_safetensors *file = NULL;
  tn_file_sum sum;
  bool recorded = false;
  TN_TRY(tn_checkpoint_file_sum(&run->env, path, &sum, &recorded));
  if (recorded) return TN_OK;
  TN_TRY(tn_safetensors_open(&run->env, path, &file));
  tn_status status = mapped_read_names(run, m, source, file);
  tn_safetensors_close(file);
  m->states.file = tn_arena_strdup(&m->arena, path);
  bool large = m->bytes >= MAPPED_FROM || run->settings.weights.map == TN_MAP_YES;
  if (!large) m->states.n = 0;
  return status == TN_OK && m->states.file == NULL ? TN_ENOMEM : status;
}

tn_status tn_mapped_weights_open(tn_run *run, const tn_device *device, const char *path, const char *prefix,
                                 const char *rename, tn_mapped_weights **mapped) {
  const tn_weights_source source = {.path = path, .prefix = prefix, .rename = rename};
  *mapped = NULL;
  if (!mapped_is_wanted(run, device, path)) return TN_OK;
  tn_mapped_weights *m = tn_alloc(&run->env, sizeof *m);
  if (m == NULL) return TN_ENOMEM;
  m->env = &run->env;
  m->arena = tn_arena_new(&run->env);
  tn_status status = mapped_open_file(run, m, &source);
  if (status == TN_OK && m->states.n > 0) {
    *mapped = m;
    return TN_OK;
  }
  if (status != TN_ENOMEM) tn_error_clear(&run->env);
  tn_mapped_weights_close(m);
  return status == TN_ENOMEM ? status : TN_OK;
}

tn_status tn_mapped_weights_open_configured(tn_run *run, const tn_device *device,
                                            tn_mapped_weights **mapped) {
  const tn_weights_section *w = &run->settings.weights;
  return tn_mapped_weights_open(run, device, w->file, w->prefix, w->rename, mapped);
}

void tn_mapped_weights_close(tn_mapped_weights *m) {
  if (m == NULL) return;
  if (m->base != NULL) munmap(m->base, m->bytes);
  tn_arena_free(&m->arena);
  tn_release(m->env, m);
}

const tn_mapped_states *tn_mapped_weights_states(const tn_mapped_weights *m) {
  return m != NULL ? &m->states : NULL;
}
