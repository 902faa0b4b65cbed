#include "tests/fakecuda/kernels/fiber.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define FIBER_TSAN 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define FIBER_ASAN 1
#endif
#ifdef __SANITIZE_THREAD__
#define FIBER_TSAN 1
#endif

enum { STACK_BYTES = 128 << 10, GUARD_BYTES = 64 << 10 };

void fake_stack_switch(void **save, void *load);
void fake_stack_begin(void);

#if defined(__x86_64__)
enum { SAVED_WORDS = 7, SAVED_BODY = 4, SAVED_ARG = 3, SAVED_RETURN = 6 };
__asm__(".text\n"
        ".globl fake_stack_switch\n"
        ".hidden fake_stack_switch\n"
        ".type fake_stack_switch, @function\n"
        "fake_stack_switch:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n"
        ".size fake_stack_switch, .-fake_stack_switch\n"
        ".globl fake_stack_begin\n"
        ".hidden fake_stack_begin\n"
        ".type fake_stack_begin, @function\n"
        "fake_stack_begin:\n"
        "  .cfi_startproc\n"
        "  .cfi_undefined rip\n"
        "  movq %r12, %rdi\n"
        "  callq *%rbx\n"
        "  ud2\n"
        "  .cfi_endproc\n"
        ".size fake_stack_begin, .-fake_stack_begin\n");
#elif defined(__aarch64__)
enum { SAVED_WORDS = 20, SAVED_BODY = 0, SAVED_ARG = 1, SAVED_RETURN = 11 };
__asm__(".text\n"
        ".globl fake_stack_switch\n"
        ".hidden fake_stack_switch\n"
        ".type fake_stack_switch, %function\n"
        "fake_stack_switch:\n"
        "  sub sp, sp, #160\n"
        "  stp x19, x20, [sp, #0]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n"
        "  stp x25, x26, [sp, #48]\n  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
        "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n"
        "  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
        "  mov x9, sp\n  str x9, [x0]\n"
        "  mov sp, x1\n"
        "  ldp x19, x20, [sp, #0]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n"
        "  ldp x25, x26, [sp, #48]\n  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
        "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n"
        "  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n"
        "  add sp, sp, #160\n"
        "  ret\n"
        ".size fake_stack_switch, .-fake_stack_switch\n"
        ".globl fake_stack_begin\n"
        ".hidden fake_stack_begin\n"
        ".type fake_stack_begin, %function\n"
        "fake_stack_begin:\n"
        "  .cfi_startproc\n"
        "  .cfi_undefined x30\n"
        "  mov x0, x20\n"
        "  blr x19\n"
        "  brk #0\n"
        "  .cfi_endproc\n"
        ".size fake_stack_begin, .-fake_stack_begin\n");
#else
#error "the double of CUDA switches stacks on x86-64 and aarch64"
#endif

#ifdef FIBER_ASAN
#include <pthread.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
/* Frames of a launch that failed may still be marked on the stack. */
static void clear_stack(fake_fiber *fiber) {
  __asan_unpoison_memory_region(fiber->stack, fiber->stack_bytes);
}
static void find_own_stack(fake_fiber *fiber) {
  pthread_attr_t attributes;
  void *bottom = NULL;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  pthread_attr_getstack(&attributes, &bottom, &fiber->stack_bytes);
  pthread_attr_destroy(&attributes);
  fiber->stack = bottom;
}
static void before_switch(fake_fiber *from, fake_fiber *to) {
  __sanitizer_start_switch_fiber(&from->sanitizer, to->stack, to->stack_bytes);
}
static void after_switch(fake_fiber *self) { __sanitizer_finish_switch_fiber(self->sanitizer, NULL, NULL); }
static void end_sanitizer(fake_fiber *fiber) { clear_stack(fiber); }
static void start_sanitizer(fake_fiber *fiber) {
  clear_stack(fiber);
  fiber->sanitizer = NULL;
}
#elif defined(FIBER_TSAN)
#include <sanitizer/tsan_interface.h>
static void find_own_stack(fake_fiber *fiber) { fiber->sanitizer = __tsan_get_current_fiber(); }
static void before_switch(fake_fiber *from, fake_fiber *to) {
  (void)from;
  __tsan_switch_to_fiber(to->sanitizer, 0);
}
static void after_switch(fake_fiber *self) { (void)self; }
static void end_sanitizer(fake_fiber *fiber) {
  if (fiber->sanitizer) __tsan_destroy_fiber(fiber->sanitizer);
}
/* A fiber that a failed launch has left has frames of that launch, so it begins anew. */
static void start_sanitizer(fake_fiber *fiber) {
  end_sanitizer(fiber);
  fiber->sanitizer = __tsan_create_fiber(0);
}
#else
static void find_own_stack(fake_fiber *fiber) { (void)fiber; }
static void before_switch(fake_fiber *from, fake_fiber *to) { (void)from, (void)to; }
static void after_switch(fake_fiber *self) { (void)self; }
static void end_sanitizer(fake_fiber *fiber) { (void)fiber; }
static void start_sanitizer(fake_fiber *fiber) { (void)fiber; }
#endif

int fake_fiber_allocate(fake_fiber *fiber) {
  char *memory =
      mmap(NULL, STACK_BYTES + GUARD_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return -1;
  if (mprotect(memory + GUARD_BYTES, STACK_BYTES, PROT_READ | PROT_WRITE) != 0) {
    munmap(memory, STACK_BYTES + GUARD_BYTES);
    return -1;
  }
  *fiber = (fake_fiber){.stack = memory + GUARD_BYTES, .stack_bytes = STACK_BYTES};
  return 0;
}

void fake_fiber_free(fake_fiber *fiber) {
  end_sanitizer(fiber);
  munmap(fiber->stack - GUARD_BYTES, STACK_BYTES + GUARD_BYTES);
}

static void fiber_main(void *arg) {
  fake_fiber *fiber = arg;
  after_switch(fiber);
  fiber->body(fiber->arg);
}

/* The tops of the stacks lie at different offsets within a page: otherwise all of them would share a set of
 * the cache. */
void fake_fiber_start(fake_fiber *fiber, int number, void (*body)(void *arg), void *arg) {
  start_sanitizer(fiber);
  char *top = fiber->stack + fiber->stack_bytes - 64 - (size_t)(number * 7 % 64) * 64;
  uintptr_t *frame = (uintptr_t *)(void *)top - SAVED_WORDS;
  memset(frame, 0, SAVED_WORDS * sizeof *frame);
  frame[SAVED_BODY] = (uintptr_t)fiber_main;
  frame[SAVED_ARG] = (uintptr_t)fiber;
  frame[SAVED_RETURN] = (uintptr_t)fake_stack_begin;
  fiber->stack_pointer = frame;
  fiber->body = body;
  fiber->arg = arg;
}

void fake_fiber_adopt(fake_fiber *fiber) {
  *fiber = (fake_fiber){0};
  find_own_stack(fiber);
}

void fake_fiber_switch(fake_fiber *from, fake_fiber *to) {
  before_switch(from, to);
  fake_stack_switch(&from->stack_pointer, to->stack_pointer);
  after_switch(from);
}
