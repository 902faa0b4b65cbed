/* tests/integration/distributed/nets.h: models that are trained on several devices, and differences of their
 * checkpoints. */
#ifndef TN_TESTS_INTEGRATION_DISTRIBUTED_NETS_H
#define TN_TESTS_INTEGRATION_DISTRIBUTED_NETS_H

#include "program.h"

/* Configurations with a batch of 8, which a run may override. */
extern const char nets_lenet[], nets_transformer[], nets_resnet[], nets_two_losses[], nets_dropout[];

/* Writes model.ini: a batch_norm(sync=yes), named bn, over the samples of the source `steady` in their order.
 * `plugin`: the source's file; `source`: its options. */
void nets_write_steady(const char *plugin, const char *source);

/* `tenon train model.ini` on a number of sim devices, into `folder`: the checkpoint is
 * FOLDER/run/checkpoints/last. `more`: further arguments. The run must succeed. */
const json_t *nets_train(const char *folder, int devices, const char *more);

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

#endif
