/* docs/plugins/backend.md, step by step: writes its files, runs its commands in order, and provokes its
 * messages. */
#include <unistd.h>

#include "workshop.h"

static char *page;

/* Commands of the page with this build's compiler. A sanitized host loads sanitized plugins only. */
static const char prelude[] =
    "cc() { env " COMPILER " \"$@\"; }\n"
    "meson() { CFLAGS='" SANITIZE "' LDFLAGS='" SANITIZE "' command meson \"$@\"; }\n"
    "tenon() { \"$TENON\" \"$@\"; }\n"
    "set -e\n";

static char *read_whole(const char *path) {
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  char *text = calloc(1, 1 << 17);
  assert_true(fread(text, 1, (1 << 17) - 1, file) > 0);
  fclose(file);
  return text;
}

/* Goes on from `at` to the next block of a language; its text, NULL at the end. */
static char *next_block(const char **at, const char *language) {
  char fence[32];
  snprintf(fence, sizeof(fence), "\n```%s\n", language);
  const char *start = strstr(*at, fence);
  if (start == NULL) return NULL;
  start += strlen(fence);
  const char *end = strstr(start, "\n```\n");
  assert_non_null(end);
  *at = end;
  return strndup(start, (size_t)(end + 1 - start));
}

static void write_block(const char *language, const char *name) {
  const char *at = page;
  char *text = next_block(&at, language);
  assert_non_null(text);
  workshop_write(name, text);
  free(text);
}

static int set_up(void **state) {
  (void)state;
  page = read_whole(EXAMPLES_FOLDER "/../backend.md");
  workshop_open();
  workshop_install();
  workshop_do("cp \"$(find root -path '*/doc/tenon/plugins')\"/examples/acme_* .");
  write_block("meson", "meson.build");
  write_block("ini", "lenet.ini");
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  workshop_close();
  free(page);
  return 0;
}

/* ---- the page ---- */

static void what_the_page_says_works_from_the_first_command_to_the_last(void **state) {
  (void)state;
  const char *at = page;
  int n = 0;
  for (char *block; (block = next_block(&at, "sh")) != NULL; n++) {
    workshop_do("%s%s", prelude, block);
    free(block);
  }
  assert_true(n >= 6);
  assert_int_equal(access("build/tenon-acme.so", R_OK), 0);
}

static void what_meson_installs_can_be_indexed(void **state) {
  (void)state;
  workshop_do(
      "meson install -C build --destdir \"$PWD/vendor\" && mkdir own && find vendor -name 'tenon-acme.so' "
      "-exec cp {} own \\; && $TENON index own && sed -e '/^\\[plugins\\]/d' -e '/^load/d' lenet.ini > "
      "in.ini");
  workshop_do("$TENON plan in.ini --plugin own/tenon-acme.so");
}

/* ---- the example ---- */

static void its_own_kernel_is_preferred(void **state) {
  (void)state;
  json_t *plan = workshop_tenon("plan lenet.ini"), *op;
  size_t i;
  int own = 0, taken = 0;
  json_array_foreach(json_object_get(plan, "ops"), i, op) {
    const char *kernel = json_string_value(json_object_get(op, "kernel"));
    own += strcmp(kernel, "acme_copy") == 0;
    taken += strcmp(kernel, "copy") == 0;
  }
  json_decref(plan);
  assert_true(own > 0);
  assert_int_equal(taken, 0);
}

static void its_memory_is_as_planned(void **state) {
  (void)state;
  json_t *run = workshop_tenon("train lenet.ini --set run.output=");
  assert_true(workshop_number(run, "planned_peak_bytes") == workshop_number(run, "measured_peak_bytes"));
  json_decref(run);
}

static void the_list_of_what_it_lacks_is_needed(void **state) {
  (void)state;
  workshop_write("nothing.txt", "# it has everything\n");
  assert_int_equal(
      workshop_run("$TENON conformance --backend acme --plugin ./acme.so --case matmul/f64 --unsupported "
                   "nothing.txt"),
      70);
}

/* ---- messages ---- */

static void says(const char *where, const char *what) {
  if (strstr(where, what) == NULL) fail_msg("'%s' is not in: %s", what, where);
}

/* A change to the example, a command, and the message, which the program prints and the page lists. */
static const struct mistake {
  const char *change, *command, *says;
} mistakes[] = {
    {"", "train lenet.ini --set plugins.load=", "no backend is called \"acme\"; there is"},
    {"/[.]fill_zero = /d", "train lenet.ini", "copy and fill_zero come together or not at all"},
    {"/[.]capture = /d", "train lenet.ini",
     "capture, capture_launch and capture_delete come together or not at all"},
    {"/[.]accepts = /d", "train lenet.ini --set backend.use=acme",
     "it has no kernel for these ops, which memory plans insert: reorder, full"},
    {"", "train lenet.ini --set backend.acme.memory=100KB", "and device 'acme 0' has 0.1 MiB"},
    {"s/(w->body(&here) != TN_OK)/(w->body)/", "train lenet.ini", "it failed and did not say why"},
    {"/[.]enqueue = /d", "train lenet.ini --set backend.use=acme",
     "it accepts kernels of 'cpu' and has no enqueue"},
    {"s/dtype == TN_F64 && .*rank > 0/dtype == TN_F32/", "train lenet.ini --set backend.fallback=error",
     "no kernel takes"},
};

static void every_message_on_the_page_is_the_one_that_is_given(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
    const struct mistake *m = &mistakes[i];
    workshop_do("sed -e '%s' acme_backend.c > wrong.c && %s -w -shared -fPIC -o acme.so wrong.c $(pkg-config "
                "--cflags tenon)",
                m->change, COMPILER);
    assert_int_not_equal(workshop_run("$TENON %s", m->command), 0);
    if (strstr(workshop_err, m->says) == NULL) fail_msg("'%s' is not in: %s", m->says, workshop_err);
    if (strstr(page, m->says) == NULL) fail_msg("the page does not have '%s'", m->says);
  }
}

/* Devices that are wrong in one thing, and what `tenon conformance --case device` says of them. */
static const struct flaw {
  const char *change, *says;
} flaws[] = {
    {"s/memset(near(w->to), 0/memset(near(w->to), 1/", "device/zero: fill_zero leaves bytes"},
    {"s/aligned_alloc(64, (bytes + 63) .* 64)/aligned_alloc(16, (bytes + 15) \\/ 16 * 16)/",
     "device/memory: memory_new gives a block that is not aligned"},
    {"s/case COPY: .*; break;/case COPY: memmove(near(w->to), near(w->from), w->bytes); "
     "if (w->bytes < 64 \\&\\& ((uintptr_t)w->to \\& FAR)) ((char *)near(w->to))[w->bytes] = 1; break;/",
     "device/copy: a copy into a block changes"},
    {"s/case AWAIT:/case AWAIT: break;/", "device/events: a stream does not wait"},
    {"s/.ticket = e->recorded});/.ticket = e->recorded - 1});/", "device/events: a stream does not wait"},
    {"s/  reach(e, e->recorded);//", "device/events: a stream does not wait"},
    {"s/return keep(s->device->capture, env, work);/keep(s->device->capture, env, work);/",
     "device/capture: work runs while it is captured"},
    {"s/run(d, &w->capture->work.i.)/(void)i/", "device/capture: a replay does not repeat"},
    {"s/views.i..data = near(views.i..data);/views[i].data = views[i].data ? near(views[i].data) : views;/",
     "device/launch: acme: 'add of conformance': an absent operand"},
    {"s/if (w->what == RECORD) tell/if (w->what == RECORD \\&\\& !atomic_load(\\&d->failed)) tell/",
     "device/failure: it hangs"},
    {"s/break_device(d, w->l->name, text)/break_device(d, \"a kernel\", text)/",
     "device/failure: the text of a failure does not name"},
    {"s/  reach(&s->end, s->end.recorded);/&\\n  return TN_OK;/",
     "device/failure: stream_wait does not return TN_EDEVICE"},
};

/* A device that does not wait races, which ThreadSanitizer would say first. */
#define KNOWN_TO_RACE "TSAN_OPTIONS=report_bugs=0 "

static void write_wrong(const char *change) {
  workshop_do("sed -e '%s' acme_backend.c > wrong.c && %s -w -shared -fPIC -o wrong.so wrong.c "
              "$(pkg-config --cflags tenon)",
              change, COMPILER);
}

static void a_device_that_is_wrong_is_found(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof(flaws) / sizeof(flaws[0]); i++) {
    write_wrong(flaws[i].change);
    int code = workshop_run(
        KNOWN_TO_RACE "$TENON conformance --backend acme --plugin ./wrong.so --case device --timeout 10");
    int ends = strstr(flaws[i].says, "it hangs") || strstr(workshop_err, "failed: device: it broke in ");
    int expected = ends ? 71 : 70; /* of a suite that ends with the case */
    if (code != expected) fail_msg("%s: exit code %d, expected %d", flaws[i].change, code, expected);
    if (strstr(workshop_err, flaws[i].says) == NULL) fail_msg("%s: %s", flaws[i].change, workshop_err);
  }
}

/* ---- a device that accepts no kernels ---- */

/* acme_backend.c with kernels of its own instead of those of the cpu, and a change. */
static void write_own(const char *change) {
  workshop_do(
      "sed -e '/[.]accepts = /d' -e '/^TN_PLUGIN/d' acme_backend.c | cat - '%s' | sed -e '%s' > own.c && "
      "%s -w -shared -fPIC -o own.so own.c $(pkg-config --cflags tenon)",
      OWN_KERNELS, change, COMPILER);
}

#define OWN "$TENON conformance --backend acme --plugin ./own.so --case device --timeout 10"

static void a_device_with_kernels_of_its_own_is_tested_with_them(void **state) {
  (void)state;
  workshop_write("nothing.txt", "# it has everything\n");
  write_own("");
  workshop_do(OWN " --unsupported nothing.txt");
  says(workshop_out, " 10 passed");
  workshop_do(OWN " --set backend.capture=no");
}

static const struct flaw own_flaws[] = {
    {"s/= .(const float .)l->prepared/= 5/", "device/launch: a launch of full does not write its result"},
    {"s/TN_COPY_ON_DEVICE, l->out.0..data, l->in.0..data, bytes/TN_COPY_ON_DEVICE, l->out[0].data, "
     "l->in[0].data, bytes \\/ 2/",
     "device/launch: a launch of copy does not see its operand or its result"},
    {"s/run(d, &w->capture->work.i.)/(void)i/",
     "device/launch: a later run of a launch, or its replay, gives"},
    {"s/return tn_fail(l, TN_EDEVICE, NULL, .broken on purpose.)/return TN_OK/",
     "device/failure: event_wait does not report a failure"},
    {"s/  reach(&s->end, s->end.recorded);/&\\n  return TN_OK;/",
     "device/failure: stream_wait does not return TN_EDEVICE"},
    {"s/if (w->what == RECORD) tell/if (w->what == RECORD \\&\\& !atomic_load(\\&d->failed)) tell/",
     "device/failure: it hangs"},
};

static void what_is_wrong_with_such_a_device_is_found(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof(own_flaws) / sizeof(own_flaws[0]); i++) {
    write_own(own_flaws[i].change);
    int code = workshop_run(KNOWN_TO_RACE OWN);
    int expected = strstr(own_flaws[i].says, "it hangs") ? 71 : 70;
    if (code != expected) fail_msg("%s: exit code %d, expected %d", own_flaws[i].change, code, expected);
    says(workshop_err, own_flaws[i].says);
  }
}

/* Without a kernel that fails, the case is not tried, and the report says so. */
static void a_case_that_cannot_be_tried_is_reported(void **state) {
  (void)state;
  workshop_write("nothing.txt", "# it has everything\n");
  write_own("s/y = device_failure(x)/y = copy(x)/");
  workshop_do(OWN);
  says(workshop_out, "device/failure: no kernel of its family has the pattern \"y = device_failure(x)\"");
  says(workshop_out, " 9 passed");
  assert_int_equal(workshop_run(OWN " --unsupported nothing.txt"), 70);
  says(workshop_err, "device/failure: no kernel of its family");
  workshop_write("failure.txt", "device/failure: there is no way to break it\n");
  workshop_do(OWN " --unsupported failure.txt");
}

/* Not five thousand cases that fail alike. */
static void a_device_that_breaks_ends_the_suite(void **state) {
  (void)state;
  write_wrong("s/if (w->body(&here) != TN_OK)/static int n; if (++n == 20 || w->body(\\&here) != TN_OK)/");
  assert_int_equal(workshop_run("$TENON conformance --backend acme --plugin ./wrong.so --case add"), 71);
  says(workshop_err, ": the device broke: acme: '");
  says(workshop_err, "device: it broke in add/");
  says(workshop_out, " 2 failed");
}

/* With everything that the first line said. */
static void a_failing_case_comes_with_the_line_that_repeats_it(void **state) {
  (void)state;
  write_wrong("s/memset(near(w->to), 0/memset(near(w->to), 1/; s/case AWAIT:/case AWAIT: break;/");
  assert_int_equal(workshop_run(KNOWN_TO_RACE
                                "$TENON conformance --backend acme --plugin ./wrong.so --set devices=2 "
                                "--set backend.acme.memory=64MiB --device 1 --case device"),
                   70);
  const char *line =
      "again        tenon conformance --backend acme --plugin ./wrong.so --device 1 --set devices=2 "
      "--set backend.acme.memory=64MiB --case device/";
  char both[2][256];
  for (int i = 0; i < 2; i++) {
    snprintf(both[i], sizeof(both[i]), "%s%s\n", line, i == 0 ? "zero" : "events");
    says(workshop_out, both[i]);
  }
}

static void capture_is_turned_off_as_in_a_configuration(void **state) {
  (void)state;
  write_wrong("s/run(d, &w->capture->work.i.)/(void)i/");
  const char *command =
      "$TENON conformance --backend acme --plugin ./wrong.so --case relu/f32 --set backend.%s";
  char line[256];
  snprintf(line, sizeof(line), command, "capture=yes");
  assert_int_equal(workshop_run("%s", line), 70);
  snprintf(line, sizeof(line), command, "capture=no");
  assert_int_equal(workshop_run("%s", line), 0);
  snprintf(line, sizeof(line), command, "cpu.threads=1");
  assert_int_equal(workshop_run("%s", line), 2);
  says(workshop_err, "expected OPTION=VALUE or backend.acme.OPTION=VALUE, or backend.capture=yes|no");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_the_page_says_works_from_the_first_command_to_the_last),
      cmocka_unit_test(what_meson_installs_can_be_indexed),
      cmocka_unit_test(its_own_kernel_is_preferred),
      cmocka_unit_test(its_memory_is_as_planned),
      cmocka_unit_test(the_list_of_what_it_lacks_is_needed),
      cmocka_unit_test(a_device_that_is_wrong_is_found),
      cmocka_unit_test(a_device_with_kernels_of_its_own_is_tested_with_them),
      cmocka_unit_test(what_is_wrong_with_such_a_device_is_found),
      cmocka_unit_test(a_case_that_cannot_be_tried_is_reported),
      cmocka_unit_test(a_device_that_breaks_ends_the_suite),
      cmocka_unit_test(a_failing_case_comes_with_the_line_that_repeats_it),
      cmocka_unit_test(capture_is_turned_off_as_in_a_configuration),
      cmocka_unit_test(every_message_on_the_page_is_the_one_that_is_given),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
