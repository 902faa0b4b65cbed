#include "tests/unit/plugins/sources/probe.h"
#include "core/plugin/handles.h"
#include "tests/support/test_env.h"

#include <ftw.h>
#include <unistd.h>

static void *give_field(tn_sample *s, int32_t i, const tn_type *type) {
  probe *p = (probe *)s;
  p->type[i] = type != NULL ? *type : p->description.fields[i].type;
  free(p->value[i]);
  p->value[i] = malloc(tn_type_bytes(&p->type[i]) + 1);
  return p->value[i];
}

static const void *fill(probe *p, const char *const *pairs) {
  tn_options options;
  tn_status status = tn_options_start(p, &p->arena, &p->source->item, &options);
  options.folder = "/";
  for (; status == TN_OK && *pairs != NULL; pairs += 2)
    status = tn_options_set_text(p, &options, pairs[0], pairs[1]);
  if (status == TN_OK) status = tn_options_finish(p, &options);
  if (status != TN_OK) fail_msg("%s", tn_error_text(p));
  return options.data;
}

static void prepare(probe *p, const tn_source *source) {
  memset(p, 0, sizeof(*p));
  tn_error_record_init_root(&p->host.pub.env, &p->record, &tn_host_api);
  p->host.field = give_field;
  p->host.pub.scratch = &p->scratch;
  p->arena = tn_arena_new(p);
  p->source = source;
}

void probe_starve(const tn_source *source, const char *const *pairs) {
  probe p;
  prepare(&p, source);
  const void *options = fill(&p, pairs);
  tn_status status = TN_ENOMEM;
  for (int allowed = 0; status != TN_OK; allowed++) {
    test_env memory;
    test_env_start(&memory);
    test_env_allow(&memory, allowed);
    p.record.allocator = (tn_allocator){&memory, test_env_realloc};
    status = source->open(&p.host.pub.env, options, TN_SPLIT_TRAIN, 1, &p.self);
    if (status == TN_OK) {
      source->describe(&p.host.pub.env, p.self, &p.description);
      status = probe_read(&p, 0, 1);
      source->close(&p.host.pub.env, p.self);
    }
    tn_release(&p, p.scratch.memory);
    p.scratch = (tn_scratch){NULL, 0};
    assert_int_equal(memory.live, 0);
    assert_true(status == TN_OK || status == TN_ENOMEM);
    assert_true(allowed < 1000);
  }
  p.record.allocator = (tn_allocator){NULL, NULL};
  for (int i = 0; i < 4; i++) free(p.value[i]);
  tn_arena_free(&p.arena);
}

tn_status probe_open(probe *p, const tn_source *source, const char *const *pairs, int32_t split) {
  return probe_open_taught(p, source, pairs, split, NULL);
}

tn_status probe_open_taught(probe *p, const tn_source *source, const char *const *pairs, int32_t split,
                            const char *learnt) {
  prepare(p, source);
  p->record.learnt = learnt;
  tn_status status = source->open(&p->host.pub.env, fill(p, pairs), split, 1, &p->self);
  if (status != TN_OK) {
    tn_arena_free(&p->arena);
    return status;
  }
  p->description.struct_size = sizeof(p->description);
  assert_int_equal(source->describe(&p->host.pub.env, p->self, &p->description), TN_OK);
  assert_in_range(p->description.n_fields, 1, 4);
  return TN_OK;
}

void probe_open_files(probe *p, const tn_source *source, const char *const *pairs, const char *const *paths,
                      int32_t n) {
  prepare(p, source);
  if (source->open_files(&p->host.pub.env, fill(p, pairs), paths, n, &p->self) != TN_OK)
    fail_msg("%s", tn_error_text(p));
  p->description.struct_size = sizeof(p->description);
  assert_int_equal(source->describe(&p->host.pub.env, p->self, &p->description), TN_OK);
}

void probe_close(probe *p) {
  p->source->close(&p->host.pub.env, p->self);
  tn_release(p, p->scratch.memory);
  for (int i = 0; i < 4; i++) free(p->value[i]);
  tn_arena_free(&p->arena);
}

void probe_refused(const tn_source *source, const char *const *pairs, int32_t split, tn_status code,
                   const char *text) {
  probe p;
  assert_int_equal(probe_open(&p, source, pairs, split), code);
  if (strstr(tn_error_text(&p), text) == NULL) fail_msg("'%s' lacks '%s'", tn_error_text(&p), text);
}

tn_status probe_read(probe *p, int64_t index, uint64_t key) {
  p->host.pub.index = index;
  p->host.pub.key = key;
  return p->source->read(&p->host.pub, p->self);
}

void probe_expect_class(probe *p, int64_t index, int64_t class) {
  int64_t told = -1;
  assert_int_equal(p->source->class_of(&p->host.pub.env, p->self, index, &told), TN_OK);
  assert_int_equal(told, class);
}

char *make_folder(void) {
  const char *temporary = getenv("TMPDIR");
  char path[512];
  snprintf(path, sizeof(path), "%s/tenon-test-XXXXXX", temporary != NULL ? temporary : "/tmp");
  assert_non_null(mkdtemp(path));
  return strdup(path);
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *where) {
  (void)info, (void)type, (void)where;
  return remove(path);
}

void remove_folder(char *folder) {
  nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
  free(folder);
}

const char *in_folder(const char *folder, const char *name) {
  static char paths[8][1024];
  static unsigned next;
  char *path = paths[next++ % 8];
  snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
  return path;
}

void write_file(const char *path, const void *bytes, size_t count) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, count, file), count);
  fclose(file);
}
