/* Quotas and memory limits of control groups, read from made-up folders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/system/cgroup.h"

typedef struct tree {
  char mount[64], groups[96];
} tree;

static void write_file(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
}

/* FOLDER of the mount, made with the folders above it, and NAME in it. */
static void put(const tree *t, const char *folder, const char *name, const char *text) {
  char path[512];
  snprintf(path, sizeof path, "%s%s", t->mount, folder);
  for (char *at = strchr(path + strlen(t->mount) + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
    *at = '\0';
    mkdir(path, 0700);
    *at = '/';
  }
  mkdir(path, 0700);
  snprintf(path, sizeof path, "%s%s/%s", t->mount, folder, name);
  write_file(path, text);
}

static tree tree_of(const char *groups) {
  tree t = {"/tmp/tenon-groups-XXXXXX", ""};
  assert_non_null(mkdtemp(t.mount));
  snprintf(t.groups, sizeof t.groups, "%s/groups", t.mount);
  write_file(t.groups, groups);
  return t;
}

static int64_t granted(const tree *t) { return tn_cgroup_processors(t->groups, t->mount); }

static void remove_tree(const tree *t) {
  char command[128];
  snprintf(command, sizeof command, "rm -r %s", t->mount);
  assert_int_equal(system(command), 0);
}

static void check_memory(const tree *t, int64_t limit, int64_t room) {
  tn_cgroup_memory memory = tn_cgroup_memory_limits(t->groups, t->mount);
  assert_int_equal(memory.limit, limit);
  assert_int_equal(memory.room, room);
}

static void without_quota_nothing_is_limited(void **state) {
  (void)state;
  tree t = tree_of("0::/user/run\n");
  assert_int_equal(granted(&t), 0);
  put(&t, "/user/run", "cpu.max", "max 100000\n");
  assert_int_equal(granted(&t), 0);
  assert_int_equal(tn_cgroup_processors("/does/not/exist", "/neither/does/this"), 0);
  remove_tree(&t);
}

static void the_quota_of_the_own_group_counts(void **state) {
  (void)state;
  tree t = tree_of("0::/user/run\n");
  put(&t, "/user/run", "cpu.max", "60000 100000\n");
  assert_int_equal(granted(&t), 1);
  remove_tree(&t);
}

static void the_quota_of_a_group_above_counts(void **state) {
  (void)state;
  tree t = tree_of("0::/user/run\n");
  put(&t, "/user/run", "cpu.max", "max 100000\n");
  put(&t, "/user", "cpu.max", "100000 100000\n");
  assert_int_equal(granted(&t), 1);
  remove_tree(&t);
}

static void a_container_sees_its_quota_at_the_root(void **state) {
  (void)state;
  tree t = tree_of("0::/docker/4f1c\n");
  put(&t, "", "cpu.max", "50000 100000\n");
  assert_int_equal(granted(&t), 1);
  remove_tree(&t);
}

static void the_quota_of_version_1_counts(void **state) {
  (void)state;
  tree t = tree_of("7:memory:/m\n4:cpuacct,cpu:/user/run\n0::/\n");
  put(&t, "/cpu/user/run", "cpu.cfs_quota_us", "-1\n");
  put(&t, "/cpu/user/run", "cpu.cfs_period_us", "100000\n");
  assert_int_equal(granted(&t), 0);
  put(&t, "/cpu/user/run", "cpu.cfs_quota_us", "300000\n");
  assert_int_equal(granted(&t), 3);
  remove_tree(&t);
}

static void a_quota_is_rounded_up(void **state) {
  (void)state;
  tree t = tree_of("0::/a\n");
  put(&t, "/a", "cpu.max", "100001 100000\n");
  assert_int_equal(granted(&t), 2);
  remove_tree(&t);
}

static void damaged_files_limit_nothing(void **state) {
  (void)state;
  static const char *const quotas[] = {"some text\n", "100000 0\n", "-5 100000\n", "", "7"};
  static const char *const limits[] = {"some text\n", "-1\n", "0\n", ""};
  tree t = tree_of("nonsense\n0:\n:::::\n\n0::/a\n");
  for (size_t i = 0; i < sizeof quotas / sizeof *quotas; i++) {
    put(&t, "/a", "cpu.max", quotas[i]);
    assert_int_equal(granted(&t), 0);
  }
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    put(&t, "/a", "memory.max", limits[i]);
    check_memory(&t, 0, 0);
  }
  remove_tree(&t);
}

/* ---- memory ---- */

static void the_least_memory_limit_counts(void **state) {
  (void)state;
  tree t = tree_of("0::/user/run\n");
  put(&t, "/user/run", "memory.max", "max\n");
  check_memory(&t, 0, 0);
  put(&t, "/user", "memory.max", "1000000\n");
  check_memory(&t, 1000000, 1000000);
  put(&t, "/user/run", "memory.max", "2000000\n");
  check_memory(&t, 1000000, 1000000);
  remove_tree(&t);
}

/* The group with the least limit need not be the one with the least room. */
static void anonymous_memory_of_a_group_is_used(void **state) {
  (void)state;
  tree t = tree_of("0::/user/run\n");
  put(&t, "/user/run", "memory.max", "1000000\n");
  put(&t, "/user/run", "memory.stat", "anon 100000\nfile 800000\nanon_thp 900000\n");
  check_memory(&t, 1000000, 900000);
  put(&t, "/user", "memory.max", "2000000\n");
  put(&t, "/user", "memory.stat", "file 7\nanon 1500000\n");
  check_memory(&t, 1000000, 500000);
  put(&t, "/user", "memory.stat", "anon 2500000\n");
  check_memory(&t, 1000000, 1);
  remove_tree(&t);
}

static void a_container_sees_its_memory_at_the_root(void **state) {
  (void)state;
  tree t = tree_of("0::/docker/4f1c\n");
  put(&t, "", "memory.max", "5000\n");
  check_memory(&t, 5000, 5000);
  remove_tree(&t);
}

/* Version 1 writes the largest multiple of a page where there is no limit. */
static void the_memory_limit_of_version_1_counts(void **state) {
  (void)state;
  tree t = tree_of("7:memory:/m/n\n4:cpuacct,cpu:/user/run\n0::/\n");
  put(&t, "/memory/m/n", "memory.limit_in_bytes", "9223372036854771712\n");
  put(&t, "/cpu/user/run", "memory.limit_in_bytes", "4096\n");
  check_memory(&t, 0, 0);
  put(&t, "/memory/m", "memory.limit_in_bytes", "3000000\n");
  put(&t, "/memory/m", "memory.stat", "rss 1\nhierarchical_memory_limit 3000000\ntotal_rss 1000000\n");
  check_memory(&t, 3000000, 2000000);
  put(&t, "/memory", "memory.limit_in_bytes", "9223372036854771712\n");
  put(&t, "/memory/m/n", "memory.limit_in_bytes", "1048576\n");
  check_memory(&t, 1048576, 1048576);
  remove_tree(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_quota_nothing_is_limited),
      cmocka_unit_test(the_quota_of_the_own_group_counts),
      cmocka_unit_test(the_quota_of_a_group_above_counts),
      cmocka_unit_test(a_container_sees_its_quota_at_the_root),
      cmocka_unit_test(the_quota_of_version_1_counts),
      cmocka_unit_test(a_quota_is_rounded_up),
      cmocka_unit_test(damaged_files_limit_nothing),
      cmocka_unit_test(the_least_memory_limit_counts),
      cmocka_unit_test(anonymous_memory_of_a_group_is_used),
      cmocka_unit_test(a_container_sees_its_memory_at_the_root),
      cmocka_unit_test(the_memory_limit_of_version_1_counts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
