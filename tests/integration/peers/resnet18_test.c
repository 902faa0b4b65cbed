/* tests/integration/peers/resnet18_test.c: ResNet-18 at 224x224 with the weights of torchvision's model
 * (tests/golden/make_resnet18.py): logits, the losses of five steps of SGD with momentum, and the logits
 * after them. */
#include <math.h>
#include <stdlib.h>

#include "peers.h"

enum { BATCH = 8, STEPS = 5, SHOWN = 2, CHANNELS = 3, PIXELS = 224 * 224, CLASSES = 1000 };

/* The same batch in every step. Pictures are a hash of the index. */
static const char data_ini[] = "include = " ROOT "/docs/examples/imagenet_resnet18.ini\n"
                               "[data]\n"
                               "source = idx\n"
                               "folder =\n"
                               "images = images\n"
                               "labels = labels\n"
                               "classes = 1000\n"
                               "shuffle = no\n"
                               "batch = 8\n"
                               "[data.train]\n"
                               "transforms = to_float, normalize(mean=[0.485, 0.456, 0.406], "
                               "std=[0.229, 0.224, 0.225])\n"
                               "[data.valid]\n"
                               "epoch = 8\n"
                               "transforms = to_float, normalize(mean=[0.485, 0.456, 0.406], "
                               "std=[0.229, 0.224, 0.225])\n";

static const char start_ini[] = "include = data.ini\n"
                                "[run]\n"
                                "seed = 1\n"
                                "epochs = 0\n";

static const char steps_ini[] = "include = data.ini\n"
                                "[run]\n"
                                "max_steps = 5\n"
                                "[weights]\n"
                                "file = weights.safetensors\n"
                                "[optimizer]\n"
                                "lr = 0.01\n"
                                "weight_decay = 0\n"
                                "[schedule]\n" /* constant learning rate */
                                "warmup = 0\n";

static uint8_t pixel(uint32_t index) {
  uint32_t h = index * 2654435761u;
  h ^= h >> 15;
  h *= 2246822519u;
  h ^= h >> 13;
  return (uint8_t)(h >> 16);
}

/* Writes IDX: two zeros, the type, the rank, dimensions and elements in big-endian order. */
static void write_images(void) {
  const uint32_t n = BATCH * CHANNELS * PIXELS;
  static const uint8_t head[20] = {0, 0, 8,   4, 0, 0, 0,  BATCH * STEPS, 0, 0, 0, CHANNELS, 0,
                                   0, 0, 224, 0, 0, 0, 224};
  uint8_t *bytes = malloc(sizeof head + (size_t)n * STEPS);
  assert_non_null(bytes);
  memcpy(bytes, head, sizeof head);
  for (uint32_t i = 0; i < n * STEPS; i++) bytes[sizeof head + i] = pixel(i % n);
  file_write_bytes("images", bytes, sizeof head + (size_t)n * STEPS);
  free(bytes);
}

static void write_labels(void) {
  uint8_t bytes[8 + 4 * BATCH * STEPS] = {0, 0, 0x0C, 1, 0, 0, 0, BATCH * STEPS};
  for (int i = 0; i < BATCH * STEPS; i++) {
    int label = i % BATCH * 37 % CLASSES;
    bytes[8 + 4 * i + 2] = (uint8_t)(label >> 8);
    bytes[8 + 4 * i + 3] = (uint8_t)label;
  }
  file_write_bytes("labels", bytes, sizeof bytes);
}

/* Writes the first pictures as a .npy file (format 1.0), normalized. */
static void write_input(void) {
  static const float mean[] = {0.485f, 0.456f, 0.406f}, deviation[] = {0.229f, 0.224f, 0.225f};
  const size_t start = 128, n = (size_t)SHOWN * CHANNELS * PIXELS;
  char *bytes = malloc(start + n * sizeof(float));
  assert_non_null(bytes);
  int length = snprintf(bytes, start,
                        "%cNUMPY%c%c%c%c{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, 224, 224)}",
                        0x93, 1, 0, 118, 0);
  memset(bytes + length, ' ', start - (size_t)length);
  bytes[start - 1] = '\n';
  for (size_t i = 0; i < n; i++) {
    size_t channel = i / PIXELS % CHANNELS;
    float value = ((float)pixel((uint32_t)i) / 255.0f - mean[channel]) / deviation[channel];
    memcpy(bytes + start + i * sizeof value, &value, sizeof value);
  }
  file_write_bytes("x.npy", bytes, start + n * sizeof(float));
  free(bytes);
}

static int is_branch_scale(const char *name) {
  static const char end[] = ".bn2.weight";
  size_t n = strlen(name);
  return n > strlen(end) && strcmp(name + n - strlen(end), end) == 0;
}

/* Sets every bn2.weight of a safetensors file to 0.1; make_resnet18.py has the reason. */
static void shrink_branches(const char *from, const char *to) {
  size_t size;
  uint64_t length;
  const char *name;
  json_t *tensor;
  int n = 0;
  char *bytes = file_read(from, &size);
  memcpy(&length, bytes, sizeof length); /* little-endian, like the machines of this test */
  json_t *header = json_loadb(bytes + 8, (size_t)length, 0, NULL);
  assert_non_null(header);
  json_object_foreach(header, name, tensor) {
    const json_t *offsets = json_object_get(tensor, "data_offsets");
    const float scale = 0.1f;
    if (!is_branch_scale(name)) continue;
    json_int_t first = json_integer_value(json_array_get(offsets, 0)),
               last = json_integer_value(json_array_get(offsets, 1));
    for (json_int_t at = first; at < last; at += (json_int_t)sizeof scale)
      memcpy(bytes + 8 + length + at, &scale, sizeof scale);
    n++;
  }
  json_decref(header);
  assert_int_equal(n, 8);
  file_write_bytes(to, bytes, size);
}

/* Predicts with the weights and compares the logits with a list of the golden. */
static void compare_logits(const char *weights, const json_t *golden, const char *which) {
  size_t size;
  double worst = 0.0;
  const json_t *theirs = json_object_get(golden, which);
  program_json(
      0, "predict " ROOT "/docs/examples/imagenet_resnet18.ini --weights %s --input x.npy --output y.npy",
      weights);
  const char *bytes = file_read("y.npy", &size);
  const char *values = bytes + size - sizeof(float) * SHOWN * CLASSES;
  assert_int_equal(json_array_size(theirs), SHOWN * CLASSES);
  for (size_t i = 0; i < SHOWN * CLASSES; i++) {
    float ours;
    memcpy(&ours, values + i * sizeof ours, sizeof ours);
    double off = fabs((double)ours - json_number_value(json_array_get(theirs, i)));
    if (!(off <= 1e-4)) fail_msg("%s %zu: off by %.2g, allowed 1e-4", which, i, off);
    worst = fmax(worst, off);
  }
  print_message("%s: largest difference %.2g\n", which, worst);
}

static void resnet18_computes_and_learns_as_torchvisions(void **state) {
  (void)state;
  double losses[PEERS_MOST_STEPS];
  char weights[512];
  const json_t *golden = peers_golden("resnet18/golden.json");
  write_images();
  write_labels();
  write_input();
  file_write("data.ini", data_ini);
  file_write("start.ini", start_ini);
  file_write("steps.ini", steps_ini);
  peers_train("start.ini", losses, weights);
  shrink_branches(weights, "weights.safetensors");
  compare_logits("weights.safetensors", golden, "logits");
  assert_int_equal(peers_train("steps.ini", losses, weights), STEPS);
  peers_compare(losses, json_object_get(golden, "losses"), 0, STEPS, 1e-4, 0);
  compare_logits(weights, golden, "logits_after");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(resnet18_computes_and_learns_as_torchvisions, program_open,
                                      program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
