/* tests/fakecuda/driver/handles.c: handles are numbers that no pointer has; a freed handle is never used
 * again. */
#include <stdlib.h>

#include "tests/fakecuda/driver/driver.h"

typedef struct slot {
  void *object; /* NULL: free */
  const fake_context *context;
  uint32_t use;
  int kind;
} slot;

static slot *slots;
static size_t n_slots, slots_capacity;

/* 0x5DC0 | kind, then the number of the slot's use (24 bits), then the slot (24 bits). */
static uint64_t handle_encode(size_t index) {
  return (UINT64_C(0x5DC0) | (uint64_t)slots[index].kind) << 48 |
         (uint64_t)(slots[index].use & 0xFFFFFF) << 24 | (uint64_t)index;
}

static slot *handle_slot(const void *handle) {
  uint64_t value = (uint64_t)(uintptr_t)handle;
  size_t index = (size_t)(value & 0xFFFFFF);
  return index < n_slots && slots[index].object != NULL && handle_encode(index) == value ? &slots[index]
                                                                                         : NULL;
}

static bool handle_grow(void) {
  size_t capacity = slots_capacity > 0 ? 2 * slots_capacity : 64;
  slot *larger = realloc(slots, capacity * sizeof *slots);
  if (larger == NULL) return false;
  slots = larger;
  slots_capacity = capacity;
  return true;
}

void *fake_handle_new(int kind, const fake_context *context, void *object) {
  size_t i = 0;
  while (i < n_slots && slots[i].object != NULL) i++;
  if (i == n_slots) {
    if (n_slots == slots_capacity && !handle_grow()) return NULL;
    slots[n_slots++] = (slot){0};
  }
  slots[i] = (slot){object, context, slots[i].use + 1, kind};
  return (void *)(uintptr_t)handle_encode(i);
}

void *fake_handle_find(int kind, const void *handle) {
  const slot *s = handle_slot(handle);
  return s != NULL && s->kind == kind ? s->object : NULL;
}

void fake_handle_drop(const void *handle) {
  slot *s = handle_slot(handle);
  if (s != NULL) s->object = NULL;
}

void *fake_handle_next(int kind, const fake_context *context, size_t *at) {
  while (*at < n_slots) {
    const slot *s = &slots[(*at)++];
    if (s->object != NULL && s->kind == kind && s->context == context) return s->object;
  }
  return NULL;
}

/* At exit contexts may be left, whose calls find no handle any more. */
__attribute__((destructor)) static void handles_close(void) {
  n_slots = slots_capacity = 0;
  free(slots);
  slots = NULL;
}
