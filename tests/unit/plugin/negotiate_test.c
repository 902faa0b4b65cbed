/* Negotiation between made-up plugins and made-up hosts. */
#include "tests/support/check_status.h"

#include "core/plugin/handles.h"

#include "core/base/arena.h"
#include "core/plugin/kinds.h"
#include "core/plugin/registry.h"
#include "tenon/plugin/backend.h"
#include "tenon/plugin/communicator.h"
#include "tenon/plugin/layer.h"
#include "tenon/plugin/observer.h"
#include "tenon/plugin/optimizer.h"
#include "tenon/plugin/precision.h"
#include "tenon/plugin/schedule.h"
#include "tenon/plugin/source.h"
#include "tenon/plugin/transform.h"

static test_env B;
static tn_arena arena;

static int set_up(void **state) {
  (void)state;
  test_env_start(&B);
  B.env.api = &tn_host_api;
  arena = tn_arena_new(&B);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  tn_arena_free(&arena);
  return B.live == 0 ? 0 : -1;
}

/* ---- a plugin to be spoilt ---- */

struct leaky {
  double slope;
  int64_t n;
};
static const tn_option leaky_options[] = {
    TN_OPT(struct leaky, slope, TN_OPT_FLOAT, "0.01", ">= 0", "slope below zero"),
    TN_OPT(struct leaky, n, TN_OPT_INT, "1", NULL, "how often"), TN_OPT_END};

static tn_status build(tn_build *b, const void *options) {
  (void)b;
  (void)options;
  return TN_OK;
}

static const tn_layer_kind leaky_layer = {
    .item = TN_ITEM(tn_layer_kind, TN_LAYER, "leaky", "a layer", struct leaky, leaky_options),
    .max_in = 1,
    .build = build};

static const tn_plugin *plugin_of(const tn_item *const *items) {
  static tn_plugin plugin;
  plugin = (tn_plugin){sizeof(tn_plugin), TN_ABI_MAJOR, TN_ABI_MINOR, 0, "acme", "1.0", "MIT",
                       TN_BUILD_TEXT,     items};
  return &plugin;
}

static tn_plugin good_plugin(void) {
  static const tn_item *const items[] = {&leaky_layer.item, NULL};
  return *plugin_of(items);
}

static tn_status negotiate(const tn_plugin *plugin, int major, int minor, const tn_plugin **out) {
  return tn_negotiate_plugin(&B, &arena, plugin, (uint16_t)major, (uint16_t)minor, "/p/acme.so", out);
}

static void refuses(const tn_plugin *plugin, int major, int minor, const char *part) {
  const tn_plugin *out;
  tn_status status = negotiate(plugin, major, minor, &out);
  assert_error(&B, status, TN_EABI, part);
  assert_contains(tn_error_text(&B), "/p/acme.so");
  assert_null(out);
}

static void refuses_item(const void *item, const char *part) {
  const tn_item *const items[] = {item, NULL};
  refuses(plugin_of(items), TN_ABI_MAJOR, TN_ABI_MINOR, part);
}

static const tn_item *accepts_item(const void *item) {
  const tn_item *const items[] = {item, NULL};
  const tn_plugin *out;
  assert_ok(&B, negotiate(plugin_of(items), TN_ABI_MAJOR, TN_ABI_MINOR, &out));
  return out->items[0];
}

/* ---- versions ---- */

static void the_same_version_loads(void **state) {
  (void)state;
  tn_plugin plugin = good_plugin();
  const tn_plugin *out;
  assert_ok(&B, negotiate(&plugin, TN_ABI_MAJOR, TN_ABI_MINOR, &out));
  assert_string_equal(out->name, "acme");
  assert_ptr_not_equal(out->items[0], &leaky_layer.item);
  assert_string_equal(out->items[0]->name, "leaky");
  assert_null(out->items[1]);
}

static void another_major_version_is_refused_with_both_numbers(void **state) {
  (void)state;
  tn_plugin plugin = good_plugin();
  plugin.major = 3;
  refuses(&plugin, 0, TN_ABI_MINOR, "major: found 3, wanted 0");
  refuses(&plugin, 2, 0, "major: found 3, wanted 2");
  assert_contains(tn_error_text(&B), "rebuild the plugin against the headers of this Tenon (interface 2.0)");
}

static void version_0_loads_only_an_exact_match(void **state) {
  (void)state;
  tn_plugin plugin = good_plugin();
  plugin.minor = 5;
  refuses(&plugin, 0, 4, "minor: found 5, wanted 4");
  plugin.minor = 3;
  refuses(&plugin, 0, 4, "minor: found 3, wanted 4");
}

static void from_version_1_on_an_older_minor_loads_and_a_newer_does_not(void **state) {
  (void)state;
  tn_plugin plugin = good_plugin();
  const tn_plugin *out;
  plugin.major = 1;
  plugin.minor = 4;
  assert_ok(&B, negotiate(&plugin, 1, 7, &out));
  assert_ok(&B, negotiate(&plugin, 1, 4, &out));
  refuses(&plugin, 1, 3, "minor: found 4, wanted at most 3");
}

static void unknown_feature_bits_are_refused(void **state) {
  (void)state;
  tn_plugin plugin = good_plugin();
  plugin.requires = 0x12;
  refuses(&plugin, TN_ABI_MAJOR, TN_ABI_MINOR, "requires: found the feature bits 0x12");
}

static void every_differing_field_is_named(void **state) {
  (void)state;
  tn_plugin plugin = good_plugin();
  plugin.build = "ptr32 be asan=7";
  plugin.requires = 1;
  plugin.version = NULL;
  refuses(&plugin, TN_ABI_MAJOR, TN_ABI_MINOR, "requires: found the feature bits 0x1");
  assert_contains(tn_error_text(&B), "version: found nothing");
  assert_contains(tn_error_text(&B), "build pointers: found ptr32, wanted ptr64");
  assert_contains(tn_error_text(&B), "build byte order: found be, wanted le");
  assert_contains(tn_error_text(&B), "build asan: found asan=7, wanted asan=" TN_BUILD_ASAN);
}

static void a_build_text_that_lacks_or_adds_a_field_is_refused(void **state) {
  (void)state;
  tn_plugin plugin = good_plugin();
  plugin.build = "ptr64 le";
  refuses(&plugin, TN_ABI_MAJOR, TN_ABI_MINOR, "build asan: found nothing, wanted asan=");
  plugin.build = TN_BUILD_TEXT " cxx=11";
  refuses(&plugin, TN_ABI_MAJOR, TN_ABI_MINOR, "build cxx: found cxx=11, wanted nothing");
  plugin.build = "";
  refuses(&plugin, TN_ABI_MAJOR, TN_ABI_MINOR, "build pointers: found nothing");
  plugin.build = NULL;
  refuses(&plugin, TN_ABI_MAJOR, TN_ABI_MINOR, "build: found nothing");
}

static void a_truncated_plugin_struct_is_refused(void **state) {
  (void)state;
  tn_plugin plugin = good_plugin();
  plugin.struct_size = 0;
  refuses(&plugin, TN_ABI_MAJOR, TN_ABI_MINOR, "struct_size: found 0, wanted at least 8");
  plugin.struct_size = (uint32_t)offsetof(tn_plugin, items);
  refuses(&plugin, TN_ABI_MAJOR, TN_ABI_MINOR, "struct_size: found 48, wanted at least 56");
}

static void a_major_version_is_named_even_if_the_rest_is_truncated(void **state) {
  (void)state;
  tn_plugin plugin = {.struct_size = 8, .major = 9};
  refuses(&plugin, TN_ABI_MAJOR, TN_ABI_MINOR, "major: found 9, wanted 0");
}

static void missing_texts_and_lists_are_refused(void **state) {
  (void)state;
  tn_plugin plugin = good_plugin();
  plugin.name = "";
  refuses(&plugin, TN_ABI_MAJOR, TN_ABI_MINOR, "name: found nothing");
  plugin = good_plugin();
  plugin.licence = NULL;
  refuses(&plugin, TN_ABI_MAJOR, TN_ABI_MINOR, "licence: found nothing");
  plugin = good_plugin();
  plugin.items = NULL;
  refuses(&plugin, TN_ABI_MAJOR, TN_ABI_MINOR, "items: found nothing");
  refuses(NULL, TN_ABI_MAJOR, TN_ABI_MINOR, "its entry returned no descriptor");
}

/* ---- sizes ---- */

typedef struct wide_layer {
  tn_layer_kind layer;
  int64_t appended[4];
} wide_layer;

static void a_longer_item_of_a_newer_build_is_cut_to_the_hosts_size(void **state) {
  (void)state;
  wide_layer wide = {.layer = leaky_layer, .appended = {1, 2, 3, 4}};
  wide.layer.item.struct_size = (uint32_t)sizeof(wide);
  const tn_item *item = accepts_item(&wide);
  assert_int_equal(item->struct_size, sizeof(tn_layer_kind));
  assert_ptr_equal(((const tn_layer_kind *)item)->build, build);
}

static void a_longer_plugin_struct_is_cut_to_the_hosts_size(void **state) {
  (void)state;
  struct {
    tn_plugin plugin;
    int64_t appended[4];
  } wide = {.plugin = good_plugin(), .appended = {-1, -1, -1, -1}};
  const tn_plugin *out;
  wide.plugin.struct_size = (uint32_t)sizeof(wide);
  assert_ok(&B, negotiate(&wide.plugin, TN_ABI_MAJOR, TN_ABI_MINOR, &out));
  assert_int_equal(out->struct_size, sizeof(tn_plugin));
}

static void a_truncated_item_is_refused_with_both_sizes(void **state) {
  (void)state;
  tn_layer_kind layer = leaky_layer;
  layer.item.struct_size = (uint32_t)offsetof(tn_layer_kind, build);
  refuses_item(&layer, "layer \"leaky\": struct_size: found 56, wanted at least 64");
  layer.item.struct_size = 8;
  refuses_item(&layer, "struct_size: found 8, wanted at least 40");
}

static void an_item_of_unknown_kind_is_left_out_with_a_warning(void **state) {
  (void)state;
  const tn_item future = {sizeof(tn_item), 57, "hologram", NULL, NULL, 0, 0};
  const tn_item *const items[] = {&future, &leaky_layer.item, NULL};
  const tn_plugin *out;
  assert_ok(&B, negotiate(plugin_of(items), TN_ABI_MAJOR, TN_ABI_MINOR, &out));
  assert_string_equal(out->items[0]->name, "leaky");
  assert_null(out->items[1]);
  assert_contains(B.log, "item \"hologram\" is of kind 57");
}

/* ---- options ---- */

typedef struct wide_option {
  tn_option option;
  const char *unit;
} wide_option;

static void options_of_another_stride_are_copied_row_by_row(void **state) {
  (void)state;
  wide_option rows[3] = {{leaky_options[0], "m"}, {leaky_options[1], "s"}, {TN_OPT_END, NULL}};
  tn_layer_kind layer = leaky_layer;
  layer.item.options = &rows[0].option;
  layer.item.option_stride = (uint32_t)sizeof(rows[0]);
  const tn_item *item = accepts_item(&layer);
  assert_int_equal(item->option_stride, sizeof(tn_option));
  assert_string_equal(item->options[0].name, "slope");
  assert_string_equal(item->options[1].name, "n");
  assert_string_equal(item->options[1].doc, "how often");
  assert_null(item->options[2].name);
}

static void a_stride_below_a_row_is_refused(void **state) {
  (void)state;
  tn_layer_kind layer = leaky_layer;
  layer.item.option_stride = 16;
  refuses_item(&layer, "option_stride: found 16, wanted 48 to 4096");
  layer.item.option_stride = 0x80000000;
  refuses_item(&layer, "option_stride: found 2147483648, wanted 48 to 4096");
  layer.item.option_stride = 0;
  refuses_item(&layer, "option_stride: found 0");
  layer.item.option_stride = (uint32_t)sizeof(tn_option) + 1;
  refuses_item(&layer, "a multiple of");
}

static void an_options_table_without_end_is_refused(void **state) {
  (void)state;
  static tn_option rows[300];
  for (int i = 0; i < 300; i++) rows[i] = leaky_options[0];
  tn_layer_kind layer = leaky_layer;
  layer.item.options = rows;
  refuses_item(&layer, "TN_OPT_END");
}

static void an_item_without_doc_gets_an_empty_one(void **state) {
  (void)state;
  tn_layer_kind layer = leaky_layer;
  layer.item.doc = NULL;
  layer.item.options = NULL;
  layer.item.option_stride = 0;
  const tn_item *item = accepts_item(&layer);
  assert_string_equal(item->doc, "");
  assert_null(item->options);
}

/* ---- names ---- */

static void a_name_that_is_no_word_is_refused(void **state) {
  (void)state;
  static const char *const bad[] = {"",
                                    "two words",
                                    "a\nb",
                                    "x(1)",
                                    "a/../b",
                                    "caf\xc3\xa9",
                                    "a123456789b123456789c123456789d123456789e123456789f123456789g123"};
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    tn_layer_kind layer = leaky_layer;
    layer.item.name = bad[i];
    refuses_item(&layer, "name: found");
  }
  tn_layer_kind layer = leaky_layer;
  layer.item.name = NULL;
  refuses_item(&layer, "layer \"(no name)\": name: found nothing");
}

static void two_items_of_a_kind_and_name_are_refused(void **state) {
  (void)state;
  tn_layer_kind twin = leaky_layer;
  const tn_item *const items[] = {&leaky_layer.item, &twin.item, NULL};
  refuses(plugin_of(items), TN_ABI_MAJOR, TN_ABI_MINOR, "layer \"leaky\" is there twice");
}

static tn_status query(tn_query *q) { return tn_fail(q, TN_EUNSUPPORTED, NULL, "never"); }
static tn_status launch(tn_launch *l) {
  (void)l;
  return TN_OK;
}
static tn_kernel kernel_of(const char *family) {
  return (tn_kernel){.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "relu", "a kernel"),
                     .family = family,
                     .pattern = "y = relu(x)",
                     .query = query,
                     .launch = launch};
}

static void kernels_of_two_families_may_share_a_name(void **state) {
  (void)state;
  tn_kernel a = kernel_of("cpu"), b = kernel_of("cuda"), c = kernel_of("cpu");
  const tn_item *const two[] = {&a.item, &b.item, NULL};
  const tn_item *const three[] = {&a.item, &b.item, &c.item, NULL};
  const tn_plugin *out;
  assert_ok(&B, negotiate(plugin_of(two), TN_ABI_MAJOR, TN_ABI_MINOR, &out));
  refuses(plugin_of(three), TN_ABI_MAJOR, TN_ABI_MINOR, "kernel \"relu\" is there twice");
}

static void different_kinds_may_share_a_name(void **state) {
  (void)state;
  tn_kernel kernel = kernel_of("cpu");
  kernel.item.name = "leaky";
  const tn_item *const items[] = {&leaky_layer.item, &kernel.item, NULL};
  const tn_plugin *out;
  assert_ok(&B, negotiate(plugin_of(items), TN_ABI_MAJOR, TN_ABI_MINOR, &out));
}

/* ---- what each kind requires ---- */

static void kernels_need_family_pattern_query_and_launch(void **state) {
  (void)state;
  tn_kernel k = kernel_of(NULL);
  refuses_item(&k, "kernel \"relu\": family: found NULL");
  k = kernel_of("");
  refuses_item(&k, "family: found nothing");
  k = kernel_of("cpu");
  k.pattern = NULL;
  refuses_item(&k, "pattern: found NULL");
  k = kernel_of("cpu");
  k.query = NULL;
  refuses_item(&k, "query: found NULL");
  k = kernel_of("cpu");
  k.launch = NULL;
  refuses_item(&k, "launch: found NULL");
}

static void layers_need_build_and_a_sensible_number_of_inputs(void **state) {
  (void)state;
  tn_layer_kind layer = leaky_layer;
  layer.build = NULL;
  refuses_item(&layer, "a layer has either build or formula");
  layer.formula = "y = x";
  refuses_item(&layer, "formula and inputs come together or not at all");
  layer = leaky_layer;
  layer.min_in = 2;
  refuses_item(&layer, "max_in is smaller than min_in");
  layer = leaky_layer;
  layer.min_in = -1;
  refuses_item(&layer, "min_in must be >= 0");
  layer = leaky_layer;
  layer.role = 17;
  refuses_item(&layer, "role is unknown");
  layer = leaky_layer;
  layer.max_in = -1;
  layer.min_in = 5;
  accepts_item(&layer);
}

static tn_status infer_op(tn_infer *n) {
  (void)n;
  return TN_OK;
}

static void ops_need_a_schema_and_a_formula_stands_alone(void **state) {
  (void)state;
  tn_op op = {.item = TN_ITEM_PLAIN(tn_op, TN_OP, "swish", "an op")};
  refuses_item(&op, "op \"swish\": schema: found NULL");
  op.schema = "(x:T) -> (y:T)";
  accepts_item(&op);
  op.formula = "y = x / (1 + exp(-x))";
  accepts_item(&op);
  op.infer = infer_op;
  refuses_item(&op, "leaves infer, decompose and grad NULL");
  op.formula = NULL;
  op.op_class = 99;
  refuses_item(&op, "op_class is unknown");
}

static tn_status backend_open(tn_env *env, const void *options, void **backend) {
  (void)env;
  (void)options;
  *backend = NULL;
  return TN_OK;
}
static void drop_object(tn_env *env, void *object) { (void)env, (void)object; }
static void drop_memory(tn_env *env, void *device, int32_t kind, void *address, uint64_t bytes) {
  (void)env, (void)device, (void)kind, (void)address, (void)bytes;
}
static tn_status make_memory(tn_env *env, void *device, int32_t kind, uint64_t bytes, void **address) {
  (void)env, (void)device, (void)kind, (void)bytes;
  *address = NULL;
  return TN_ENOMEM;
}
static tn_status wait_stream(tn_env *env, void *stream) {
  (void)env, (void)stream;
  return TN_OK;
}
static tn_status order_event(tn_env *env, void *event, void *stream) {
  (void)stream;
  return wait_stream(env, event);
}
static tn_status make_event(tn_env *env, void *device, void **event) {
  (void)env;
  *event = device;
  return TN_OK;
}
static tn_status copy_bytes(tn_env *env, void *stream, int32_t way, void *to, const void *from,
                            uint64_t bytes) {
  (void)way, (void)to, (void)from, (void)bytes;
  return wait_stream(env, stream);
}
static tn_status zero_bytes(tn_env *env, void *stream, void *address, uint64_t bytes) {
  (void)address, (void)bytes;
  return wait_stream(env, stream);
}

static void callbacks_of_a_backend_come_in_groups(void **state) {
  (void)state;
  tn_backend backend = {.item = TN_ITEM_PLAIN(tn_backend, TN_BACKEND, "toy", "a backend")};
  accepts_item(&backend); /* it needs none */
  backend.close = drop_object;
  refuses_item(&backend,
               "backend \"toy\": close, device_close, stream_delete and event_delete come with open");
  backend.open = backend_open;
  accepts_item(&backend);
  backend.memory_delete = drop_memory;
  refuses_item(&backend, "memory_new and memory_delete come together or not at all");
  backend.memory_new = make_memory;
  refuses_item(&backend, "memory_new needs copy, fill_zero and properties");
  backend.memory_new = NULL, backend.memory_delete = NULL;
  backend.event_wait = wait_stream;
  refuses_item(&backend, "stream_wait, event_new, event_record, event_await and event_wait come together");
  backend.stream_wait = wait_stream, backend.event_new = make_event;
  backend.event_record = backend.event_await = order_event;
  refuses_item(&backend, "stream_wait needs copy and fill_zero");
  backend.copy = copy_bytes;
  refuses_item(&backend, "copy and fill_zero come together or not at all");
  backend.fill_zero = zero_bytes;
  accepts_item(&backend);
  backend.capture_delete = drop_object;
  refuses_item(&backend, "capture, capture_launch and capture_delete come together or not at all");
}

/* A backend without callbacks, as the host sees it. */
static void what_a_backend_leaves_out_works_in_memory_of_the_host(void **state) {
  (void)state;
  tn_backend bare = {.item = TN_ITEM_PLAIN(tn_backend, TN_BACKEND, "bare", "a backend")};
  const tn_item *const items[] = {&bare.item, NULL};
  const tn_plugin *out = NULL;
  void *self = NULL, *device = NULL, *stream = NULL, *event = NULL, *memory = NULL, *large = &bare;
  int32_t count = 0, options = 7;
  tn_device_properties p = {.struct_size = sizeof p};
  assert_int_equal(
      tn_negotiate_plugin(&B, &arena, plugin_of(items), TN_ABI_MAJOR, TN_ABI_MINOR, "bare.so", &out), TN_OK);
  const tn_backend *b = (const tn_backend *)out->items[0];
  int64_t before = B.live;
  assert_int_equal(b->open(&B.env, &options, &self), TN_OK);
  assert_ptr_equal(self, &options);
  assert_int_equal(b->open(&B.env, NULL, &self), TN_OK);
  assert_non_null(self);
  assert_int_equal(b->count(&B.env, self, &count), TN_OK);
  assert_int_equal(count, 1);
  assert_int_equal(b->properties(&B.env, self, 0, &p), TN_OK);
  assert_int_equal(p.host_addressable, 1);
  assert_int_equal(p.threads, 1);
  assert_int_equal(p.memory_bytes, 0); /* the host fills it in */
  assert_int_equal(b->device_open(&B.env, self, 0, &device), TN_OK);
  assert_int_equal(b->stream_new(&B.env, device, TN_STREAM_COMPUTE, &stream), TN_OK);
  assert_int_equal(b->event_new(&B.env, device, &event), TN_OK);
  assert_int_equal(b->memory_new(&B.env, device, TN_MEMORY_DEVICE, 100, &memory), TN_OK);
  assert_int_equal((uintptr_t)memory % 64, 0);
  const uint64_t bytes = (4 << 20) + 100;
  assert_int_equal(b->memory_new(&B.env, device, TN_MEMORY_DEVICE, bytes, &large), TN_OK);
  assert_int_equal((uintptr_t)large % (2 << 20), 0); /* the alignment of a huge page */
  memset(large, 1, bytes);
  b->memory_delete(&B.env, device, TN_MEMORY_DEVICE, large, bytes);
  assert_int_equal(b->memory_new(&B.env, device, TN_MEMORY_DEVICE, UINT64_MAX - 3, &large), TN_ENOMEM);
  assert_null(large);
  assert_non_null(strstr(tn_error_text(&B), "18446744073709551612 bytes"));
  memset(memory, 1, 100);
  assert_int_equal(b->fill_zero(&B.env, stream, memory, 100), TN_OK);
  for (int i = 0; i < 100; i++) assert_int_equal(((const char *)memory)[i], 0);
  assert_int_equal(b->copy(&B.env, stream, TN_COPY_TO_DEVICE, memory, "tenon", 6), TN_OK);
  assert_string_equal(memory, "tenon");
  assert_int_equal(b->event_record(&B.env, event, stream), TN_OK);
  assert_int_equal(b->event_await(&B.env, event, stream), TN_OK);
  assert_int_equal(b->event_wait(&B.env, event), TN_OK);
  assert_int_equal(b->stream_wait(&B.env, stream), TN_OK);
  assert_int_equal(b->takes(&B.env, self, NULL, NULL), TN_OK);
  assert_null(b->native(&B.env, device, stream, "bare.1"));
  tn_backend_library library = {.struct_size = sizeof library};
  assert_int_equal(b->library(&B.env, self, 0, &library), 0);
  assert_null(b->enqueue);
  assert_null(b->parallel);
  assert_null(b->capture);
  b->memory_delete(&B.env, device, TN_MEMORY_DEVICE, memory, 100);
  b->event_delete(&B.env, event);
  b->stream_delete(&B.env, stream);
  b->device_close(&B.env, device);
  b->close(&B.env, self);
  assert_int_equal(B.live, before);
}

static tn_status source_open(tn_env *env, const void *options, int32_t split, uint64_t seed, void **source) {
  (void)env;
  (void)options;
  (void)split;
  (void)seed;
  *source = NULL;
  return TN_OK;
}
static void source_close(tn_env *env, void *source) { (void)source, (void)env; }
static tn_status source_describe(tn_env *env, void *source, tn_description *description) {
  (void)source;
  (void)env;
  (void)description;
  return TN_OK;
}
static tn_status source_read(tn_sample *s, void *source) {
  (void)source;
  (void)s;
  return TN_OK;
}

static void a_source_either_reads_or_streams(void **state) {
  (void)state;
  tn_source source = {.item = TN_ITEM_PLAIN(tn_source, TN_SOURCE, "toy", "a source"),
                      .open = source_open,
                      .close = source_close,
                      .describe = source_describe};
  refuses_item(&source, "either read, or all of next, tell and seek");
  source.next = source_read;
  refuses_item(&source, "either read, or all of next, tell and seek");
  source.read = source_read;
  refuses_item(&source, "either read, or all of next, tell and seek");
  source.next = NULL;
  accepts_item(&source);
  source.describe = NULL;
  refuses_item(&source, "source \"toy\": describe: found NULL");
}

static tn_status transform_infer(tn_env *env, const void *options, int32_t n, const tn_type *in,
                                 tn_type *out) {
  (void)env, (void)options, (void)n, (void)in, (void)out;
  return TN_OK;
}
static tn_status transform_apply(tn_transform_call *c, const void *options) {
  (void)c, (void)options;
  return TN_OK;
}
static tn_status transform_draw(tn_transform_call *c, const void *options, int32_t *values) {
  (void)c, (void)options, (void)values;
  return TN_OK;
}

static void the_small_kinds_need_their_callbacks(void **state) {
  (void)state;
  tn_optimizer optimizer = {.item = TN_ITEM_PLAIN(tn_optimizer, TN_OPTIMIZER, "o", "")};
  refuses_item(&optimizer, "optimizer \"o\": an optimizer has either update or formula, or both and takes");
  optimizer.update = build;
  optimizer.granularity = 5;
  refuses_item(&optimizer, "granularity");
  tn_schedule schedule = {.item = TN_ITEM_PLAIN(tn_schedule, TN_SCHEDULE, "s", "")};
  refuses_item(&schedule, "schedule \"s\": factor: found NULL");
  tn_transform transform = {.item = TN_ITEM_PLAIN(tn_transform, TN_TRANSFORM, "t", "")};
  refuses_item(&transform, "transform \"t\": infer: found NULL");
  transform.infer = transform_infer;
  transform.apply = transform_apply;
  transform.draws = 2;
  refuses_item(&transform, "draw and a positive number of draws come together or not at all");
  transform.draw = transform_draw;
  refuses_item(&transform, "draw is for build of TN_PER_SAMPLE");
  transform.build = build;
  accepts_item(&transform);
  tn_precision precision = {.item = TN_ITEM_PLAIN(tn_precision, TN_PRECISION, "p", "")};
  refuses_item(&precision, "precision \"p\": decide: found NULL");
  tn_communicator communicator = {.item = TN_ITEM_PLAIN(tn_communicator, TN_COMMUNICATOR, "c", "")};
  refuses_item(&communicator, "communicator \"c\": families: found NULL");
  tn_observer observer = {.item = TN_ITEM_PLAIN(tn_observer, TN_OBSERVER, "v", "")};
  refuses_item(&observer, "observer \"v\": open: found NULL");
}

static int32_t decide(const void *options, const tn_precision_site *site) {
  (void)options;
  return site->dtype;
}

static tn_status comm_identify(tn_env *env, const void *options, const tn_comm_place *place, void *identity) {
  return (void)env, (void)options, (void)place, (void)identity, TN_OK;
}

static tn_status comm_open(tn_env *env, const void *options, const tn_comm_device *device,
                           const tn_comm_place *place, const void *identity, void **communicator) {
  return (void)env, (void)options, (void)device, (void)place, (void)identity, (void)communicator, TN_OK;
}

static tn_status comm_run(tn_env *env, void *communicator, const tn_collective *collective, void *stream) {
  return (void)env, (void)communicator, (void)collective, (void)stream, TN_OK;
}

static tn_status comm_status(tn_env *env, void *communicator) { return (void)env, (void)communicator, TN_OK; }

static void comm_delete(tn_env *env, const void *options, const tn_comm_device *device, void *address,
                        uint64_t bytes) {
  (void)env, (void)options, (void)device, (void)address, (void)bytes;
}

static tn_status comm_new(tn_env *env, const void *options, const tn_comm_device *device, uint64_t bytes,
                          void **address) {
  return (void)env, (void)options, (void)device, (void)bytes, (void)address, TN_OK;
}

static tn_status comm_attach(tn_env *env, void *communicator, void *address, uint64_t bytes) {
  return (void)env, (void)communicator, (void)address, (void)bytes, TN_OK;
}

static void comm_detach(tn_env *env, void *communicator, void *address, uint64_t bytes) {
  (void)env, (void)communicator, (void)address, (void)bytes;
}

static void memory_of_a_communicator_is_made_and_freed(void **state) {
  (void)state;
  tn_communicator communicator = {.item = TN_ITEM_PLAIN(tn_communicator, TN_COMMUNICATOR, "c", ""),
                                  .families = "toy",
                                  .identity_bytes = 1,
                                  .identify = comm_identify,
                                  .open = comm_open,
                                  .close = drop_object,
                                  .run = comm_run,
                                  .status = comm_status,
                                  .abort = drop_object};
  accepts_item(&communicator);
  communicator.memory_delete = comm_delete;
  communicator.memory_new = comm_new;
  communicator.attach = comm_attach;
  refuses_item(&communicator, "memory_new, memory_delete, attach and detach come together or not at all");
  communicator.detach = comm_detach;
  accepts_item(&communicator);
}

static void loss_scaling_needs_both_of_its_halves(void **state) {
  (void)state;
  tn_precision precision = {.item = TN_ITEM_PLAIN(tn_precision, TN_PRECISION, "p", ""), .decide = decide};
  accepts_item(&precision);
  precision.scale = build;
  refuses_item(&precision, "scale and update come together");
  precision.update = build;
  accepts_item(&precision);
}

static void every_kind_has_a_name(void **state) {
  (void)state;
  for (uint32_t kind = 1; kind < TN_KINDS; kind++) assert_null(strchr(tn_kind_name(kind), ' '));
  assert_string_equal(tn_kind_name(TN_KERNEL), "kernel");
  assert_string_equal(tn_kind_name(0), "item of unknown kind");
  assert_string_equal(tn_kind_name(TN_KINDS), "item of unknown kind");
}

static void running_out_of_memory_anywhere_is_an_error_and_no_leak(void **state) {
  (void)state;
  tn_plugin plugin = good_plugin();
  const tn_plugin *out;
  tn_status status = TN_ENOMEM;
  for (long left = 0; left < 20 && status != TN_OK; left++) {
    tn_arena fresh = tn_arena_new(&B);
    test_env_allow(&B, left);
    status = tn_negotiate_plugin(&B, &fresh, &plugin, TN_ABI_MAJOR, TN_ABI_MINOR, "", &out);
    test_env_allow(&B, -1);
    if (status != TN_OK) assert_error(&B, status, TN_ENOMEM, "out of memory");
    tn_arena_free(&fresh);
  }
  assert_int_equal(status, TN_OK);
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      CASE(the_same_version_loads),
      CASE(another_major_version_is_refused_with_both_numbers),
      CASE(version_0_loads_only_an_exact_match),
      CASE(from_version_1_on_an_older_minor_loads_and_a_newer_does_not),
      CASE(unknown_feature_bits_are_refused),
      CASE(every_differing_field_is_named),
      CASE(a_build_text_that_lacks_or_adds_a_field_is_refused),
      CASE(a_truncated_plugin_struct_is_refused),
      CASE(a_major_version_is_named_even_if_the_rest_is_truncated),
      CASE(missing_texts_and_lists_are_refused),
      CASE(a_longer_item_of_a_newer_build_is_cut_to_the_hosts_size),
      CASE(a_longer_plugin_struct_is_cut_to_the_hosts_size),
      CASE(a_truncated_item_is_refused_with_both_sizes),
      CASE(an_item_of_unknown_kind_is_left_out_with_a_warning),
      CASE(options_of_another_stride_are_copied_row_by_row),
      CASE(a_stride_below_a_row_is_refused),
      CASE(an_options_table_without_end_is_refused),
      CASE(an_item_without_doc_gets_an_empty_one),
      CASE(a_name_that_is_no_word_is_refused),
      CASE(two_items_of_a_kind_and_name_are_refused),
      CASE(kernels_of_two_families_may_share_a_name),
      CASE(different_kinds_may_share_a_name),
      CASE(kernels_need_family_pattern_query_and_launch),
      CASE(layers_need_build_and_a_sensible_number_of_inputs),
      CASE(ops_need_a_schema_and_a_formula_stands_alone),
      CASE(callbacks_of_a_backend_come_in_groups),
      CASE(what_a_backend_leaves_out_works_in_memory_of_the_host),
      CASE(a_source_either_reads_or_streams),
      CASE(the_small_kinds_need_their_callbacks),
      CASE(memory_of_a_communicator_is_made_and_freed),
      CASE(loss_scaling_needs_both_of_its_halves),
      CASE(every_kind_has_a_name),
      CASE(running_out_of_memory_anywhere_is_an_error_and_no_leak),
  };
  return cmocka_run_group_tests_name("negotiate", tests, NULL, NULL);
}
