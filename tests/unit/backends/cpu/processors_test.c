/* tests/unit/backends/cpu/processors_test.c: quotas of control groups, read from made-up folders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backends/cpu/cpu.h"

enum { NO_QUOTA = 1 << 20 };

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

static int32_t granted(const tree *t) { return tn_cpu_granted_processors(t->groups, t->mount); }

static void remove_tree(const tree *t) {
  char command[128];
  snprintf(command, sizeof command, "rm -r %s", t->mount);
  assert_int_equal(system(command), 0);
}

/* Every machine has one processor, so a quota of one shows on all. */
static void without_quota_all_processors_are_granted(void **state) {
  (void)state;
  tree t = tree_of("0::/user/run\n");
  int32_t all = granted(&t);
  put(&t, "/user/run", "cpu.max", "max 100000\n");
  assert_int_equal(granted(&t), all);
  assert_in_range(all, 1, NO_QUOTA);
  assert_int_equal(tn_cpu_granted_processors("/does/not/exist", "/neither/does/this"), all);
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
  int32_t all = granted(&t);
  put(&t, "/cpu/user/run", "cpu.cfs_quota_us", "-1\n");
  put(&t, "/cpu/user/run", "cpu.cfs_period_us", "100000\n");
  assert_int_equal(granted(&t), all);
  put(&t, "/cpu/user/run", "cpu.cfs_quota_us", "100000\n");
  assert_int_equal(granted(&t), 1);
  remove_tree(&t);
}

static void a_quota_is_rounded_up(void **state) {
  (void)state;
  tree t = tree_of("0::/a\n");
  int32_t all = granted(&t);
  put(&t, "/a", "cpu.max", "100001 100000\n");
  assert_int_equal(granted(&t), all < 2 ? all : 2);
  remove_tree(&t);
}

static void damaged_files_grant_everything(void **state) {
  (void)state;
  tree t = tree_of("nonsense\n0:\n:::::\n\n0::/a\n");
  int32_t all = tn_cpu_granted_processors("/does/not/exist", t.mount);
  put(&t, "/a", "cpu.max", "some text\n");
  assert_int_equal(granted(&t), all);
  put(&t, "/a", "cpu.max", "100000 0\n");
  assert_int_equal(granted(&t), all);
  put(&t, "/a", "cpu.max", "-5 100000\n");
  assert_int_equal(granted(&t), all);
  remove_tree(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_quota_all_processors_are_granted),
      cmocka_unit_test(the_quota_of_the_own_group_counts),
      cmocka_unit_test(the_quota_of_a_group_above_counts),
      cmocka_unit_test(a_container_sees_its_quota_at_the_root),
      cmocka_unit_test(the_quota_of_version_1_counts),
      cmocka_unit_test(a_quota_is_rounded_up),
      cmocka_unit_test(damaged_files_grant_everything),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
