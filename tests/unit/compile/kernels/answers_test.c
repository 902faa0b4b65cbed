/* Answers of kernels: remembered for equal matches, and without variants that declined when prepared. */
#include <stdio.h>

#include "core/compile/kernels/answers.h"
#include "core/compile/kernels/tuner.h"
#include "core/compile/output/report.h"
#include "tests/unit/compile/fixture.h"
#include "tests/unit/compile/kernels.h"

static int queries;

static tn_status offer_two(tn_query *q) {
  queries++;
  if (q->match->in[0]->dims[0] == 5) return tn_fail(q, TN_EUNSUPPORTED, NULL, "five rows");
  tn_variant slow = {.struct_size = sizeof slow, .id = 1, .name = "direct", .cost_s = 3e-3};
  tn_variant quick = {.struct_size = sizeof quick, .id = 2, .name = "tiled", .cost_s = 1e-3};
  tn_add_variant(q, &slow);
  tn_add_variant(q, &quick);
  return TN_OK;
}

static tn_status offer_three(tn_query *q) {
  tn_variant split = {.struct_size = sizeof split, .id = 3, .name = "split", .cost_s = 2e-3};
  tn_add_variant(q, &split);
  return offer_two(q);
}

static tn_status offer_tiled(tn_query *q) {
  tn_variant v = {.struct_size = sizeof v, .name = "tiled", .cost_s = 1e-3};
  tn_add_variant(q, &v);
  return TN_OK;
}

static tn_status offer_slowest(tn_query *q) {
  tn_variant v = {.struct_size = sizeof v, .cost_s = 1};
  tn_add_variant(q, &v);
  return TN_OK;
}

static KERNEL(k_two, "t.two", "t", "y = matmul(a, b, bias?)", offer_two);
static KERNEL(k_three, "t.three", "t", "y = matmul(a, b, bias?)", offer_three);
static KERNEL(k_tiled, "t.tiled", "t", "y = matmul(a, b, bias?)", offer_tiled);
static KERNEL(k_last, "t.last", "t", "y = matmul(a, b, bias?)", offer_slowest);
static KERNEL(k_zeros, "t.zeros", "t", "y = full()", offer_plain);

static fixture F;

static void open_with(const tn_item *const *kernels) {
  fixture_open(&F, kernels);
  assert_int_equal(tn_answers_create(&F.env, &F.target.answers), TN_OK);
  queries = 0;
}

static void shut(void) {
  tn_answers_destroy(F.target.answers);
  fixture_close(&F);
}

static tn_program *program_of(const char *text) { return fixture_program(&F, text); }

#define PRODUCT(rows, transpose)                                                                             \
  "a: f32[" rows ", 8] = input(name=a)\nw: f32[8, 8] = input(name=w)\n"                                      \
  "y = matmul(a, w, transpose_b=" transpose ")\noutput y = y\n"

/* A match is the same in another program; other dims and other attributes are asked about. */
static void equal_matches_are_asked_once(void **state) {
  static const tn_item *const kernels[] = {&k_two.item, NULL};
  static const char *const graphs[] = {PRODUCT("4", "no"), PRODUCT("4", "no"), PRODUCT("6", "no"),
                                       PRODUCT("4", "yes"), PRODUCT("6", "no")};
  static const int asked[] = {1, 1, 2, 3, 3};
  (void)state;
  open_with(kernels);
  for (int i = 0; i < 5; i++) {
    tn_program *p = program_of(graphs[i]);
    assert_int_equal(queries, asked[i]);
    assert_string_equal(p->steps[0].group->choice.name, "tiled");
    assert_int_equal(p->steps[0].group->n_variants, 2);
    tn_program_destroy(p);
  }
  assert_int_equal(F.target.answers->asked, 3);
  assert_int_equal(F.target.answers->remembered, 2);
  shut();
}

/* A number that a kernel may read in query is a part of the match. */
static void constants_tell_matches_apart(void **state) {
  static const tn_item *const kernels[] = {&k_two.item, &k_zeros.item, NULL};
  static const char *const numbers[] = {"0", "2", "0"};
  static const int asked[] = {1, 2, 2};
  (void)state;
  open_with(kernels);
  for (int i = 0; i < 3; i++) {
    char text[200];
    snprintf(text, sizeof text,
             "a: f32[4, 8] = input(name=a)\nw: f32[8, 8] = full(dims=[8, 8], value=%s)\n"
             "y = matmul(a, w)\noutput y = y\n",
             numbers[i]);
    tn_program_destroy(program_of(text));
    assert_int_equal(queries, asked[i]);
  }
  shut();
}

static void a_decline_is_remembered_with_its_reason(void **state) {
  static const tn_item *const kernels[] = {&k_two.item, NULL};
  (void)state;
  open_with(kernels);
  for (int i = 0; i < 2; i++) {
    const char *text = fixture_failure(&F, PRODUCT("5", "no"), TN_EUNSUPPORTED);
    assert_non_null(strstr(text, "t.two: five rows"));
  }
  assert_int_equal(queries, 1);
  shut();
}

static void decline_prepare(const tn_program *p, const char *reason) {
  const tn_group *g = p->steps[0].group;
  assert_int_equal(tn_answers_decline(F.target.answers, g->kernel, g->key, g->choice.id, reason, false),
                   TN_OK);
}

/* The next variant, then the next kernel; other matches are not concerned. */
static void a_variant_that_declined_when_prepared_is_left_out(void **state) {
  static const tn_item *const kernels[] = {&k_two.item, &k_last.item, NULL};
  static const char *const names[] = {"tiled", "direct", ""};
  (void)state;
  open_with(kernels);
  for (int i = 0; i < 3; i++) {
    tn_program *p = program_of(PRODUCT("4", "no"));
    const tn_group *g = p->steps[0].group;
    assert_string_equal(g->choice.name, names[i]);
    assert_string_equal(g->kernel->item.name, i < 2 ? "t.two" : "t.last");
    if (i == 2) {
      assert_string_equal(g->rejected[0].kernel, "t.two");
      assert_string_equal(g->rejected[0].reason, "when it was prepared: no engine");
    }
    if (i < 2) decline_prepare(p, "no engine");
    tn_program_destroy(p);
    assert_int_equal(tn_answers_declines(&F.target), i < 2 ? i + 1 : 2);
  }
  tn_program *p = program_of(PRODUCT("6", "no"));
  assert_string_equal(p->steps[0].group->choice.name, "tiled");
  tn_program_destroy(p);
  shut();
}

/* Notes that the variant that is first by estimate declines, and measures the others. */
static tn_status time_without_first(tn_tuner *tuner, tn_env *env, const tn_tuning *tuning,
                                    const tn_choice *choice, double *seconds) {
  (void)tuner, (void)env;
  bool first = strcmp(choice->name, "tiled") == 0;
  *seconds = first ? 0 : 1e-3;
  if (!first) return TN_OK;
  return tn_answers_decline(F.target.answers, (const tn_kernel *)tuning->entry->item, tuning->key, choice->id,
                            "no engine", false);
}

static bool knows_none(tn_tuner *tuner) {
  (void)tuner;
  return false;
}

static bool knows_some(tn_tuner *tuner) {
  (void)tuner;
  return true;
}

static bool has_tiled_faulted(tn_tuner *tuner, const tn_tuning *tuning, const tn_choice *choice) {
  (void)tuner, (void)tuning;
  return strcmp(choice->name, "tiled") == 0;
}

static void a_variant_that_declined_when_measured_is_left_out(void **state) {
  static const tn_item *const kernels[] = {&k_two.item, &k_last.item, NULL};
  static tn_tuner tuner = {
      .time = time_without_first, .has_faulted = has_tiled_faulted, .knows_faults = knows_none};
  (void)state;
  open_with(kernels);
  F.target.tuner = &tuner;
  tn_program *p = program_of(PRODUCT("4", "no"));
  assert_string_equal(p->steps[0].group->choice.name, "direct");
  assert_int_equal(p->steps[0].group->n_variants, 1);
  assert_int_equal(tn_answers_declines(&F.target), 1);
  tn_program_destroy(p);
  F.target.tuner = NULL;
  shut();
}

/* A kernel is lost once, with its last variant. */
static void a_kernel_without_variants_is_reported_once(void **state) {
  static const tn_item *const kernels[] = {&k_two.item, &k_last.item, NULL};
  static const char *const graphs[] = {PRODUCT("4", "no"), PRODUCT("4", "no"), PRODUCT("6", "no"),
                                       PRODUCT("6", "no")};
  static const int lost[] = {0, 1, 1, 2};
  (void)state;
  open_with(kernels);
  for (int i = 0; i < 4; i++) {
    tn_program *p = program_of(graphs[i]);
    const tn_group *g = p->steps[0].group;
    assert_int_equal(tn_answers_is_last(F.target.answers, g->kernel, g->key, g->choice.id), i % 2);
    decline_prepare(p, "no engine");
    tn_program_destroy(p);
    json_t *report = tn_declines_report(&F.target), *one = json_array_get(report, 0);
    assert_int_equal(json_array_size(report), lost[i] > 0);
    assert_int_equal(json_integer_value(json_object_get(one, "matches")), lost[i]);
    if (lost[i] > 0) assert_string_equal(json_string_value(json_object_get(one, "kernel")), "t.two");
    json_decref(report);
  }
  shut();
}

/* All variants but the second decline. */
static tn_status decline_the_others(tn_tuner *tuner, tn_env *env, const tn_tuning *tuning,
                                    const tn_choice *choice, double *seconds) {
  const tn_kernel *kernel = (const tn_kernel *)tuning->entry->item;
  (void)tuner, (void)env, (void)choice;
  *seconds = 0;
  TN_TRY(tn_answers_decline(F.target.answers, kernel, tuning->key, 1, "no engine", false));
  return tn_answers_decline(F.target.answers, kernel, tuning->key, 3, "no engine", false);
}

static tn_status time_nothing(tn_tuner *tuner, tn_env *env, const tn_tuning *tuning, const tn_choice *choice,
                              double *seconds) {
  (void)tuner, (void)env, (void)tuning, (void)choice;
  *seconds = 0;
  return TN_OK;
}

/* The first by estimate. A kernel of which no other variant is left keeps it. */
static void a_variant_that_faulted_is_not_chosen_by_its_estimate(void **state) {
  static const tn_item *const kernels[] = {&k_two.item, &k_last.item, NULL};
  static tn_tuner tuner = {
      .time = time_nothing, .has_faulted = has_tiled_faulted, .knows_faults = knows_some};
  (void)state;
  open_with(kernels);
  tn_program *p = program_of(PRODUCT("4", "no"));
  assert_string_equal(p->steps[0].group->choice.name, "tiled");
  tn_program_destroy(p);
  F.target.tuner = &tuner;
  p = program_of(PRODUCT("4", "no"));
  assert_string_equal(p->steps[0].group->choice.name, "direct");
  assert_int_equal(p->steps[0].group->n_variants, 1);
  tn_program_destroy(p);
  F.target.tuner = NULL;
  shut();
}

static void a_variant_that_faulted_is_taken_where_the_others_decline(void **state) {
  static const tn_item *const kernels[] = {&k_three.item, NULL};
  static tn_tuner tuner = {
      .time = decline_the_others, .has_faulted = has_tiled_faulted, .knows_faults = knows_some};
  (void)state;
  open_with(kernels);
  F.target.tuner = &tuner;
  tn_program *p = program_of(PRODUCT("4", "no"));
  assert_string_equal(p->steps[0].group->choice.name, "tiled");
  assert_int_equal(p->steps[0].group->n_variants, 1);
  tn_program_destroy(p);
  F.target.tuner = NULL;
  shut();
}

/* Only tiled is left of the kernel, so that the other kernel computes the product. */
static void another_kernel_goes_before_one_that_faulted(void **state) {
  static const tn_item *const kernels[] = {&k_tiled.item, &k_last.item, NULL}, *const alone[] = {
                                                                                   &k_tiled.item, NULL};
  static tn_tuner tuner = {
      .time = time_nothing, .has_faulted = has_tiled_faulted, .knows_faults = knows_some};
  (void)state;
  for (int i = 0; i < 2; i++) {
    open_with(i == 0 ? kernels : alone);
    F.target.tuner = &tuner;
    tn_program *p = program_of(PRODUCT("4", "no"));
    assert_string_equal(p->steps[0].group->kernel->item.name, i == 0 ? "t.last" : "t.tiled");
    tn_program_destroy(p);
    F.target.tuner = NULL;
    shut();
  }
}

/* The devices of a run choose alike, although the second measures nothing. */
static void declines_of_one_device_are_those_of_another(void **state) {
  static const tn_item *const kernels[] = {&k_two.item, &k_last.item, NULL};
  (void)state;
  open_with(kernels);
  tn_program *p = program_of(PRODUCT("4", "no"));
  assert_string_equal(p->steps[0].group->choice.name, "tiled");
  decline_prepare(p, "no engine");
  tn_program_destroy(p);
  tn_answers *first = F.target.answers;
  const tn_target from = F.target;
  assert_int_equal(tn_answers_create(&F.env, &F.target.answers), TN_OK);
  assert_int_equal(tn_answers_copy_declines(&F.target, &from), TN_OK);
  p = program_of(PRODUCT("4", "no"));
  assert_string_equal(p->steps[0].group->choice.name, "direct");
  tn_program_destroy(p);
  tn_answers_destroy(first);
  shut();
}

static void an_op_of_which_all_kernels_declined_is_an_error(void **state) {
  static const tn_item *const kernels[] = {&k_last.item, NULL};
  (void)state;
  open_with(kernels);
  tn_program *p = program_of(PRODUCT("4", "no"));
  decline_prepare(p, "no engine");
  tn_program_destroy(p);
  assert_non_null(strstr(fixture_failure(&F, PRODUCT("4", "no"), TN_EUNSUPPORTED),
                         "t.last: when it was prepared: no engine"));
  shut();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equal_matches_are_asked_once),
      cmocka_unit_test(constants_tell_matches_apart),
      cmocka_unit_test(a_decline_is_remembered_with_its_reason),
      cmocka_unit_test(a_variant_that_declined_when_prepared_is_left_out),
      cmocka_unit_test(a_variant_that_declined_when_measured_is_left_out),
      cmocka_unit_test(a_kernel_without_variants_is_reported_once),
      cmocka_unit_test(a_variant_that_faulted_is_not_chosen_by_its_estimate),
      cmocka_unit_test(a_variant_that_faulted_is_taken_where_the_others_decline),
      cmocka_unit_test(another_kernel_goes_before_one_that_faulted),
      cmocka_unit_test(declines_of_one_device_are_those_of_another),
      cmocka_unit_test(an_op_of_which_all_kernels_declined_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
