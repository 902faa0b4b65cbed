/* `tenon reference --header PLUGIN`: the ops of a plugin as C functions, built and called as a stranger does
 * it, against an installed Tenon. */
#include "workshop.h"

/* Builds NAME.so of a source, with the headers of the folder. */
static void build(const char *name, const char *source) {
  workshop_do("%s -std=c11 -O2 -Wall -Wextra -Wshadow -pedantic -Werror -shared -fPIC -I. -o %s.so %s "
              "$(pkg-config --cflags tenon)",
              COMPILER, name, source);
}

static int set_up(void **state) {
  (void)state;
  workshop_open();
  workshop_install();
  build("odd", OWN_FOLDER "/odd_op.c");
  workshop_do("$TENON reference --header odd --plugin ./odd.so >odd_ops.h");
  build("odd_layer", OWN_FOLDER "/odd_layer.c");
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  workshop_close();
  return 0;
}

static void holds(const char *text, const char *part) {
  if (strstr(text, part) == NULL) fail_msg("there is no\n  %s\nin\n%s", part, text);
}

/* A model that begins with the layer, after pass `model`. */
static const char *model_of(const char *layer) {
  char text[1024];
  snprintf(text, sizeof text,
           "[run]\noutput =\n[data]\nsource = digits\ntransforms = to_float\nbatch = 4\n[model]\n"
           "inputs = image: f32[1, 28, 28]\nlayers =\n    %s\n    flatten\n    fc: linear(10)\n"
           "loss = cross_entropy\n",
           layer);
  workshop_write("net.ini", text);
  workshop_do("$TENON plan net.ini --dump-after model --set backend.use=cpu --plugin ./odd.so "
              "--plugin ./odd_layer.so");
  return workshop_out;
}

static void every_option_reaches_the_op(void **state) {
  (void)state;
  holds(
      model_of("odd_given"),
      "odd(image, image, image, image, dims=[4, 1, 28, 28], flag=yes, build=7, x=0.5, text=other, path=/tmp, "
      "mode=circular, axes=[1, 0], default=[0.25, 0.5], n_axes=512, time=2s, init=ones, register=/usr)");
}

static void what_is_left_out_has_its_default(void **state) {
  (void)state;
  holds(model_of("odd_left_out"), "odd(image, dims=[4, 1, 28, 28], default=[]) in");
}

static void names_of_the_language_get_an_underscore(void **state) {
  (void)state;
  workshop_do("tr -s ' \\n' ' ' <odd_ops.h");
  holds(workshop_out,
        "static inline tn_val tn_odd(tn_build *build, tn_val x, tn_val template_, int64_t n_xs, "
        "const tn_val *xs, const tn_type *type, int32_t flag, int64_t build_, double x_, const char *text, "
        "const char *path, int32_t mode, int64_t n_axes, const int64_t *axes, int64_t n_default_, "
        "const double *default_, int64_t n_axes_, double time, const char *init, const char *register_) {");
}

static void a_text_cannot_end_the_comment(void **state) {
  (void)state;
  workshop_do("cat odd_ops.h");
  holds(workshop_out,
        "/* odd: its first operand * /\n * A second sentence / * of the notes.\n *   (x:T, template?:T, "
        "xs*:T) -> (y:any); T in f32 f64\n *   dims: of the result\n");
  holds(workshop_out,
        " *   x: the name of an operand; default 1\n *   text: ends here * / int broken; / * or does not; "
        "default word\n");
  holds(workshop_out, " *   mode (0 zeros, 1 reflect, 2 circular): a choice; default zeros\n");
}

/* A header for C++ programs, too. */
static void the_header_is_one_of_cpp(void **state) {
  (void)state;
  if (workshop_run("command -v g++") != 0) skip();
  workshop_do(
      "echo '#include \"odd_ops.h\"' | g++ -x c++ -std=c++17 -pedantic -Wall -Wextra -Werror -fsyntax-only "
      "-I. $(pkg-config --cflags tenon) -");
}

static void a_plugin_without_ops_is_refused(void **state) {
  (void)state;
  assert_int_equal(workshop_run("$TENON reference --header odd_layers --plugin ./odd_layer.so"), 65);
  holds(workshop_err, "tenon reference: no plugin 'odd_layers' with ops is loaded; core has Tenon's own, and "
                      "--plugin FILE loads another");
  assert_int_equal(workshop_run("$TENON reference pages --header core"), 2);
  holds(workshop_err, "expected FOLDER or --header PLUGIN");
  assert_int_equal(workshop_run("$TENON reference"), 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_option_reaches_the_op),
      cmocka_unit_test(what_is_left_out_has_its_default),
      cmocka_unit_test(names_of_the_language_get_an_underscore),
      cmocka_unit_test(a_text_cannot_end_the_comment),
      cmocka_unit_test(the_header_is_one_of_cpp),
      cmocka_unit_test(a_plugin_without_ops_is_refused),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
