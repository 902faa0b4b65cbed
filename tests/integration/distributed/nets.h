/* tests/integration/distributed/nets.h: models that are trained on several devices, and differences of their
 * checkpoints. */
#pragma once

#include "program.h"

/* Configurations with a batch of 8, which a run may override. */
extern const char nets_lenet[], nets_transformer[], nets_resnet[], nets_two_losses[], nets_dropout[];
/* Three updates with ignored tokens, class weights, label smoothing and clipping; a batch of 12, of which the
 * last one is short. */
extern const char nets_tokens[];

/* Writes model.ini: a batch_norm(sync=yes), named bn, over the samples of the source `steady` in their order.
 * `plugin`: the source's file; `source`: its options. */
void nets_write_steady(const char *plugin, const char *source);

/* `tenon train model.ini` on a number of sim devices, into `folder`: the checkpoint is
 * FOLDER/run/checkpoints/last. `more`: further arguments. The run must succeed. */
const json_t *nets_train(const char *folder, int devices, const char *more);

/* The program, beside others of the same test: number `i` runs in a folder of its own, "0" to "9", with
 * model.ini in the folder above. Those that wait for a limit wait at the same time. nets_finish returns the
 * exit code; files of the run are in nets_path then, until the next call. */
void nets_start(int i, const char *format, ...) __attribute__((format(printf, 2, 3)));
int nets_finish(int i);
const char *nets_path(int i, const char *path);

/* [distributed] timeout and hang of a run in which a rank stops: until then the ranks are never so long
 * apart. They need milliseconds of a processor from one collective to the next, and share it with some dozen
 * threads of other cases, which soon wait as well. */
#if defined __SANITIZE_THREAD__ || defined __SANITIZE_ADDRESS__
#define NETS_SHORT      "40s"
#define NETS_SHORT_TEXT "40 s"
enum { NETS_SHORT_S = 40 };
#else
#define NETS_SHORT      "10s"
#define NETS_SHORT_TEXT "10 s"
enum { NETS_SHORT_S = 10 };
#endif

/* The largest difference between the models of two checkpoints, over all float tensors, relative to the
 * largest element of the tensor. Prints it with `what` and fails the test if it exceeds the limit. */
void nets_compare(const char *what, const char *a, const char *b, double limit);

/* The same, without a limit: the difference, and the name of the tensor in `where`. */
double nets_greatest(const char *a, const char *b, char *where, size_t size);

/* The same for one tensor. */
double nets_difference(const char *a, const char *b, const char *name);

/* How far two trainings from the same weights have come apart: the L2 norm of the difference of a and b,
 * relative to that of what b has learned, b - start. `statistics` are the running means and variances of
 * batch norms, `weights` all others, and `tensor` the worst of those of NETS_LARGE elements or more, named in
 * `where`. A tensor that began with zeros counts as much as its updates are large. */
typedef struct nets_update {
  double weights, tensor, statistics;
  char where[128];
} nets_update;
enum { NETS_LARGE = 256 };
nets_update nets_compare_updates(const char *a, const char *b, const char *start);

/* The elements of an f32 tensor of a checkpoint; the caller frees them. */
float *nets_values(const char *folder, const char *name, size_t *n);

/* A bound on accumulated rounding: sums over ranks have another order. */
#define NETS_BAND 1e-5
