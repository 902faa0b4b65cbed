/* How launches that cannot be captured cut a segment. */
#include "tests/unit/compile/fixture.h"

#include <stdio.h>

#include "core/compile/capture_parts.h"

enum { MOST = 16 };

/* A program of one letter per step: k and c are a kernel and a collective that are captured, K and C are not.
 * A digit behind a step is the step that it awaits. */
typedef struct drawn {
  tn_step steps[MOST];
  tn_group groups[MOST];
  tn_segment segment;
  tn_program program;
} drawn;

static void draw(drawn *d, const char *text) {
  int32_t n = 0;
  *d = (drawn){.segment = {.awaits = TN_AWAITS_NONE}};
  for (const char *at = text; *at != '\0'; at++) {
    if (*at >= '0' && *at <= '9') {
      d->steps[n - 1].awaits.of[TN_STREAM_COMM] = *at - '0';
      continue;
    }
    d->groups[n].choice.capturable = *at == 'k' || *at == 'c';
    d->groups[n].role = *at == 'c' || *at == 'C' ? TN_STREAM_COMM : TN_STREAM_COMPUTE;
    d->steps[n] = (tn_step){.group = &d->groups[n], .awaits = TN_AWAITS_NONE};
    n++;
  }
  d->segment.n = n;
  d->program =
      (tn_program){.steps = d->steps, .n_steps = n, .segments = &d->segment, .n_segments = n > 0 ? 1 : 0};
}

/* "[0 3 <-1 ->2]" is a captured part of steps 0 to 2 that awaits step 1 and joins step 2; "(3 1)" is not
 * captured. */
static void expect(const char *text, bool captures, const char *expected) {
  tn_capture_part parts[2 * MOST];
  char got[512] = "";
  size_t at = 0;
  drawn d;
  draw(&d, text);
  int32_t n = tn_capture_parts_list(&d.program, captures, parts);
  assert_true((size_t)n <= tn_capture_parts_most(&d.program));
  for (int32_t i = 0; i < n; i++) {
    const tn_capture_part *p = &parts[i];
    at += (size_t)snprintf(got + at, sizeof got - at, "%c%d %d", p->captured ? '[' : '(', p->first, p->n);
    int32_t awaits = p->awaits.of[TN_STREAM_COMM];
    if (awaits >= 0) at += (size_t)snprintf(got + at, sizeof got - at, " <-%d", awaits);
    int32_t joins = p->joins.of[TN_STREAM_COMM];
    if (joins >= 0) at += (size_t)snprintf(got + at, sizeof got - at, " ->%d", joins);
    at += (size_t)snprintf(got + at, sizeof got - at, "%c", p->captured ? ']' : ')');
  }
  if (strcmp(got, expected) != 0) fail_msg("%s: %s, expected %s", text, got, expected);
}

static void a_segment_without_such_launches_is_one_part(void **state) {
  (void)state;
  expect("kkk", true, "[0 3]");
  expect("kck1", true, "[0 3]");
  expect("kckc", true, "[0 4 ->3]");
  expect("kCKk", false, "(0 4)");
  expect("", true, "");
}

static void a_kernel_that_cannot_be_captured_cuts(void **state) {
  (void)state;
  expect("kkKkk", true, "[0 2](2 1)[3 2]");
  expect("KKk", true, "(0 2)[2 1]");
  expect("kK", true, "[0 1](1 1)");
  /* the first part awaits its collective, which a later part reads */
  expect("kckKk1", true, "[0 3 ->1](3 1)[4 1]");
  expect("kck1Kk", true, "[0 3](3 1)[4 1]");
}

static void a_collective_that_cannot_be_captured_overlaps_up_to_its_first_reader(void **state) {
  (void)state;
  expect("kCkkk1k", true, "[0 1](1 1)[2 2][4 2 <-1]");
  expect("kCkk", true, "[0 1](1 1)[2 2]");
  /* awaiting the second collective includes the first */
  expect("kCkCkk3k1", true, "[0 1](1 1)[2 1](3 1)[4 1][5 2 <-3]");
  expect("kCkCkk1k3", true, "[0 1](1 1)[2 1](3 1)[4 1][5 1 <-1][6 1 <-3]");
  /* a launch that is enqueued awaits it itself */
  expect("kCK1k1", true, "[0 1](1 2)[3 1]");
}

/* The collectives of a rank run in order. */
static void a_captured_collective_follows_those_outside_of_captures(void **state) {
  (void)state;
  expect("kCkck", true, "[0 1](1 1)[2 1][3 2 <-1 ->3]");
  expect("kCckc", true, "[0 1](1 1)[2 3 <-1 ->4]");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_segment_without_such_launches_is_one_part),
      cmocka_unit_test(a_kernel_that_cannot_be_captured_cuts),
      cmocka_unit_test(a_collective_that_cannot_be_captured_overlaps_up_to_its_first_reader),
      cmocka_unit_test(a_captured_collective_follows_those_outside_of_captures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
