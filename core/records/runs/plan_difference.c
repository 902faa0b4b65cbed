/* core/records/runs/plan_difference.c: the first difference between two records of a program, as text.
 */
#include <string.h>

#include "core/records/runs/plan_file.h"

static const char *plan_difference_text(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

static void plan_difference_add_kernel(const json_t *launch, tn_text *text) {
  tn_text_addf(text, "kernel %s", plan_difference_text(launch, "kernel"));
  if (*plan_difference_text(launch, "variant"))
    tn_text_addf(text, " \"%s\"", plan_difference_text(launch, "variant"));
  tn_text_addf(text, " of plugin %s %s", plan_difference_text(launch, "plugin"),
               plan_difference_text(launch, "version"));
}

static void plan_difference_add_launch(const json_t *launch, tn_text *text) {
  const char *layer = plan_difference_text(launch, "layer");
  tn_text_addf(text, "%s%s%s", plan_difference_text(launch, "op"), *layer ? " of " : "", layer);
}

static bool plan_difference_equal(const json_t *a, const json_t *b, const char *key) {
  return json_equal(json_object_get(a, key), json_object_get(b, key)) != 0;
}

/* The difference between two launches at the same position of a program; false: they are equal. */
static bool plan_difference_of_launches(const json_t *then, const json_t *now, size_t index, tn_text *text) {
  static const char *const choice[] = {"kernel", "plugin", "version", "variant", "id"};
  if (!plan_difference_equal(then, now, "op") || !plan_difference_equal(then, now, "layer")) {
    tn_text_addf(text, "launch %zu was ", index);
    plan_difference_add_launch(then, text);
    tn_text_add(text, " by ");
    plan_difference_add_kernel(then, text);
    tn_text_add(text, " and is ");
    plan_difference_add_launch(now, text);
    tn_text_add(text, " by ");
    plan_difference_add_kernel(now, text);
    return true;
  }
  for (size_t i = 0; i < sizeof choice / sizeof *choice; i++) {
    if (plan_difference_equal(then, now, choice[i])) continue;
    tn_text_addf(text, "launch %zu, ", index);
    plan_difference_add_launch(now, text);
    tn_text_add(text, ", was computed by ");
    plan_difference_add_kernel(then, text);
    tn_text_add(text, " and is computed by ");
    plan_difference_add_kernel(now, text);
    return true;
  }
  if (plan_difference_equal(then, now, "reads") && plan_difference_equal(then, now, "writes") &&
      plan_difference_equal(then, now, "workspace"))
    return false;
  tn_text_addf(text, "launch %zu, ", index);
  plan_difference_add_launch(now, text);
  tn_text_add(text, ", has other shapes, layouts or locations in memory");
  return true;
}

/* "image: f32[8, 3] is image: f32[16, 3] now"; false: the inputs are equal. */
static bool plan_difference_of_inputs(const json_t *then, const json_t *now, tn_text *text) {
  const json_t *old = json_object_get(then, "inputs"), *new = json_object_get(now, "inputs");
  if (json_equal(old, new)) return false;
  for (size_t i = 0; i < json_array_size(old) && i < json_array_size(new); i++) {
    const char *a = json_string_value(json_array_get(old, i)), *b = json_string_value(json_array_get(new, i));
    if (a == NULL || b == NULL || strcmp(a, b) == 0) continue;
    tn_text_addf(text, "input %s is %s now", a, b);
    return true;
  }
  tn_text_addf(text, "it had %zu inputs and has %zu", json_array_size(old), json_array_size(new));
  return true;
}

void tn_plan_describe_differences(const json_t *then, const json_t *now, tn_text *text) {
  if (plan_difference_of_inputs(then, now, text)) return;
  const json_t *old = json_object_get(then, "launches"), *new = json_object_get(now, "launches");
  size_t n = json_array_size(old) < json_array_size(new) ? json_array_size(old) : json_array_size(new);
  for (size_t i = 0; i < n; i++)
    if (plan_difference_of_launches(json_array_get(old, i), json_array_get(new, i), i, text)) return;
  if (json_array_size(old) != json_array_size(new))
    tn_text_addf(text, "it had %zu launches and has %zu", json_array_size(old), json_array_size(new));
  else
    tn_text_add(text, "an attribute of an op differs");
}
