/* Blocks: arguments, defaults, inputs, outputs, nesting, paths. */
#include "tests/unit/model/rig.h"

#include <stdio.h>

#define BLOCK(lines) "[block b]\n" lines

static void a_block_is_used_as_a_layer_is(void **state) {
  (void)state;
  const char *ini = LAYERS("    a: b\n    c: b * 2\n    d: scale\n")
      BLOCK("layers =\n    p: scale\n    relu\n    q: scale\n");
  rig_expect_states(ini, "a.p.gain a.q.gain c.0.p.gain c.0.q.gain c.1.p.gain c.1.q.gain d.gain");
}

static void arguments_are_given_by_place_or_name(void **state) {
  (void)state;
  const char *block = BLOCK("args = by, n=2,\n  more=by+1\nlayers =\n    affine(by) * n\n    affine(more)\n");
  char ini[512];
  snprintf(ini, sizeof ini, "%s%s", LAYERS("    b(5)\n"), block);
  rig_expect_graph(ini, "%2: f32[2, 3] = affine(x, scale=5) in b@0.0.affine@0.0\n"
                        "%3: f32[2, 3] = affine(%2, scale=5) in b@0.0.affine@0.1\n"
                        "%4: f32[2, 3] = affine(%3, scale=6) in b@0.0.affine@1.0\n"
                        "output output = %4\n");
  snprintf(ini, sizeof ini, "%s%s", LAYERS("    b(more=9, by=5, n=1)\n"), block);
  rig_expect_graph(ini, "%2: f32[2, 3] = affine(x, scale=5) in b@0.0.affine@0.0\n"
                        "%3: f32[2, 3] = affine(%2, scale=9) in b@0.0.affine@1.0\n"
                        "output output = %3\n");
  snprintf(ini, sizeof ini, "%s%s", LAYERS("    b(5, 1, 9)\n"), block);
  rig_expect_graph(ini, "%2: f32[2, 3] = affine(x, scale=5) in b@0.0.affine@0.0\n"
                        "%3: f32[2, 3] = affine(%2, scale=9) in b@0.0.affine@1.0\n"
                        "output output = %3\n");
}

/* Arguments are the caller's expressions, in the caller's names. */
static void arguments_may_use_the_callers_own(void **state) {
  (void)state;
  rig_expect_graph(LAYERS("    outer(4)\n") "[block outer]\nargs = n\nlayers =\n    inner(n * 2)\n"
                                            "[block inner]\nargs = n\nlayers =\n    affine(n + 1)\n",
                   "%2: f32[2, 3] = affine(x, scale=9) in outer@0.0.inner@0.0.affine@0.0\n"
                   "output output = %2\n");
}

/* Arguments of every form that an option takes: initializer, word, list. */
static void arguments_are_any_value(void **state) {
  (void)state;
  rig_expect_graph(LAYERS("    b([1], yes)\n")
                       BLOCK("args = axes, keep=no\nlayers =\n    reduce_sum(axes) if keep\n"),
                   "%2: f32[2] = reduce_sum(x, axes=[1]) in b@0.0.reduce_sum@0.0\n"
                   "output output = %2\n");
}

static void several_inputs_have_names(void **state) {
  (void)state;
  rig_expect_graph(LAYERS("    p: tanh\n    q: sigmoid\n    b <- q, p\n")
                       BLOCK("inputs = deep, skip\nlayers =\n    relu <- skip\n    sum <- in, deep, skip\n"),
                   "%2: f32[2, 3] = tanh(x) in p\n"
                   "%3: f32[2, 3] = sigmoid(%2) in q\n"
                   "%4: f32[2, 3] = relu(%2) in b@2.0.relu@0.0\n"
                   "%5: f32[2, 3] = add(%3, %3) in b@2.0.sum@1.0\n"
                   "%6: f32[2, 3] = add(%5, %2) in b@2.0.sum@1.0\n"
                   "output output = %6\n");
}

static void a_block_begins_with_its_input(void **state) {
  (void)state;
  rig_expect_graph(LAYERS("    relu\n    b\n") BLOCK("layers =\n    a: tanh\n    sum <- a, in\n"),
                   "%2: f32[2, 3] = relu(x) in relu@0.0\n"
                   "%3: f32[2, 3] = tanh(%2) in b@1.0.a\n"
                   "%4: f32[2, 3] = add(%3, %2) in b@1.0.sum@1.0\n"
                   "output output = %4\n");
}

static void several_outputs_are_named_in_the_block(void **state) {
  (void)state;
  rig_expect_graph(LAYERS("    u, v: b\n    sum <- v, u\n")
                       BLOCK("layers =\n    p, q: twice\n    relu\noutputs = q,\n  p\n"),
                   "%2: f32[2, 3] = affine(x, shift=1) in u.p\n"
                   "%3: f32[2, 3] = affine(x, shift=2) in u.p\n"
                   "%4: f32[2, 3] = relu(%2) in u.relu@1.0\n"
                   "%5: f32[2, 3] = add(%2, %3) in sum@1.0\n"
                   "output output = %5\n");
}

static void names_inside_do_not_meet_names_outside(void **state) {
  (void)state;
  rig_expect_states(LAYERS("    p: scale\n    a: b\n    q: scale <- p\n")
                        BLOCK("layers =\n    p: scale\n    q: scale\n"),
                    "p.gain a.p.gain a.q.gain q.gain");
}

static void the_models_inputs_are_visible_everywhere(void **state) {
  (void)state;
  rig_expect_graph(LAYERS("    relu\n    b\n") BLOCK("layers =\n    sum <- in, data.x\n"),
                   "%2: f32[2, 3] = relu(x) in relu@0.0\n"
                   "%3: f32[2, 3] = add(%2, x) in b@1.0.sum@0.0\n"
                   "output output = %3\n");
}

static void blocks_nest(void **state) {
  (void)state;
  rig_expect_states(LAYERS("    a: outer * 2\n") "[block outer]\nlayers =\n    i: inner\n    s: scale\n"
                                                 "[block inner]\nlayers =\n    s: scale\n",
                    "a.0.i.s.gain a.0.s.gain a.1.i.s.gain a.1.s.gain");
}

/* With a condition, a block may even use itself. */
static void a_block_may_use_itself_if_it_ends(void **state) {
  (void)state;
  rig_expect_states(LAYERS("    a: b(3)\n")
                        BLOCK("args = n\nlayers =\n    s: scale\n    next: b(n - 1) if n > 1\n"),
                    "a.s.gain a.next.s.gain a.next.next.s.gain");
}

static void a_shared_block_shares_everything_inside(void **state) {
  (void)state;
  rig_expect_states(LAYERS("    a: b(2)\n    c: @a\n") BLOCK(
                        "args = n\nlayers =\n    s: scale(by=n)\n    t: @s\n    u: scale(gain=@s.gain)\n"),
                    "a.s.gain");
}

static void a_tie_is_looked_up_in_the_block_first(void **state) {
  (void)state;
  rig_expect_states(LAYERS("    s: scale\n    a: b\n    c: other\n") BLOCK(
                        "layers =\n    s: scale\n    t: scale(gain=@s.gain)\n") "[block other]\nlayers =\n   "
                                                                                " t: scale(gain=@s.gain)\n   "
                                                                                " u: scale(gain=@a.s.gain)\n",
                    "s.gain a.s.gain");
}

static void mistakes_name_the_call_and_the_block(void **state) {
  (void)state;
  rig_expect_error(LAYERS("    a: b\n") BLOCK("args = n\nlayers =\n    relu\n"),
                   "m.ini:4: block 'b' needs the argument 'n'");
  rig_expect_error(LAYERS("    a: b(1, 2)\n") BLOCK("args = n\nlayers =\n    relu\n"),
                   "m.ini:4: block 'b' takes 1 argument, given 2");
  rig_expect_error(LAYERS("    a: b(m=1)\n") BLOCK("args = n\nlayers =\n    relu\n"),
                   "m.ini:4: block 'b' has no argument 'm', it has n");
  rig_expect_error(LAYERS("    a: b(1, n=1)\n") BLOCK("args = n\nlayers =\n    relu\n"),
                   "m.ini:4: the argument 'n' of block 'b' is given twice");
  rig_expect_error(LAYERS("    a: b\n") BLOCK("args = n=1, n=2\nlayers =\n    relu\n"),
                   "m.ini:4: in block 'b': m.ini:6: [block b] args: the argument 'n' is given twice");
  rig_expect_error(LAYERS("    a: b\n") BLOCK("args = n=m, m=1\nlayers =\n    affine(n)\n"),
                   "m.ini:4: in block 'b': m.ini:8: affine on (f32[2, 3]): scale: 'm' is not a number");
  rig_expect_error(LAYERS("    a: b\n") BLOCK("args = n=1//0\nlayers =\n    relu\n"),
                   "m.ini:4: the default of 'n' in block 'b': 1 // 0 divides by zero");
  rig_expect_error(
      LAYERS("    a: b\n") BLOCK("args = 3\nlayers =\n    relu\n"),
      "m.ini:4: in block 'b': m.ini:6: [block b] args: entry 1 is not a name, expected NAME or NAME=default");
  rig_expect_error(LAYERS("    a: b\n") BLOCK("args = n=\nlayers =\n    relu\n"),
                   "m.ini:4: in block 'b': m.ini:6: [block b] args: expected a value, found ')'");
  rig_expect_error(LAYERS("    a: b\n") BLOCK("inputs = p, q\nlayers =\n    relu\n"),
                   "m.ini:4: block 'b' takes 2 inputs, given 1");
  rig_expect_error(LAYERS("    a: b\n") BLOCK("args = \n"),
                   "m.ini:4: in block 'b': m.ini:5: [block b] has no `layers`, expected a layer a line");
  rig_expect_error(
      LAYERS("    a: b\n") BLOCK("layers =\n    p: scale(by=-1)\n"),
      "m.ini:4: in block 'b': m.ini:7: scale 'a.p' on (f32[2, 3]): by: -1 is out of range, expected >= 0");
  rig_expect_error(LAYERS("    a: b\n") BLOCK("layers =\n    relu\noutputs = q\n"),
                   "m.ini:4: in block 'b': m.ini:8: outputs: there is no value 'q' here, expected the name "
                   "of an earlier line or 'in'");
  rig_expect_error(LAYERS("    b\n") BLOCK("layers =\n    p: scale\n"),
                   "m.ini:4: in block 'b': m.ini:7: scale on (f32[2, 3]): it has parameters, and so the "
                   "block around it needs a name, as in `body: b(...)`");
  rig_expect_error(
      LAYERS("    a: b\n") BLOCK("layers =\n    a: b\n"),
      "m.ini:4: in block 'b': m.ini:7: in block 'b': blocks nest deeper than 32; does block 'b' use itself?");
  rig_expect_error(
      LAYERS("    a: b\n    a.p: scale\n") BLOCK("layers =\n    p: scale\n"),
      "m.ini:5: 'a.p' is the path of an earlier layer; take another name, or @a.p for its parameters");
  rig_expect_error(LAYERS("    a: scale\n") "[block scale]\nlayers =\n    relu\n",
                   "m.ini:4: m.ini:5: [block scale] has the name of a layer, expected another one");
}

/* Blocks of a few lines that stand for 10^12 layers, for as many lines that apply nothing, or for an argument
 * of 32^4 numbers. */
static void a_model_without_end_is_refused(void **state) {
  (void)state;
  static const char too_many[] = "the model has more than 100000 layers when its blocks and repeats are "
                                 "expanded, expected at most 100000; lower the repeat counts";
  char ini[4096], want[1024];
  snprintf(want, sizeof want, "m.ini:4: in block 'b': m.ini:7: in block 'c': m.ini:10: %s", too_many);
  rig_expect_error(LAYERS("    b * 10000\n")
                       BLOCK("layers =\n    c * 10000\n") "[block c]\nlayers =\n    relu * 10000\n",
                   want);
  rig_expect_error(LAYERS("    b * 10000\n")
                       BLOCK("layers =\n    c * 10000\n") "[block c]\nlayers =\n    relu * 0\n",
                   want);
  rig_expect_error(LAYERS("    b * 10000\n")
                       BLOCK("layers =\n    c * 10000\n") "[block c]\nlayers =\n    relu if 0\n",
                   want);
  size_t n = (size_t)snprintf(ini, sizeof ini, "%s", LAYERS("    b0(1)\n"));
  for (int i = 0; i < 4; i++) {
    n += (size_t)snprintf(ini + n, sizeof ini - n, "[block b%d]\nargs = x\nlayers =\n    b%d([x", i, i + 1);
    for (int k = 1; k < 32; k++) n += (size_t)snprintf(ini + n, sizeof ini - n, ", x");
    n += (size_t)snprintf(ini + n, sizeof ini - n, "])\n");
  }
  snprintf(ini + n, sizeof ini - n, "[block b4]\nargs = x\nlayers = reduce_sum(x)\n");
  rig_expect_error(ini,
                   "m.ini:4: in block 'b0': m.ini:8: in block 'b1': m.ini:12: in block 'b2': m.ini:16: in "
                   "block 'b3': m.ini:20: a value has more than 1048576 bytes, expected at most 1048576; "
                   "arguments that contain others several times make values this long");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_block_is_used_as_a_layer_is, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(arguments_are_given_by_place_or_name, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(arguments_may_use_the_callers_own, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(arguments_are_any_value, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(several_inputs_have_names, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(a_block_begins_with_its_input, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(several_outputs_are_named_in_the_block, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(names_inside_do_not_meet_names_outside, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(the_models_inputs_are_visible_everywhere, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(blocks_nest, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(a_block_may_use_itself_if_it_ends, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(a_shared_block_shares_everything_inside, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(a_tie_is_looked_up_in_the_block_first, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(a_model_without_end_is_refused, rig_open, rig_close),
      cmocka_unit_test_setup_teardown(mistakes_name_the_call_and_the_block, rig_open, rig_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
