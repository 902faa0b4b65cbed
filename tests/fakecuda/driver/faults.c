/* tests/fakecuda/driver/faults.c: faults in kernels and tasks. A handler of signals, which acts on engines
 * only, ends the body that faulted. A fault of another thread goes to the handler that was there before, with
 * a line in the log where the address is one of a device. */
#undef _FORTIFY_SOURCE /* its longjmp refuses to leave the stack of a fiber */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>

#include "tests/fakecuda/driver/driver.h"

static const int caught[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
enum { N_CAUGHT = sizeof caught / sizeof *caught };

static struct sigaction before[N_CAUGHT];
static bool opened;

/* A jump out of the fiber of a kernel: ThreadSanitizer must know that the engine's own one goes on. */
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
static void *fault_fiber(void) { return __tsan_get_current_fiber(); }
static void fault_leave_fiber(void *fiber) {
  if (fiber != __tsan_get_current_fiber()) __tsan_switch_to_fiber(fiber, 0);
}
#else
static void *fault_fiber(void) { return NULL; }
static void fault_leave_fiber(void *fiber) { (void)fiber; }
#endif

typedef struct guard {
  sigjmp_buf point;
  void *fiber;
  void *volatile address;
  volatile int signal;
} guard;

static __attribute__((tls_model("initial-exec"))) _Thread_local guard *volatile inside;
static __attribute__((tls_model("initial-exec"))) _Thread_local bool prepared;

static void fault_blame_host(void *address) {
  fake_block b;
  char text[256], line[384];
  for (int device = 0; device < fake_settings_get()->devices; device++) {
    fake_context *c = fake_context_of_device(device);
    if (c == NULL || !fake_memory_find(c, address, &b)) continue;
    fake_memory_describe(c, address, text, sizeof text);
    snprintf(line, sizeof line, "the host accessed device memory at %s\n", text);
    fake_log_text(line);
  }
}

static void fault_handle(int signal, siginfo_t *info, void *state) {
  (void)state;
  guard *g = inside;
  if (g != NULL) {
    g->address = info->si_addr;
    g->signal = signal;
    fault_leave_fiber(g->fiber);
    siglongjmp(g->point, 1);
  }
  if (signal == SIGSEGV) fault_blame_host(info->si_addr);
  for (int i = 0; i < N_CAUGHT; i++)
    if (caught[i] == signal) sigaction(signal, &before[i], NULL); /* the access is done again */
}

void fake_faults_open(void) {
  if (opened) return;
  opened = true;
  struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
  action.sa_sigaction = fault_handle;
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < N_CAUGHT; i++) sigaction(caught[i], &action, &before[i]);
}

__attribute__((destructor)) static void faults_close(void) {
  for (int i = 0; opened && i < N_CAUGHT; i++) {
    struct sigaction now;
    sigaction(caught[i], NULL, &now);
    if (now.sa_sigaction == fault_handle) sigaction(caught[i], &before[i], NULL);
  }
}

/* The engine has blocked all signals, and a body that overflows its stack needs another one for the handler.
 */
static void fault_prepare(fake_context *context) {
  stack_t old, own = {.ss_sp = context->signal_stack, .ss_size = sizeof context->signal_stack};
  sigset_t set;
  sigemptyset(&set);
  for (int i = 0; i < N_CAUGHT; i++) sigaddset(&set, caught[i]);
  pthread_sigmask(SIG_UNBLOCK, &set, NULL);
  if (sigaltstack(NULL, &old) == 0 && (old.ss_flags & SS_DISABLE) != 0) sigaltstack(&own, NULL);
  prepared = true;
}

static int fault_end(fake_context *context, const guard *g, char *why) {
  char where[256];
  fake_memory_describe(context, g->address, where, sizeof where);
  if (g->signal == SIGSEGV || g->signal == SIGBUS)
    snprintf(why, FAKE_WHY, "an illegal address: %s", where);
  else
    snprintf(why, FAKE_WHY, "an illegal instruction or division (signal %d)", g->signal);
  return -1;
}

int fake_guard(fake_context *context, fake_body body, void *arg, char *why) {
  guard g = {.fiber = fault_fiber()};
  if (!prepared) fault_prepare(context);
  if (sigsetjmp(g.point, 0) != 0) {
    inside = NULL;
    return fault_end(context, &g, why);
  }
  inside = &g;
  int code = body(arg, why);
  inside = NULL;
  return code;
}
