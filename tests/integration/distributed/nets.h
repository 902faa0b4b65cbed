/* tests/integration/distributed/nets.h: what is trained on several devices, and how far apart two results
 * are. */
#ifndef TN_TESTS_INTEGRATION_DISTRIBUTED_NETS_H
#define TN_TESTS_INTEGRATION_DISTRIBUTED_NETS_H

#include "program.h"

/* Configurations of a batch of 8; every run sets its own. */
extern const char nets_lenet[], nets_transformer[], nets_resnet[], nets_two_losses[], nets_dropout[];

/* `tenon train model.ini` on so many devices of sim, into a folder of the name: the checkpoint is
 * FOLDER/run/checkpoints/last. `more`: further words. The run must succeed. */
const json_t *nets_train(const char *folder, int devices, const char *more);

/* The largest difference of two checkpoints' models, over all tensors of floats: each relative to the largest
 * element of its tensor. Prints it with `what`, and fails the test where it is above the limit. */
void nets_compare(const char *what, const char *a, const char *b, double limit);

/* The same for one tensor. */
double nets_difference(const char *a, const char *b, const char *name);

/* Within the accumulation of rounding: sums over ranks are made in another order. */
#define NETS_BAND 1e-5

#endif
