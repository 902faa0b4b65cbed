/* tests/fakecuda/cudnn/graph.c: see graph.h. Operations become nodes, tensors of equal uid become one, and
 * the nodes are put into an order in which they can run. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "tests/fakecuda/cudnn/graph.h"

#define BAD CUDNN_STATUS_BAD_PARAM

typedef struct draft {
  int32_t n_tensors, n_nodes;
  fakednn_tensor tensors[FAKEDNN_TENSORS];
  fakednn_node nodes[FAKEDNN_NODES];
} draft;

const fakednn_program *fakednn_program_of(const fakednn_body *graph) { return graph->made; }

/* ---- tensors of equal uid ---- */

static bool same_tensor(const fakednn_tensor *a, const fakednn_tensor *b) {
  return a->type == b->type && a->rank == b->rank && a->is_virtual == b->is_virtual &&
         a->by_value == b->by_value && memcmp(a->dims, b->dims, sizeof a->dims) == 0 &&
         memcmp(a->strides, b->strides, sizeof a->strides) == 0;
}

static cudnnStatus_t number_tensor(draft *d, const fakednn_body *part, int32_t *number) {
  fakednn_tensor t;
  fakednn_read_tensor(part, &t);
  for (*number = 0; *number < d->n_tensors; ++*number) {
    if (d->tensors[*number].uid != t.uid) continue;
    FAKEDNN_REQUIRE(same_tensor(&d->tensors[*number], &t), BAD, "two tensors that differ have the uid %lld",
                    (long long)t.uid);
    return CUDNN_STATUS_SUCCESS;
  }
  if (d->n_tensors == FAKEDNN_TENSORS)
    return fakednn_lacks("graphs of more than %d tensors", FAKEDNN_TENSORS);
  d->tensors[d->n_tensors++] = t;
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t add_node(draft *d, const fakednn_body *operation) {
  int n;
  const fakednn_slot *slots = fakednn_slots(operation->type, &n);
  FAKEDNN_REQUIRE(slots, CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, "a descriptor of type %d is no operation",
                  operation->type);
  if (d->n_nodes == FAKEDNN_NODES) return fakednn_lacks("graphs of more than %d operations", FAKEDNN_NODES);
  fakednn_node *node = &d->nodes[d->n_nodes];
  fakednn_read_node(operation, node);
  for (int i = 0; i < FAKEDNN_SLOTS; i++) {
    const fakednn_body *part = i < n ? fakednn_part(operation, slots[i].attribute, 0) : NULL;
    node->tensor[i] = -1;
    if (!part) continue;
    FAKEDNN_TRY(number_tensor(d, part, &node->tensor[i]));
    if (!slots[i].output) continue;
    fakednn_tensor *t = &d->tensors[node->tensor[i]];
    FAKEDNN_REQUIRE(t->writer < 0, BAD, "two operations write tensor %lld", (long long)t->uid);
    t->writer = d->n_nodes;
  }
  d->n_nodes++;
  return CUDNN_STATUS_SUCCESS;
}

/* ---- order ---- */

static bool is_ready(const draft *d, const fakednn_node *node, const bool *done) {
  int n;
  const fakednn_slot *slots = fakednn_slots(node->kind, &n);
  for (int i = 0; i < n; i++) {
    int32_t tensor = node->tensor[i], writer = tensor < 0 || slots[i].output ? -1 : d->tensors[tensor].writer;
    if (writer >= 0 && !done[writer]) return false;
  }
  return true;
}

static cudnnStatus_t order_nodes(const draft *d, int32_t *order) {
  bool done[FAKEDNN_NODES] = {false};
  for (int32_t at = 0; at < d->n_nodes; at++) {
    int32_t next = 0;
    while (next < d->n_nodes && (done[next] || !is_ready(d, &d->nodes[next], done))) next++;
    FAKEDNN_REQUIRE(next < d->n_nodes, BAD, "the operations of the graph wait for each other");
    done[next] = true;
    order[at] = next;
  }
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_virtual(const draft *d) {
  for (int32_t i = 0; i < d->n_tensors; i++) {
    const fakednn_tensor *t = &d->tensors[i];
    FAKEDNN_REQUIRE(!t->is_virtual || t->writer >= 0, BAD, "no operation writes the virtual tensor %lld",
                    (long long)t->uid);
    FAKEDNN_REQUIRE(!t->is_virtual || !t->by_value, BAD, "tensor %lld is virtual and a value",
                    (long long)t->uid);
  }
  return CUDNN_STATUS_SUCCESS;
}

/* ---- programs ---- */

typedef struct kept_program {
  struct kept_program *next;
  fakednn_program program;
} kept_program;

static kept_program *programs;
static pthread_mutex_t programs_lock = PTHREAD_MUTEX_INITIALIZER;

const fakednn_program *fakednn_keep_program(const fakednn_program *program) {
  size_t tensors = (size_t)program->n_tensors * sizeof(fakednn_tensor);
  size_t nodes = (size_t)program->n_nodes * sizeof(fakednn_node);
  kept_program *kept = malloc(sizeof *kept + tensors + nodes);
  if (!kept) return NULL;
  fakednn_program *p = &kept->program;
  *p = (fakednn_program){program->n_tensors, program->n_nodes, (fakednn_tensor *)(kept + 1), NULL};
  p->nodes = (fakednn_node *)(p->tensors + p->n_tensors);
  memcpy(p->tensors, program->tensors, tensors);
  memcpy(p->nodes, program->nodes, nodes);
  pthread_mutex_lock(&programs_lock);
  kept->next = programs;
  programs = kept;
  pthread_mutex_unlock(&programs_lock);
  return p;
}

static const fakednn_program *keep_draft(draft *d, const int32_t *order) {
  fakednn_node nodes[FAKEDNN_NODES];
  for (int32_t i = 0; i < d->n_nodes; i++) nodes[i] = d->nodes[order[i]];
  for (int32_t i = 0; i < d->n_tensors; i++) {
    int32_t at = 0;
    while (at < d->n_nodes && order[at] != d->tensors[i].writer) at++;
    d->tensors[i].writer = at < d->n_nodes ? at : -1;
  }
  return fakednn_keep_program(&(fakednn_program){d->n_tensors, d->n_nodes, d->tensors, nodes});
}

static cudnnStatus_t make_program(fakednn_body *body, draft *d) {
  int32_t order[FAKEDNN_NODES];
  int64_t n = fakednn_count_of(body, CUDNN_ATTR_OPERATIONGRAPH_OPS);
  for (int64_t i = 0; i < n; i++) {
    FAKEDNN_TRY(add_node(d, fakednn_part(body, CUDNN_ATTR_OPERATIONGRAPH_OPS, i)));
  }
  FAKEDNN_TRY(check_virtual(d));
  FAKEDNN_TRY(order_nodes(d, order));
  body->made = keep_draft(d, order);
  FAKEDNN_REQUIRE(body->made, CUDNN_STATUS_ALLOC_FAILED, "out of host memory");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t fakednn_finalize_graph(fakednn_body *body) {
  if (fakednn_integer(body, CUDNN_ATTR_OPERATIONGRAPH_IS_DYNAMIC_SHAPE_ENABLED, 0, 0))
    return fakednn_lacks("dynamic shapes");
  draft *d = calloc(1, sizeof *d);
  FAKEDNN_REQUIRE(d, CUDNN_STATUS_ALLOC_FAILED, "out of host memory");
  cudnnStatus_t status = make_program(body, d);
  free(d);
  return status;
}
