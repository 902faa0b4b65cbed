/* tests/fakecuda/cudnn/descriptors.c: see descriptors.h; the entry points that create, fill, read, finalize
 * and destroy descriptors. One lock guards the table of live ones; a descriptor is of one thread at a time,
 * as the library has it. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "tests/fakecuda/cudnn/contract.h"
#include "tests/fakecuda/cudnn/descriptors.h"
#include "tests/fakecuda/cudnn/double.h"
#include "tests/fakecuda/cudnn/finalize.h"

/* ---- live descriptors ---- */

typedef struct live_descriptor {
  struct live_descriptor *next;
  fakednn_body *body;
} live_descriptor;

enum { ROWS = 1024 };
static live_descriptor *table[ROWS];
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

static live_descriptor **row_of(const void *descriptor) { return &table[(uintptr_t)descriptor / 16 % ROWS]; }

static live_descriptor **find_link(const void *descriptor) {
  live_descriptor **link = row_of(descriptor);
  while (*link && *link != descriptor) link = &(*link)->next;
  return link;
}

cudnnStatus_t fakednn_body_of(cudnnBackendDescriptor_t descriptor, fakednn_body **body) {
  FAKEDNN_REQUIRE(descriptor, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "the descriptor is NULL");
  pthread_mutex_lock(&table_lock);
  live_descriptor *live = *find_link(descriptor);
  *body = live ? fakednn_body_keep(live->body) : NULL;
  pthread_mutex_unlock(&table_lock);
  FAKEDNN_REQUIRE(live, CUDNN_STATUS_BAD_PARAM, "%p is no live descriptor", descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t fakednn_finalized_of(cudnnBackendDescriptor_t descriptor, int32_t type, const char *what,
                                   fakednn_body **body) {
  FAKEDNN_TRY(fakednn_body_of(descriptor, body));
  bool right = (*body)->type == type, finalized = (*body)->finalized;
  if (!right || !finalized) fakednn_body_drop(*body);
  FAKEDNN_REQUIRE(right, CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, "the %s is a descriptor of another type",
                  what);
  FAKEDNN_REQUIRE(finalized, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "the %s is not finalized", what);
  return CUDNN_STATUS_SUCCESS;
}

FAKEDNN_EXPORT cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                                          cudnnBackendDescriptor_t *descriptor) {
  FAKEDNN_TRY(fakednn_enter("cudnnBackendCreateDescriptor"));
  FAKEDNN_REQUIRE(descriptor, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "the place for the descriptor is NULL");
  FAKEDNN_REQUIRE((int)type >= 0 && type <= CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR,
                  CUDNN_STATUS_ALLOC_FAILED, "there is no descriptor type %d", (int)type);
  if (!fakednn_kind_of((int32_t)type)) return fakednn_lacks("descriptors of type %d", (int)type);
  live_descriptor *live = calloc(1, sizeof *live);
  if (live) live->body = fakednn_body_new((int32_t)type);
  if (!live || !live->body) {
    free(live);
    return fakednn_refuse(CUDNN_STATUS_ALLOC_FAILED, "out of host memory");
  }
  pthread_mutex_lock(&table_lock);
  live->next = *row_of(live);
  *row_of(live) = live;
  pthread_mutex_unlock(&table_lock);
  fakednn_count_live(1);
  *descriptor = live;
  return CUDNN_STATUS_SUCCESS;
}

FAKEDNN_EXPORT cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  cudnnStatus_t asked = fakednn_enter("cudnnBackendDestroyDescriptor");
  FAKEDNN_REQUIRE(descriptor, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "the descriptor is NULL");
  pthread_mutex_lock(&table_lock);
  live_descriptor **link = find_link(descriptor), *live = *link;
  if (live) *link = live->next;
  pthread_mutex_unlock(&table_lock);
  FAKEDNN_REQUIRE(live, CUDNN_STATUS_BAD_PARAM, "%p is no live descriptor", descriptor);
  fakednn_body_drop(live->body);
  free(live);
  fakednn_count_live(-1);
  return asked;
}

FAKEDNN_EXPORT cudnnStatus_t cudnnBackendInitialize(cudnnBackendDescriptor_t descriptor) {
  FAKEDNN_TRY(fakednn_enter("cudnnBackendInitialize"));
  (void)descriptor;
  return fakednn_lacks("this entry point, which is deprecated");
}

/* ---- setting ---- */

typedef struct setting {
  const fakednn_kind *kind;
  int32_t name, type;
  int64_t count;
  const void *data;
} setting;

static cudnnStatus_t check_types(const fakednn_attribute *a, const setting *s) {
  if (a->flags & FAKEDNN_LACKS) return fakednn_lacks("attribute %d of %s", s->name, s->kind->name);
  FAKEDNN_REQUIRE(!(a->flags & FAKEDNN_GET),
                  (cudnnStatus_t)(a->wrong_type ? a->wrong_type : CUDNN_STATUS_NOT_SUPPORTED),
                  "attribute %d of %s cannot be set", s->name, s->kind->name);
  int status = a->wrong_type ? a->wrong_type : s->kind->wrong_type;
  FAKEDNN_REQUIRE(s->type >= 0 && s->type < 32 && (a->types >> s->type & 1), (cudnnStatus_t)status,
                  "attribute %d of %s is not of the type %d", s->name, s->kind->name, s->type);
  int wrong_count = s->type == CUDNN_TYPE_BACKEND_DESCRIPTOR ? s->kind->wrong_parts : CUDNN_STATUS_BAD_PARAM;
  FAKEDNN_REQUIRE(s->count >= 1 && s->count <= a->most, (cudnnStatus_t)wrong_count,
                  "attribute %d of %s has %lld elements, expected %s%d", s->name, s->kind->name,
                  (long long)s->count, a->most > 1 ? "1 to " : "", a->most);
  return CUDNN_STATUS_SUCCESS;
}

/* The descriptors in an array of them, kept; at most `count` of `parts` are filled, and `kept` says how many.
 */
static cudnnStatus_t find_parts(const fakednn_attribute *a, const setting *s, fakednn_body **parts,
                                int64_t *kept) {
  const cudnnBackendDescriptor_t *from = s->data;
  for (int64_t i = 0; i < s->count; i++) {
    FAKEDNN_TRY(fakednn_body_of(from[i], &parts[i]));
    (*kept)++;
    FAKEDNN_REQUIRE(a->part < 0 || parts[i]->type == a->part, CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
                    "attribute %d of %s takes a descriptor of type %d, not of %d", s->name, s->kind->name,
                    a->part, parts[i]->type);
    FAKEDNN_REQUIRE(parts[i]->finalized, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
                    "attribute %d of %s: descriptor %lld is not finalized", s->name, s->kind->name,
                    (long long)i);
  }
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t store_parts(fakednn_body *body, const fakednn_attribute *a, const setting *s) {
  int64_t kept = 0;
  fakednn_body **parts = calloc((size_t)s->count, sizeof(fakednn_body *));
  FAKEDNN_REQUIRE(parts, CUDNN_STATUS_ALLOC_FAILED, "out of host memory");
  cudnnStatus_t status = find_parts(a, s, parts, &kept);
  bool stored = status != CUDNN_STATUS_SUCCESS || fakednn_store(body, s->name, s->type, s->count, parts);
  for (int64_t i = 0; i < kept; i++) fakednn_body_drop(parts[i]);
  free(parts);
  FAKEDNN_REQUIRE(stored, CUDNN_STATUS_ALLOC_FAILED, "out of host memory");
  return status;
}

static cudnnStatus_t set_attribute(fakednn_body *body, const setting *s) {
  FAKEDNN_REQUIRE(!body->finalized, CUDNN_STATUS_BAD_PARAM,
                  "attribute %d of %s is set after the descriptor was finalized", s->name, s->kind->name);
  FAKEDNN_REQUIRE(s->data || s->count == 0, CUDNN_STATUS_BAD_PARAM, "attribute %d of %s has NULL elements",
                  s->name, s->kind->name);
  const fakednn_attribute *a = fakednn_attribute_of(s->kind, s->name);
  FAKEDNN_REQUIRE(a, (cudnnStatus_t)s->kind->unknown, "%s has no attribute %d", s->kind->name, s->name);
  FAKEDNN_TRY(check_types(a, s));
  if (s->type == CUDNN_TYPE_BACKEND_DESCRIPTOR) return store_parts(body, a, s);
  if (s->type == CUDNN_TYPE_HANDLE) FAKEDNN_TRY(fakednn_check_handle(*(const cudnnHandle_t *)s->data));
  FAKEDNN_REQUIRE(fakednn_store(body, s->name, s->type, s->count, s->data), CUDNN_STATUS_ALLOC_FAILED,
                  "out of host memory");
  return CUDNN_STATUS_SUCCESS;
}

FAKEDNN_EXPORT cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                                      cudnnBackendAttributeName_t name,
                                                      cudnnBackendAttributeType_t type, int64_t count,
                                                      const void *elements) {
  fakednn_body *body;
  FAKEDNN_TRY(fakednn_enter("cudnnBackendSetAttribute"));
  FAKEDNN_TRY(fakednn_body_of(descriptor, &body));
  const setting s = {fakednn_kind_of(body->type), (int32_t)name, (int32_t)type, count, elements};
  cudnnStatus_t status = set_attribute(body, &s);
  fakednn_body_drop(body);
  return status;
}

/* ---- reading ---- */

/* The descriptors in the user's array are given the bodies. */
static cudnnStatus_t give_parts(const fakednn_value *value, int64_t count,
                                const cudnnBackendDescriptor_t *to) {
  fakednn_body *const *parts = value->data;
  for (int64_t i = 0; i < count; i++) {
    fakednn_body *before;
    FAKEDNN_TRY(fakednn_body_of(to[i], &before));
    bool same = before->type == parts[i]->type;
    fakednn_body_drop(before);
    FAKEDNN_REQUIRE(same, CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
                    "descriptor %lld of the array is not of the type %d", (long long)i, parts[i]->type);
    pthread_mutex_lock(&table_lock);
    live_descriptor *live = to[i];
    before = live->body;
    live->body = fakednn_body_keep(parts[i]);
    pthread_mutex_unlock(&table_lock);
    fakednn_body_drop(before);
  }
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t get_attribute(const fakednn_body *body, const setting *s, int64_t *count, void *to) {
  FAKEDNN_REQUIRE(body->finalized, CUDNN_STATUS_NOT_INITIALIZED,
                  "attribute %d of %s is read before the descriptor is finalized", s->name, s->kind->name);
  const fakednn_attribute *a = fakednn_attribute_of(s->kind, s->name);
  FAKEDNN_REQUIRE(a, (cudnnStatus_t)s->kind->unknown, "%s has no attribute %d", s->kind->name, s->name);
  if (a->flags & FAKEDNN_LACKS) return fakednn_lacks("attribute %d of %s", s->name, s->kind->name);
  const fakednn_value *value = fakednn_value_of(body, s->name);
  FAKEDNN_REQUIRE(s->type >= 0 && s->type < 32 && (a->types >> s->type & 1) &&
                      (!value || s->type == value->type),
                  (cudnnStatus_t)s->kind->wrong_type, "attribute %d of %s is not of the type %d", s->name,
                  s->kind->name, s->type);
  FAKEDNN_REQUIRE(s->count >= 0 && (a->most > 1 || s->count == 1), CUDNN_STATUS_BAD_PARAM,
                  "attribute %d of %s: %lld elements are asked for", s->name, s->kind->name,
                  (long long)s->count);
  int64_t there = value ? value->count : 0, given = s->count < there ? s->count : there;
  /* Without a place for elements, the question is how many there are. */
  if (!to) given = 0;
  if (count) *count = given ? given : there;
  if (given == 0) return CUDNN_STATUS_SUCCESS;
  if (s->type == CUDNN_TYPE_BACKEND_DESCRIPTOR) return give_parts(value, given, to);
  memcpy(to, value->data, (size_t)given * fakednn_type_size(s->type));
  return CUDNN_STATUS_SUCCESS;
}

FAKEDNN_EXPORT cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                                      cudnnBackendAttributeName_t name,
                                                      cudnnBackendAttributeType_t type, int64_t requested,
                                                      int64_t *count, void *elements) {
  fakednn_body *body;
  FAKEDNN_TRY(fakednn_enter("cudnnBackendGetAttribute"));
  FAKEDNN_REQUIRE(descriptor, CUDNN_STATUS_BAD_PARAM, "the descriptor is NULL");
  FAKEDNN_TRY(fakednn_body_of(descriptor, &body));
  const setting s = {fakednn_kind_of(body->type), (int32_t)name, (int32_t)type, requested, NULL};
  cudnnStatus_t status = get_attribute(body, &s, count, elements);
  fakednn_body_drop(body);
  return status;
}

/* ---- finalizing ---- */

static cudnnStatus_t finalize(fakednn_body *body) {
  const fakednn_kind *kind = fakednn_kind_of(body->type);
  FAKEDNN_REQUIRE(!body->finalized, CUDNN_STATUS_BAD_PARAM, "%s is finalized already", kind->name);
  for (int i = 0; i < kind->n_attributes; i++) {
    const fakednn_attribute *a = &kind->attributes[i];
    FAKEDNN_REQUIRE(!(a->flags & FAKEDNN_REQUIRED) || fakednn_value_of(body, a->name), CUDNN_STATUS_BAD_PARAM,
                    "%s lacks attribute %d", kind->name, a->name);
  }
  FAKEDNN_TRY(fakednn_finalize(body));
  body->finalized = true;
  return CUDNN_STATUS_SUCCESS;
}

FAKEDNN_EXPORT cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  fakednn_body *body;
  FAKEDNN_TRY(fakednn_enter("cudnnBackendFinalize"));
  FAKEDNN_TRY(fakednn_body_of(descriptor, &body));
  cudnnStatus_t status = finalize(body);
  fakednn_body_drop(body);
  return status;
}
