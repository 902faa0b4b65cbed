/* tests/unit/plugins/sources/loading.h: loaders on sources, whose options are pairs of texts, and the
 * sections [source NAME] of those that join others. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/config/options/options.h"
#include "core/data/loader.h"
#include "core/plugin/handles.h"
#include "core/plugin/parts.h"

#define PAIRS(...) ((const char *const[]){__VA_ARGS__, NULL})

enum { MOST_PARTS = 8 };

static tn_error_record record;
static tn_env env;
static tn_arena arena;
static tn_part_setting parts[MOST_PARTS];
static tn_part_settings part_settings = {parts, 0};

static inline void begin_loading(void) {
  tn_error_record_init_root(&env, &record, &tn_host_api);
  arena = tn_arena_new(&env);
  part_settings.n = 0;
  record.parts = &part_settings;
}

static inline void end_loading(void) { tn_arena_free(&arena); }

static inline const void *options_of(const tn_item *item, const char *const *pairs) {
  tn_options options;
  tn_status status = tn_options_start(&env, &arena, item, &options);
  options.folder = "/";
  for (; status == TN_OK && *pairs != NULL; pairs += 2)
    status = tn_options_set_text(&env, &options, pairs[0], pairs[1]);
  if (status == TN_OK) status = tn_options_finish(&env, &options);
  if (status != TN_OK) fail_msg("%s", tn_error_text(&env));
  return options.data;
}

/* [source NAME] */
static inline void add_part(const char *name, const tn_source *source, const char *const *pairs) {
  assert_in_range(part_settings.n, 0, MOST_PARTS - 1);
  parts[part_settings.n++] = (tn_part_setting){name, source, options_of(&source->item, pairs), "a.ini:9"};
}

static inline tn_loader *make_loader(const tn_loader_options *options) {
  tn_loader *loader;
  if (tn_loader_create(&env, options, &loader) != TN_OK) fail_msg("%s", tn_error_text(&env));
  return loader;
}

static inline void loader_refused(const tn_loader_options *options, tn_status code, const char *text) {
  tn_loader *loader;
  tn_status status = tn_loader_create(&env, options, &loader);
  if (strstr(tn_error_text(&env), text) == NULL) fail_msg("'%s' lacks '%s'", tn_error_text(&env), text);
  assert_int_equal(status, code);
}
