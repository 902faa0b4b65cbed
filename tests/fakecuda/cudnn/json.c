/* tests/fakecuda/cudnn/json.c: see json.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/fakecuda/cudnn/graph.h"
#include "tests/fakecuda/cudnn/json.h"

enum { HEAD = 192 };

/* Another build of the double has other sizes, and reads no plan of this one. */
static const char head[] =
    "{\"fakecudnn\":%zu,\"sizes\":[%zu,%zu],\"arch\":%d,\"engine\":%d,\"workspace\":%" PRId64
    ",\"tensors\":%d,\"nodes\":%d,\"program\":\"";

static char *put_digits(char *to, const void *from, size_t bytes) {
  static const char digits[] = "0123456789abcdef";
  for (size_t i = 0; i < bytes; i++) {
    unsigned char byte = ((const unsigned char *)from)[i];
    *to++ = digits[byte >> 4];
    *to++ = digits[byte & 15];
  }
  return to;
}

static size_t version(void) {
  const char *text = getenv("FAKECUDA_CUDNN_VERSION");
  return text && *text ? (size_t)strtoull(text, NULL, 10) : CUDNN_VERSION;
}

char *fakednn_plan_to_json(const fakednn_plan *plan) {
  const fakednn_program *p = plan->program;
  size_t tensors = (size_t)p->n_tensors * sizeof *p->tensors, nodes = (size_t)p->n_nodes * sizeof *p->nodes;
  char *text = malloc(HEAD + 2 * (tensors + nodes) + 3);
  if (!text) return NULL;
  int n = snprintf(text, HEAD, head, version(), sizeof *p->tensors, sizeof *p->nodes, plan->arch,
                   plan->engine, plan->workspace, p->n_tensors, p->n_nodes);
  char *end = put_digits(put_digits(text + n, p->tensors, tensors), p->nodes, nodes);
  memcpy(end, "\"}", 3);
  return text;
}

static bool get_digits(const char *from, void *to, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) {
    unsigned byte;
    if (sscanf(from + 2 * i, "%2x", &byte) != 1) return false;
    ((unsigned char *)to)[i] = (unsigned char)byte;
  }
  return true;
}

/* The digits behind the head, of which there are `bytes`. */
static cudnnStatus_t read_program(const char *digits, size_t bytes, int n_tensors, int n_nodes,
                                  fakednn_plan *plan) {
  size_t tensors = (size_t)n_tensors * sizeof(fakednn_tensor), nodes = (size_t)n_nodes * sizeof(fakednn_node);
  FAKEDNN_REQUIRE(n_tensors > 0 && n_tensors <= FAKEDNN_TENSORS && n_nodes > 0 && n_nodes <= FAKEDNN_NODES &&
                      bytes >= 2 * (tensors + nodes),
                  CUDNN_STATUS_BAD_PARAM, "the text of a plan is too short");
  fakednn_program p = {n_tensors, n_nodes, malloc(tensors), malloc(nodes)};
  bool read = p.tensors && p.nodes && get_digits(digits, p.tensors, tensors) &&
              get_digits(digits + 2 * tensors, p.nodes, nodes);
  plan->program = read ? fakednn_keep_program(&p) : NULL;
  free(p.tensors);
  free(p.nodes);
  FAKEDNN_REQUIRE(plan->program, CUDNN_STATUS_BAD_PARAM, "the text of a plan is damaged");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t fakednn_plan_from_json(const char *text, int64_t bytes, fakednn_plan *plan) {
  size_t made_by, sizes[2];
  int n_tensors, n_nodes, length = 0;
  char *copy = calloc(1, (size_t)bytes + 1);
  FAKEDNN_REQUIRE(copy, CUDNN_STATUS_ALLOC_FAILED, "out of host memory");
  memcpy(copy, text, (size_t)bytes);
  int found = sscanf(copy,
                     "{\"fakecudnn\":%zu,\"sizes\":[%zu,%zu],\"arch\":%d,\"engine\":%d,\"workspace\":%" SCNd64
                     ",\"tensors\":%d,\"nodes\":%d,\"program\":\"%n",
                     &made_by, &sizes[0], &sizes[1], &plan->arch, &plan->engine, &plan->workspace, &n_tensors,
                     &n_nodes, &length);
  cudnnStatus_t status;
  if (found != 8 || length == 0)
    status = fakednn_refuse(CUDNN_STATUS_BAD_PARAM, "the text is no plan");
  else if (made_by != version() || sizes[0] != sizeof(fakednn_tensor) || sizes[1] != sizeof(fakednn_node))
    status = fakednn_refuse(CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH, "the plan was made by version %zu",
                            made_by);
  else
    status = read_program(copy + length, strlen(copy + length), n_tensors, n_nodes, plan);
  free(copy);
  return status;
}
